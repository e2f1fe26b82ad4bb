// The table of schemes: what a scheme is, each written as its formula reads, with every rounding point in plain sight.
#pragma once

#include <span>
#include <string_view>

#include "oracle/oracle.h"
#include "oracle/real.h"

namespace assay {

/// Range of a block over its finite elements, widened to include zero: lo <= 0 <= hi.
struct Range {
  Real lo, hi;
};
Range range_of(Format format, std::span<const Bits> x);

/// The exact step between neighbouring codes, before anything is rounded; 0 for an all-zero range.
Real symmetric_step(const Range& range, CodeRange codes);
Real asymmetric_step(const Range& range, CodeRange codes);

/// The zero point that the stored scale implies.
int symmetric_zero_point(const Range& range, CodeRange codes, const Real& scale);
int asymmetric_zero_point(const Range& range, CodeRange codes, const Real& scale);

struct Scheme {
  SchemeInfo info;
  Real (*step)(const Range&, CodeRange);
  int (*zero_point)(const Range&, CodeRange, const Real& scale);
};
std::span<const Scheme> scheme_table();
const Scheme* find_scheme(std::string_view name);

/// Steps 3 and 4 of the canonical schemes: the stored scale, always positive and finite, and its zero point.
QParams store_scale(const Scheme& scheme, const Options& options, const Range& range);

/// x lies more than half a scale beyond the value of the lowest or of the highest code.
bool out_of_reach(const Real& x, CodeRange codes, const Real& scale, int zero_point);

/// clamp(rne(x / scale) + zero_point, qmin, qmax); +inf -> qmax, -inf -> qmin, NaN -> zero_point.
int code_of(const Real& x, CodeRange codes, const Real& scale, int zero_point);

/// (code - zero_point) * scale, one rounding; an overflow saturates to the largest finite value.
Bits value_of(int code, const Real& scale, int zero_point, Format output_format);

}  // namespace assay
