// Planted faults: the production quantizer with one step done as a real system once did it. The suite is believed only
// because each of them is caught.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "targets/target.h"

namespace assay {

struct Fault {
  std::string_view id;        ///< what it does wrong; the target is named "fault:ID"
  std::string_view models;    ///< the public report or class of bug behind it
  std::string_view expected;  ///< the property that must kill it
  Target (*make)();
};
std::span<const Fault> faults();
/// The machinery of the faults with every step done right: no property may fail on these, or faults die of the
/// machinery.
std::vector<Target> innocent_targets();
/// The fault as a target under test.
Target fault_target(const Fault& fault);

}  // namespace assay
