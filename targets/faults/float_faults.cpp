// Float codes and their scales, wrong as real systems had them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "targets/faults/parts.h"

namespace assay {
namespace {

// ------------------------------------------------------------------------------------------- scales

struct FloatBlock {
  const Options& options;
  float amax;
};
using SpoilScale = Bits (*)(const FloatBlock&, Bits right);

template <SpoilScale Spoil>
Target scale_fault() {
  Target t = base();
  t.choose_qparams = [right = t.choose_qparams](const Request& r, const void* x, void* scales,
                                                std::int32_t* zero_points, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, counts);
    if (status != Status::ok || !r.options.code_format) return status;
    const DefaultEnvironment environment;
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const BlockView v = view(r, x, blocks[b]);
      const FloatBlock block{r.options, std::max(v.hi, -v.lo)};
      store_scale(r.options, scales, b, Spoil(block, load_scale(r.options, scales, b)));
    }
    return status;
  };
  return t;
}

// The exponent of an MX scale from another magnitude than the block's, as floor has it.
Bits floor_scale(const FloatBlock& b, float amax) {
  int exponent = 0;
  std::frexp(amax, &exponent);
  const int wanted = exponent - 1 - info(*b.options.code_format).max_exponent;
  return static_cast<Bits>(std::clamp(wanted, -127, 127) + 127);
}

// Rounded to bf16 on the way, a magnitude just below a power of two becomes one.
Bits through_bf16(const FloatBlock& b, Bits right) {
  if (b.options.scale_format != Format::e8m0 || b.options.scale_rounding != ScaleRounding::floor || !(b.amax > 0))
    return right;
  const auto bf16 = static_cast<float>(to_double(Format::bf16, plain_scale(Format::bf16, double{b.amax})));
  return std::isfinite(bf16) ? floor_scale(b, bf16) : right;
}
// The largest exponents, counted up once more, are NaN.
Bits exponent_past_the_end(const FloatBlock& b, Bits right) {
  const bool up = b.options.scale_rounding == ScaleRounding::ceil || b.options.scale_rounding == ScaleRounding::rceil;
  const bool top = b.options.scale_format == Format::e8m0 && up && b.amax > 0x1p127f;
  return top ? quiet_nan(Format::e8m0) : right;
}
// A conversion to an integer truncates towards zero, so the exponent of what is below 1 comes out one too large.
Bits truncated_exponent(const FloatBlock& b, Bits right) {
  const bool floor = b.options.scale_format == Format::e8m0 && b.options.scale_rounding == ScaleRounding::floor;
  const bool below_one = right < 127 && right > 0;
  const double power =
      to_double(Format::e8m0, right) * to_double(*b.options.code_format, largest_finite(*b.options.code_format));
  return floor && below_one && double{b.amax} < power && std::frexp(b.amax, std::array<int, 1>{}.data()) != 0.5f
             ? right + 1
             : right;
}
// Two back ends, two ways to round the shared exponent: this one always rounds down.
Bits always_floors(const FloatBlock& b, Bits right) {
  return b.options.scale_format == Format::e8m0 && b.amax > 0 ? floor_scale(b, b.amax) : right;
}
Bits zero_where_all_are_zero(const FloatBlock& b, Bits right) {
  return b.amax == 0 && b.options.scale_format != Format::e8m0 ? 0 : right;
}
Bits block_scale_underflows(const FloatBlock& b, Bits right) {
  return b.options.scale_format == Format::e4m3fn && right == 1 && b.amax > 0 ? 0 : right;
}

// ------------------------------------------------------------------------------------------- codes

struct FloatElement {
  double quotient;  // of x by the scale
  float x;
  Format format;
  int right;
};
using SpoilCode = int (*)(const FloatElement&);

double full_scale(const Request& r, const void* scales, std::size_t b) {
  const double tensor = r.tensor_scale == 0 ? 1.0 : to_double(Format::f32, r.tensor_scale);
  return to_double(r.options.scale_format, load_scale(r.options, scales, b)) * tensor;
}

template <SpoilCode Spoil>
Target float_code_fault() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status != Status::ok || !r.options.code_format) return status;
    const DefaultEnvironment environment;
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const double scale = full_scale(r, scales, b);
      for (std::size_t i = 0; i < blocks[b].size(); ++i) {
        const std::size_t where = blocks[b].at(i);
        const float value = at(x, r.format, where);
        std::uint8_t& code = static_cast<std::uint8_t*>(codes)[where];
        code = static_cast<std::uint8_t>(Spoil({double{value} / scale, value, *r.options.code_format, code}));
      }
    }
    return status;
  };
  return t;
}

// A cast that does not saturate: what rounds past the largest number is NaN, or infinity.
int overflows(const FloatElement& e) {
  const double top = to_double(e.format, largest_finite(e.format));
  const double gap = top - to_double(e.format, largest_finite(e.format) - 1);
  if (e.format == Format::e2m1 || !(std::fabs(e.quotient) >= top + gap / 2)) return e.right;
  const Bits special = e.format == Format::e5m2 ? infinity(e.format) : quiet_nan(e.format);
  return static_cast<int>(special | (std::signbit(e.quotient) ? sign_bit(e.format) : 0));
}
int flushes_subnormals(const FloatElement& e) {
  return is_subnormal(e.format, static_cast<Bits>(e.right)) ? e.right & static_cast<int>(sign_bit(e.format)) : e.right;
}
// The next pattern away from zero at a tie.
int half_away(const FloatElement& e) {
  const auto right = static_cast<Bits>(e.right);
  const Bits magnitude = right & ~sign_bit(e.format);
  if (magnitude >= largest_finite(e.format)) return e.right;
  const double middle = (to_double(e.format, magnitude) + to_double(e.format, magnitude + 1)) / 2;
  return std::fabs(e.quotient) == middle ? e.right + 1 : e.right;
}
int nan_code(const FloatElement& e) {
  return std::isnan(e.x) && has_nan(e.format) ? static_cast<int>(quiet_nan(e.format)) : e.right;
}
int without_sign(const FloatElement& e) { return e.right & ~static_cast<int>(sign_bit(e.format)); }
int negative_zero_is_nan(const FloatElement& e) {
  return e.x == 0 && std::signbit(e.x) && has_nan(e.format) ? static_cast<int>(quiet_nan(e.format)) : e.right;
}

// ------------------------------------------------------------------------------------------- values

Target forgets_tensor_scale() {
  Target t = base();
  t.dequantize = [right = t.dequantize](const Request& r, const void* codes, const void* scales,
                                        const std::int32_t* zero_points, void* values) {
    Request without = {r.scheme, r.options, r.format, r.shape, r.tensor_scale};
    if (without.tensor_scale != 0) without.tensor_scale = 0x3f800000;
    return right(without, codes, scales, zero_points, values);
  };
  return t;
}

constexpr std::array kFaults = {
    Fault{"mx_scale_through_bf16", "torchao #4725: magnitude rounded to bf16 before its exponent is taken",
          "fix_changes_nothing_else", scale_fault<through_bf16>},
    Fault{"e8m0_exponent_past_the_end", "tilelang-metax #101: exponent + 1 reaches the NaN", "scale_positive_finite",
          scale_fault<exponent_past_the_end>},
    Fault{"e8m0_exponent_truncates", "compressed-tensors #630: integer cast instead of floor",
          "fix_changes_nothing_else", scale_fault<truncated_exponent>},
    Fault{"mx_rounds_scale_down", "aiter #3212: back ends that round the exponent differently", "round_trip",
          scale_fault<always_floors>},
    Fault{"float_scale_zero_for_zero_block", "aiter #4289: amax/448 of a zero channel", "scale_positive_finite",
          scale_fault<zero_where_all_are_zero>},
    Fault{"nvfp4_block_scale_underflows", "ModelOpt NVFP4: an e4m3 scale of 0", "scale_positive_finite",
          scale_fault<block_scale_underflows>},
    Fault{"float_code_overflows", "PyTorch #160957, oneDNN #5626: no clamp before the cast", "nan_free",
          float_code_fault<overflows>},
    Fault{"flushes_subnormal_codes", "public bugs: e4m3 conversion that skips subnormals", "round_trip",
          float_code_fault<flushes_subnormals>},
    Fault{"float_code_half_away", "FBGEMM #5843: half added without the even correction", "legal_codes",
          float_code_fault<half_away>},
    Fault{"nan_gets_nan_code", "1bit-MONSTER #404: NaN runs through the finite path", "nan_free",
          float_code_fault<nan_code>},
    Fault{"float_code_loses_sign", "public bugs: magnitude without its sign", "monotone",
          float_code_fault<without_sign>},
    Fault{"negative_zero_is_nan", "fnuz formats read as fn", "nan_free", float_code_fault<negative_zero_is_nan>},
    Fault{"forgets_tensor_scale", "public bugs: one of two scales applied", "legal_values", forgets_tensor_scale},
};

}  // namespace

std::span<const Fault> float_faults() { return kFaults; }

}  // namespace assay
