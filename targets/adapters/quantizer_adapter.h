// The production quantizer of targets/quantizer as targets of this suite, one per instruction set.
#pragma once

#include <string>
#include <vector>

#include "targets/target.h"

namespace assay {

/// One row per instruction set of this machine, best first: "quantizer@avx3", "quantizer@avx2", ...
std::vector<Target> quantizer_targets();

/// Names of the instruction sets that the build has, whether this machine runs them or not, best first.
std::vector<std::string> compiled_isas();

/// The best of the rows above, as users meet it: "quantizer".
Target best_quantizer();

}  // namespace assay
