// Every case of corpus/cases before the oracles and the production quantizer.
#include <gtest/gtest.h>

#include <algorithm>

#include "properties/case_json.h"
#include "properties/run.h"
#include "targets/adapters/quantizer_adapter.h"

namespace assay {
namespace {

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_SOURCE_DIR "/corpus/cases"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Corpus : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Corpus, OraclesAgreeAndTheQuantizerHolds) {
  const ParseResult parsed = read_case_file(GetParam());
  ASSERT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed);
  const CaseFile& file = std::get<CaseFile>(parsed);
  EXPECT_EQ(oracles_disagree(file.c), "");
  EXPECT_FALSE(file.c.source.empty());
  EXPECT_FALSE(file.c.why.empty());
  for (const Target& target : quantizer_targets()) {
    judge_all(target, file.c, [&](std::size_t p, const Verdict& v) {
      EXPECT_NE(v.outcome, Outcome::fail)
          << target.name << " " << catalogue()[p].id << " " << v.kind << ": legal " << v.legal << ", got " << v.got;
    });
  }
  if (!file.faulty) return;
  const Answer legal = legal_answer(exact_oracle(), file.c);
  const auto wrong = [](const auto& recorded, const auto& right) { return !recorded.empty() && recorded != right; };
  std::vector<Bits> scales;
  std::vector<std::int32_t> zero_points;
  for (const QParams& q : legal.qparams) {
    scales.push_back(q.scale);
    zero_points.push_back(q.zero_point);
  }
  EXPECT_TRUE(wrong(file.faulty->scales, scales) || wrong(file.faulty->zero_points, zero_points) ||
              wrong(file.faulty->codes, legal.codes) || wrong(file.faulty->values, legal.values))
      << "the recorded faulty answer is legal";
}

INSTANTIATE_TEST_SUITE_P(Cases, Corpus, ::testing::ValuesIn(case_files()),
                         [](const auto& row) { return row.param.stem().string(); });

}  // namespace
}  // namespace assay
