// The alarm must ring: every planted fault dies of the property it names.
#include <gtest/gtest.h>

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
    return;
  }
  FAIL() << fault.id << " survived 20000 cases of " << fault.expected;
}

INSTANTIATE_TEST_SUITE_P(Faults, Dies, ::testing::ValuesIn(faults().begin(), faults().end()),
                         [](const auto& row) { return std::string(row.param.id); });

}  // namespace
}  // namespace assay
