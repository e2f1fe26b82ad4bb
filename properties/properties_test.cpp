// Each property of the catalogue against each instruction set of the production quantizer, with cases from RapidCheck.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/case_json.h"
#include "properties/draw.h"
#include "properties/run.h"
#include "targets/adapters/quantizer_adapter.h"

namespace assay {
namespace {

struct Pair {
  Target target;
  const Property* property;
};

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const Target& target : quantizer_targets()) {
    for (const Property& property : catalogue()) all.push_back({target, &property});
  }
  return all;
}

class Holds : public ::testing::TestWithParam<Pair> {};

TEST_P(Holds, OnDrawnCases) {
  const auto& [target, property] = GetParam();
  Tally tally;
  DrawSpace space;
  std::erase_if(space.operations, [&](Operation op) { return (property->operations & bit(op)) == 0; });
  const bool ok = rc::check(std::string(property->statement), [&] {
    SeededEntropy entropy(*rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()));
    const Case c = draw_case(entropy, space).c;
    const Verdict verdict = judge(*property, target, c);
    tally.add(verdict.outcome);
    if (verdict.outcome == Outcome::fail) {
      const Finding finding = minimized_finding(*property, target, c, verdict);
      RC_LOG() << signature(finding) << ": legal " << finding.verdict.legal << ", got " << finding.verdict.got
               << "\nThe case, for `assay replay FILE`:\n"
               << case_json_pretty(case_file_of(finding));
    }
    RC_ASSERT(verdict.outcome != Outcome::fail);
  });
  EXPECT_TRUE(ok);
  EXPECT_GT(tally.pass, 0u) << "the property was never judged";
}

INSTANTIATE_TEST_SUITE_P(Quantizer, Holds, ::testing::ValuesIn(pairs()), [](const auto& row) {
  return std::string(row.param.property->id) + "_" + row.param.target.isa;
});

}  // namespace
}  // namespace assay
