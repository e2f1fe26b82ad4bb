// The alarm must ring: every planted fault dies of the property it names.
#include <gtest/gtest.h>

#include <set>

#include "properties/case_json.h"
#include "properties/draw.h"
#include "properties/run.h"
#include "targets/faults/faults.h"

namespace assay {
namespace {

class Dies : public ::testing::TestWithParam<Fault> {};

TEST_P(Dies, OfTheNamedProperty) {
  const Fault& fault = GetParam();
  const Property* property = property_named(fault.expected);
  ASSERT_NE(property, nullptr) << fault.expected;
  const Target target = fault_target(fault);
  SeededEntropy entropy(3);
  for (int i = 0; i < 20000; ++i) {
    const Case c = draw_case(entropy, DrawSpace{}).c;
    const Verdict verdict = judge(*property, target, c);
    if (verdict.outcome != Outcome::fail) continue;
    const Finding finding = minimized_finding(*property, target, c, verdict);
    EXPECT_EQ(finding.verdict.outcome, Outcome::fail);
    EXPECT_LE(finding.example.x.size(), c.x.size());
    // What is written is all that the failure needs.
    const ParseResult parsed = parse_case(case_json_pretty(case_file_of(finding)));
    ASSERT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed);
    const Verdict again = judge(*property, target, std::get<CaseFile>(parsed).c);
    EXPECT_EQ(again.outcome, Outcome::fail);
    EXPECT_EQ(again.kind, finding.verdict.kind);
    EXPECT_EQ(again.got, finding.verdict.got);
    return;
  }
  FAIL() << fault.id << " survived 20000 cases of " << fault.expected;
}

// A fault proves nothing if the machinery around it is wrong by itself.
TEST(Faults, MachineryIsInnocent) {
  for (const Target& target : innocent_targets()) {
    SeededEntropy entropy(4);
    Tally tally;
    for (int i = 0; i < 3000; ++i) {
      const Case c = draw_case(entropy, DrawSpace{}).c;
      judge_all(target, c, [&](std::size_t p, const Verdict& v) {
        tally.add(v.outcome);
        ASSERT_NE(v.outcome, Outcome::fail)
            << catalogue()[p].id << " " << v.kind << ": legal " << v.legal << ", got " << v.got;
      });
    }
    EXPECT_GT(tally.pass, 10000u);
  }
}

// Every property earns its place: on some fault it is the first of the catalogue to ring, and the one that was named.
TEST(Faults, EveryPropertyIsTheFirstToKillOne) {
  std::set<std::string_view> first;
  for (const Fault& fault : faults()) {
    const Target target = fault_target(fault);
    SeededEntropy entropy(3);
    std::size_t earliest = catalogue().size();
    for (int i = 0; i < 1500; ++i) {
      const Case c = draw_case(entropy, DrawSpace{}).c;
      for (std::size_t p = 0; p < earliest; ++p) {
        if (judge(catalogue()[p], target, c).outcome == Outcome::fail) earliest = p;
      }
    }
    ASSERT_LT(earliest, catalogue().size()) << fault.id;
    if (catalogue()[earliest].id == fault.expected) first.insert(fault.expected);
  }
  for (const Property& property : catalogue()) {
    EXPECT_TRUE(first.contains(property.id)) << property.id << " is never the first to kill the fault that names it";
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Dies, ::testing::ValuesIn(faults().begin(), faults().end()),
                         [](const auto& row) { return std::string(row.param.id); });

}  // namespace
}  // namespace assay
