// Every case of corpus/cases before the oracles and the production quantizer.
#include <gtest/gtest.h>

#include <algorithm>

#include "properties/oracle_target.h"
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
  // The answer that the report tells of is put on trial like any other: some property must name what is wrong with it.
  std::string rejected_by;
  judge_all(recorded_target(file), file.c, [&](std::size_t p, const Verdict& v) {
    if (v.outcome == Outcome::fail) rejected_by += std::string(catalogue()[p].id) + " ";
  });
  EXPECT_FALSE(rejected_by.empty()) << "no property rejects the recorded answer";
  RecordProperty("rejected_by", rejected_by);
}

TEST(Corpus, TheOracleItselfHoldsEveryProperty) {
  for (const auto& path : case_files()) {
    const Case c = std::get<CaseFile>(read_case_file(path)).c;
    judge_all(oracle_target(exact_oracle()), c, [&](std::size_t p, const Verdict& v) {
      EXPECT_NE(v.outcome, Outcome::fail)
          << path << " " << catalogue()[p].id << " " << v.kind << ": legal " << v.legal << ", got " << v.got;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Corpus, ::testing::ValuesIn(case_files()),
                         [](const auto& row) { return row.param.stem().string(); });

}  // namespace
}  // namespace assay
