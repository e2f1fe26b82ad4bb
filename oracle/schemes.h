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
/// The greatest magnitude in the range.
Real greatest(const Range& range);

struct Scheme {
  SchemeInfo info;
  // Where accumulators are requantized, only `rescaled`; elsewhere the others, tensor_step where there are two levels.
  /// The exact step of a block before anything is rounded (for assay.mx before it becomes a power of two); 0 for an
  /// all-zero range.
  Real (*step)(const Range&, const Options&, const Real& tensor_scale) = nullptr;
  int (*zero_point)(const Range&, CodeRange, const Real& scale) = nullptr;
  /// The exact scale of the whole tensor, before its rounding to f32.
  Real (*tensor_step)(const Range& of_tensor) = nullptr;
  /// The accumulator times the multiplier, made whole: what the zero point is added to.
  Real (*rescaled)(const Real& accumulator, const Rescale&) = nullptr;
};
std::span<const Scheme> scheme_table();
const Scheme* find_scheme(std::string_view name);

/// The stored scale, always positive and finite, and its zero point. `tensor_scale` is an f32 pattern, or 0.
QParams store_scale(const Scheme& scheme, const Options& options, const Range& range, Bits tensor_scale);
/// The f32 pattern of a tensor's scale, always positive and finite; 0 for schemes of one level.
Bits store_tensor_scale(const Scheme& scheme, const Range& of_tensor);

/// The exponent of an MX scale for a greatest magnitude > 0, before it is clamped to those of e8m0.
int mx_exponent(const Real& amax, Format code_format, ScaleRounding rounding);

/// What the codes of a block stand for, multiplied out: the scale of the block times that of the tensor.
Real scale_of(const Options& options, QParams qparams);

/// How far the codes reach: half a gap beyond the values of the lowest and of the highest code.
struct Reach {
  Real low, high;
};
Reach reach_of(const Options& options, const Real& scale, int zero_point);
bool out_of_reach(const Real& x, const Options& options, const Real& scale, int zero_point);

/// Integer codes: clamp(rne(x / scale) + zero_point, qmin, qmax); +inf -> qmax, -inf -> qmin, NaN -> zero_point.
/// Float codes: rn(code_format, x / scale), at most the largest finite one; NaN -> 0.
int code_of(const Real& x, const Options& options, const Real& scale, int zero_point);

/// What the code stands for, exactly: (code - zero_point) * scale, or the number of the pattern times scale.
Real exact_value_of(int code, const Options& options, const Real& scale, int zero_point);
/// That, rounded once to the output format; an overflow saturates to the largest finite value.
Bits value_of(int code, const Options& options, const Real& scale, int zero_point);

/// accumulator + bias, within 32 bits.
Real biased(std::int32_t accumulator, const Rescale& rescale);
/// clamp(rescaled + zero_point, qmin, qmax).
int requantized(const Scheme& scheme, const Options& options, const Rescale& rescale, std::int32_t accumulator);

}  // namespace assay
