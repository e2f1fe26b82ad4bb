// The loops over float codes (e4m3fn, e5m2, e2m1) that exist once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace quantizer {

enum class CodeFormat : std::uint8_t;

/// The numbers of a format as far as rounding needs them. Patterns of positive finite numbers, in order, are
/// (exponent - min_exponent) * 2^(precision - 1) + significand.
struct Rounding {
  int precision, min_exponent;
  double largest;
  int sign_place;  ///< the bit of the sign
};
Rounding rounding_of(CodeFormat format);
Rounding rounding_of(FloatFormat format);  ///< f32, f16, bf16

/// One block: `scale` is that of the block times that of the tensor, exactly.
struct FloatBlock {
  CodeFormat format;
  double scale;
};

/// In the default floating-point environment. Codes are patterns, one a byte.
void quantize_to_floats(Isa isa, const float* x, std::size_t n, const FloatBlock& block, std::uint8_t* codes,
                        Counts& counts);
/// `values` are of `output`, rounded once.
void dequantize_floats(Isa isa, const std::uint8_t* codes, std::size_t n, const FloatBlock& block, FloatFormat output,
                       void* values);

}  // namespace quantizer
