// Case JSON in and out, and every case of corpus/cases before the oracles and the production quantizer.
#include <gtest/gtest.h>

#include <algorithm>

#include "properties/case_json.h"
#include "properties/draw.h"
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

TEST(CaseJson, PrintsWhatItParses) {
  DrawSpace space;
  space.formats = {Format::f32, Format::f16, Format::bf16};
  SeededEntropy entropy(5);
  for (int i = 0; i < 2000; ++i) {
    CaseFile file{draw_case(entropy, space).c, std::nullopt, std::nullopt};
    file.c.why = "quotes \" and \\ and é";
    if (i % 2 == 0) file.found = Found{"quantizer", "saturates", "large", "a", "b", 7};
    const ParsedCase parsed = parse_case(print_case(file));
    ASSERT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed);
    ASSERT_EQ(std::get<CaseFile>(parsed), file);
  }
}

TEST(CaseJson, SaysWhatIsWrong) {
  const auto problem = [](std::string_view text) {
    const ParsedCase parsed = parse_case(text);
    const std::string* sentence = std::get_if<std::string>(&parsed);
    return sentence == nullptr ? std::string("accepted") : *sentence;
  };
  EXPECT_EQ(problem("{"), "not JSON at byte 2");
  EXPECT_EQ(problem(R"({"x":["3f800000"],"x":[]})"), "key 'x' stands twice");
  EXPECT_EQ(problem(R"({"xs":[]})"), "unknown key 'xs' in the case");
  EXPECT_EQ(problem(R"({"x":["3f80"]})"),
            R"(key 'x', item 0: "3f80" is not a pattern of f32 (8 hex digits in quotes))");
  EXPECT_EQ(problem(R"({"op":"add","x":["3f800000"]})"),
            "unknown op 'add'; there are choose_qparams, quantize, dequantize and round_trip");
  EXPECT_EQ(problem(R"({"scheme":"assay.wrong","x":["3f800000"]})"),
            "unknown scheme 'assay.wrong'; the nearest is 'assay.symmetric'");
  EXPECT_EQ(problem(R"({"options":{"bits":9},"x":["3f800000"]})"),
            "option bits: '9' is not a whole number from 2 to 8");
  EXPECT_EQ(problem(R"({"op":"quantize","scale":"00000000","x":["3f800000"]})"),
            "a given scale is 0x0p+0 [00000000]; scales are positive and finite");
  EXPECT_EQ(problem(R"({"op":"dequantize","scale":"3f800000","x":["3f800000"],"codes":[1]})"),
            "dequantize takes 'codes, not x'");
}

TEST(CaseJson, SurvivesMutations) {
  SeededEntropy entropy(6);
  const std::string text = print_case({draw_case(entropy, DrawSpace{}).c, std::nullopt, std::nullopt});
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string broken = text;
    for (std::uint64_t k = 0, n = 1 + entropy.below(4); k < n; ++k)
      broken[entropy.below(broken.size())] = static_cast<char>(entropy.next(1));
    refused += std::holds_alternative<std::string>(parse_case(broken));
  }
  EXPECT_GT(refused, 1000u);
}

class Corpus : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Corpus, OraclesAgreeAndTheQuantizerHolds) {
  const ParsedCase parsed = read_case_file(GetParam());
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
