// Shrinks a failing case while it keeps failing the same way. Works on the Case value, so that it serves every engine.
#pragma once

#include <cstddef>
#include <functional>

#include "oracle/spec.h"

namespace assay {

using StillFails = std::function<bool(const Case&)>;

/// The smallest case found within `budget` evaluations of `fails`, which must hold for `c` itself. Fewer elements come
/// first, then plainer options, then rounder numbers; the operation and scheme stay.
Case minimize(const Case& c, const StillFails& fails, std::size_t budget = 4000);

}  // namespace assay
