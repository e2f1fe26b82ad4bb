// Requantization: int32 accumulators of a quantized matrix product to int8, uint8 or int16 codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quantizer.h"

namespace quantizer {

/// How the multiplier is given and where it rounds. v = accumulator + bias, kept within 32 bits.
enum class Requantization : std::uint8_t {
  exact,                  ///< rne(v * multiplier / divisor): one rounding, half to even
  fixed_single_rounding,  ///< floor(v * multiplier * 2^(shift - 31) + 1/2): one rounding, half up (TFLite, ruy)
  /// a = v * 2^max(shift, 0) within 32 bits; b = floor(a * multiplier / 2^31 + 1/2); b / 2^max(-shift, 0), half away
  /// from zero (gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT)
  fixed_double_rounding,
  float_multiplier  ///< rne(R_f32(R_f32(v) * scale)) (FBGEMM, XNNPACK)
};

struct RequantizeSpec {
  Requantization requantization = Requantization::exact;
  int bits = 8;           ///< 8, or 16 with signed codes
  bool is_signed = true;  ///< int8_t (int16_t) codes, else uint8_t
};

/// The parameters of one channel. Which of them count depends on the requantization.
struct Rescale {
  std::int32_t bias = 0;
  std::int32_t zero_point = 0;  ///< a code; added after rounding, before the clamp to the codes
  std::int64_t multiplier = 1;  ///< exact: 0 or more; fixed: 0 .. 2^31 - 1
  std::int64_t divisor = 1;     ///< exact: 1 or more
  std::int32_t shift = 0;       ///< fixed: -31 .. 30
  float scale = 1;              ///< float_multiplier: positive and finite
};

/// accumulators: element_count(layout), laid out by channels (Layout::Kind::channels, so per_tensor or per_channel).
/// rescales: one per channel. codes: as many bytes, or int16_t where spec.bits is 16.
/// bad_spec: bits and sign that are no format of codes. bad_layout: rows or tiles. bad_multiplier: a multiplier,
/// divisor, shift or scale outside its range. In all of these cases nothing was written.
Status requantize(const RequantizeSpec& spec, const Layout& layout, const std::int32_t* accumulators,
                  const Rescale* rescales, void* codes, Isa isa = {}, const Executor* executor = nullptr);

}  // namespace quantizer
