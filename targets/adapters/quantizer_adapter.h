// The production quantizer of targets/quantizer as targets of this suite, one per instruction set.
#pragma once

#include <vector>

#include "targets/target.h"

namespace assay {

/// One row per instruction set of this machine, best first: "quantizer@avx3", "quantizer@avx2", ...
std::vector<Target> quantizer_targets();

/// The best of them, as users meet it: "quantizer".
Target best_quantizer();

}  // namespace assay
