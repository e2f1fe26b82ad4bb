// The one loop of every engine: cases before a target, judged, and a failure turned into a finding.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "properties/property.h"

namespace assay {

/// Judged with fast_oracle; a failure counts only if exact_oracle confirms it. A failure that it does not confirm means
/// that the oracles disagree: std::logic_error, never a finding.
Verdict judge(const Property& property, const Target& target, const Case& c);

/// A confirmed failure, minimised on the Case while property and kind stay the same.
Finding minimized_finding(const Property& property, const Target& target, const Case& c, const Verdict& verdict,
                          std::size_t budget = 4000);

/// Every property on one case.
void judge_all(const Target& target, const Case& c,
               const std::function<void(std::size_t property, const Verdict&)>& seen);

/// Compares all oracles on a case; returns a sentence that says where they differ, or an empty string.
std::string oracles_disagree(const Case& c);

}  // namespace assay
