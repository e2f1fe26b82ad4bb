// A fuzzer's bytes as a Case. Decoding is total: every byte string is a valid case, so no input is wasted on being
// refused.
//
// The low bit of the first byte selects the mode:
//   1  drawn: the rest is the entropy of draw_case, which aims at breakpoints and degenerate blocks
//   0  direct: the rest lays the case out field by field, each reduced into its valid range, so that a mutation of the
//      bytes is a mutation of an option, of the shape, of a given scale or of an element
// The README of this folder has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "oracle/spec.h"
#include "properties/draw.h"

namespace assay {

/// What the direct layout holds at most.
inline constexpr std::size_t kMostFuzzElements = 1024, kMostFuzzDimensions = 4;

/// The case of any byte string: check_case and check_scheme_options have nothing against it. A direct case has no more
/// elements than it has bytes (and at least one).
Case decode_case(std::span<const std::uint8_t> bytes, const DrawSpace& space);

/// The direct layout of a valid case: decode_case(encode_case(c), space) == c, but for source and why, if the space can
/// draw it. Empty if the layout cannot hold the case.
std::optional<std::vector<std::uint8_t>> encode_case(const Case& c);

}  // namespace assay
