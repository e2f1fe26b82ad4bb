#include "qparams.h"

#include <algorithm>
#include <bit>

namespace quantizer {
namespace {

/// mantissa * 2^exponent, plus something in (0, 2^exponent) if `sticky`.
struct Exact {
  std::uint64_t mantissa;
  int exponent;
  bool sticky = false;
};

/// The positive values of a binary format: their patterns in order are 0, the smallest subnormal, ... infinity.
struct Binary {
  int precision;     ///< significand bits, hidden bit included
  int min_exponent;  ///< the smallest subnormal is 2^min_exponent
  Pattern infinity;  ///< or, where there is none, the pattern after the largest finite one
};

constexpr Binary binary_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::f16:
      return {11, -24, 0x7C00};
    case FloatFormat::bf16:
      return {8, -133, 0x7F80};
    case FloatFormat::e4m3fn:
      return {4, -9, 0x7F};
    default:
      return {24, -149, 0x7F800000};
  }
}

Exact decode(FloatFormat format, Pattern pattern) {
  if (format == FloatFormat::e8m0) return {1, static_cast<int>(pattern) - 127};
  const Binary binary = binary_of(format);
  const Pattern hidden = Pattern{1} << (binary.precision - 1);
  const Pattern field = pattern / hidden;
  if (field == 0) return {pattern, binary.min_exponent};
  return {pattern % hidden + hidden, binary.min_exponent + static_cast<int>(field) - 1};
}

Exact magnitude(float x) { return decode(FloatFormat::f32, std::bit_cast<Pattern>(x) & 0x7FFFFFFFu); }

/// Same value, the top bit of the mantissa at position 62. A zero gets an exponent below that of every other value of
/// its format.
Exact normalized(Exact v) {
  const int shift = std::countl_zero(v.mantissa) - 1;
  return {v.mantissa << shift, v.exponent - shift, v.sticky};
}

bool less(Exact a, Exact b) {
  if (a.mantissa == 0 || b.mantissa == 0) return a.mantissa < b.mantissa;
  a = normalized(a);
  b = normalized(b);
  return a.exponent != b.exponent ? a.exponent < b.exponent : a.mantissa < b.mantissa;
}

/// One rounding, half to even. The mantissa is normalized, or at least longer than any significand.
Pattern round_to(FloatFormat format, Exact v) {
  const Binary binary = binary_of(format);
  const int top = 63 - std::countl_zero(v.mantissa) + v.exponent;
  const int quantum = std::max(top - (binary.precision - 1), binary.min_exponent);
  const int shift = quantum - v.exponent;
  if (shift > 63) return 0;  // below 2^63 in units of 2^exponent, so below half of the quantum
  const std::uint64_t kept = v.mantissa >> shift;
  const std::uint64_t rest = v.mantissa & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const bool up = rest > half || (rest == half && (v.sticky || kept % 2 == 1));
  // A carry out of the significand runs into the exponent field, as it should.
  const std::uint64_t pattern =
      (static_cast<std::uint64_t>(quantum - binary.min_exponent) << (binary.precision - 1)) + kept + (up ? 1 : 0);
  return static_cast<Pattern>(std::min<std::uint64_t>(pattern, binary.infinity));
}

/// a + b, kept to 62 bits or more. What is cut off the one with the smaller exponent is less than a unit, and not 0
/// only if sticky. Without branches, because which one is smaller cannot be predicted.
Exact sum(Exact a, Exact b) {
  a = normalized(a);
  b = normalized(b);
  const int exponent = std::max(a.exponent, b.exponent);
  const int shift_a = std::min(exponent - a.exponent, 63);  // shifts out everything, as further would
  const int shift_b = std::min(exponent - b.exponent, 63);
  const std::uint64_t kept_a = a.mantissa >> shift_a;
  const std::uint64_t kept_b = b.mantissa >> shift_b;
  return {kept_a + kept_b, exponent, kept_a << shift_a != a.mantissa || kept_b << shift_b != b.mantissa};
}

/// For an integer divisor and A + e with A integer and 0 <= e < 1: floor((A + e)/divisor) = floor(A/divisor), and the
/// quotient is an integer exactly if e = 0 and the division leaves nothing. So both stay right. Keeps 54 bits or more.
Exact quotient(Exact v, std::uint64_t divisor) {
  if (v.mantissa < (std::uint64_t{1} << 62)) v = normalized(v);
  return {v.mantissa / divisor, v.exponent, v.sticky || v.mantissa % divisor != 0};
}

std::int32_t choose_zero_point(CodeRange codes, float lo, Exact scale) {
  const Exact low = magnitude(lo);
  if (low.mantissa == 0) return codes.qmin;
  // -lo/scale as a fraction of integers. Both mantissas have 1..24 bits, so a shift of 39 stays below 2^63, and a
  // longer one makes the quotient at least 2^16, or less than 1/2.
  const int shift = low.exponent - scale.exponent;
  if (shift > 39) return codes.qmax;
  if (shift < -39) return codes.qmin;
  const std::uint64_t numerator = low.mantissa << std::max(shift, 0);
  const std::uint64_t denominator = scale.mantissa << std::max(-shift, 0);
  const std::uint64_t whole = numerator / denominator;
  if (whole > 255) return codes.qmax;
  const std::uint64_t twice_rest = 2 * (numerator % denominator);
  const std::int32_t below = codes.qmin + static_cast<std::int32_t>(whole);
  // Half goes to the even sum, not to the even quotient: qmin may be odd.
  const bool up = twice_rest > denominator || (twice_rest == denominator && below % 2 != 0);
  return std::min(below + (up ? 1 : 0), codes.qmax);
}

/// x > (qmax - zero_point + 1/2) * scale, or the like below.
bool beyond(CodeRange codes, Exact scale, std::int32_t zero_point, float x) {
  const bool negative = std::bit_cast<Pattern>(x) >> 31 != 0;
  const std::int32_t steps = negative ? zero_point - codes.qmin : codes.qmax - zero_point;
  Exact twice = magnitude(x);
  ++twice.exponent;
  return less({scale.mantissa * static_cast<std::uint64_t>(2 * steps + 1), scale.exponent}, twice);
}

QParams with_scale(const Spec& spec, Pattern pattern, float hi, float lo) {
  const CodeRange codes = code_range(spec);
  const Exact scale = decode(spec.scale_format, pattern);
  const std::int32_t zero_point = spec.scheme == Scheme::symmetric ? 0 : choose_zero_point(codes, lo, scale);
  return {pattern, zero_point, beyond(codes, scale, zero_point, hi) || beyond(codes, scale, zero_point, lo)};
}

// ---------------------------------------------------------------------------------------------------- float codes

/// largest = top * 2^exponent, and half the last gap beyond it reach * 2^reach_exponent.
struct CodeEnds {
  std::uint64_t top;
  int exponent;
  std::uint64_t reach;
  int reach_exponent;
  int precision, max_exponent;
};

CodeEnds ends_of(CodeFormat format) {
  switch (format) {
    case CodeFormat::e5m2:
      return {7, 13, 15, 12, 3, 15};
    case CodeFormat::e2m1:
      return {3, 1, 7, 0, 2, 2};
    default:
      return {7, 6, 29, 4, 4, 8};
  }
}

/// Products of mantissas: few bits of the ends, 24 at most of a scale, 24 and 4 of two.
Exact times(Exact a, std::uint64_t mantissa, int exponent) { return {a.mantissa * mantissa, a.exponent + exponent}; }

Exact tensor_scale_of(const Spec& spec) {
  return spec.scheme == Scheme::nvfp4 ? magnitude(spec.tensor_scale) : Exact{1, 0};
}

bool beyond_floats(const Spec& spec, Exact scale, float x) {
  const CodeEnds ends = ends_of(spec.code_format);
  const Exact tensor = tensor_scale_of(spec);
  return less(times(times(scale, tensor.mantissa, tensor.exponent), ends.reach, ends.reach_exponent), magnitude(x));
}

/// The nearest positive finite scale to amax / most, or 1 if amax is 0.
Pattern nearest_scale(FloatFormat format, Exact amax, Exact most) {
  if (amax.mantissa == 0) return round_to(format, {std::uint64_t{1} << 62, -62});
  Exact ratio = quotient(amax, most.mantissa);
  ratio.exponent -= most.exponent;
  return std::clamp(round_to(format, ratio), Pattern{1}, binary_of(format).infinity - 1);
}

/// Of a power-of-two scale, for amax > 0. The mantissa of a normalized amax is in [2^62, 2^63).
int power_for(const Spec& spec, Exact amax) {
  const CodeEnds ends = ends_of(spec.code_format);
  const Exact a = normalized(amax);
  const int floor_log2 = 62 + a.exponent;
  switch (spec.scale_rounding) {
    case ScaleRounding::floor:
      return floor_log2 - ends.max_exponent;
    case ScaleRounding::ceil:
      return floor_log2 + (a.mantissa != std::uint64_t{1} << 62 ? 1 : 0) - ends.max_exponent;
    case ScaleRounding::even: {
      // Rounding to the precision of the codes carries into the next power from half a step below it on.
      const std::uint64_t half_step = std::uint64_t{1} << (62 - ends.precision);
      return floor_log2 + (a.mantissa + half_step >= std::uint64_t{1} << 63 ? 1 : 0) - ends.max_exponent;
    }
    case ScaleRounding::rceil: {
      const Exact top = normalized({ends.top, ends.exponent});
      return floor_log2 - (62 + top.exponent) + (a.mantissa > top.mantissa ? 1 : 0);
    }
  }
  return 0;
}

QParams choose_for_floats(const Spec& spec, float amax) {
  const Exact most = magnitude(amax);
  if (spec.scheme == Scheme::mx) {
    const int exponent = most.mantissa == 0 ? 0 : std::clamp(power_for(spec, most), -127, 127);
    const auto pattern = static_cast<Pattern>(exponent + 127);
    return {pattern, 0, beyond_floats(spec, decode(spec.scale_format, pattern), amax)};
  }
  const CodeEnds ends = ends_of(spec.code_format);
  const Exact tensor = tensor_scale_of(spec);
  Pattern scale = nearest_scale(spec.scale_format, most, times(tensor, ends.top, ends.exponent));
  const auto lost = [&] { return beyond_floats(spec, decode(spec.scale_format, scale), amax); };
  if (lost() && scale < binary_of(spec.scale_format).infinity - 1) ++scale;
  return {scale, 0, lost()};
}

}  // namespace

CodeRange code_range(const Spec& spec) {
  if (!spec.is_signed) return {0, (1 << spec.bits) - 1};
  const std::int32_t qmax = (1 << (spec.bits - 1)) - 1;
  return {spec.narrow_range ? -qmax : -qmax - 1, qmax};
}

bool is_positive_finite(FloatFormat format, Pattern scale) {
  if (format == FloatFormat::e8m0) return scale < 0xFF;
  return scale != 0 && scale < binary_of(format).infinity;
}

float to_float(FloatFormat format, Pattern scale) {
  if (format == FloatFormat::f32) return std::bit_cast<float>(scale);
  return std::bit_cast<float>(round_to(FloatFormat::f32, normalized(decode(format, scale))));
}

double scale_in_full(const Spec& spec, Pattern scale) {
  const Exact tensor = tensor_scale_of(spec);
  const Exact product = normalized(times(decode(spec.scale_format, scale), tensor.mantissa, tensor.exponent));
  const std::uint64_t fraction = (product.mantissa << 1 & ~(std::uint64_t{1} << 63)) >> 11;
  return std::bit_cast<double>(static_cast<std::uint64_t>(62 + product.exponent + 1023) << 52 | fraction);
}

float tensor_scale_for(float amax) {
  const Exact most = magnitude(amax);
  // 6 * 448 = 21 * 2^7, and 7 * 448 = 49 * 2^6 is what the codes still reach.
  Pattern scale = nearest_scale(FloatFormat::f32, most, {21, 7});
  const bool lost = less(times(decode(FloatFormat::f32, scale), 49, 6), most);
  if (lost && scale < binary_of(FloatFormat::f32).infinity - 1) ++scale;
  return std::bit_cast<float>(scale);
}

QParams choose(const Spec& spec, float hi, float lo) {
  if (spec.code_format != CodeFormat::integer)
    return choose_for_floats(spec, less(magnitude(hi), magnitude(lo)) ? lo : hi);
  const CodeRange codes = code_range(spec);
  const Exact high = magnitude(hi);
  const Exact low = magnitude(lo);
  const auto qmax = static_cast<std::uint64_t>(codes.qmax);

  Exact range = sum(high, low);
  std::uint64_t steps = static_cast<std::uint64_t>(codes.qmax - codes.qmin);
  if (spec.scheme == Scheme::symmetric) {
    const auto minus_qmin = static_cast<std::uint64_t>(-codes.qmin);
    const bool low_decides = less({high.mantissa * minus_qmin, high.exponent}, {low.mantissa * qmax, low.exponent});
    range = low_decides ? low : high;
    steps = low_decides ? minus_qmin : qmax;
  }

  const Pattern largest = binary_of(spec.scale_format).infinity - 1;
  const Pattern nearest = range.mantissa == 0
                              ? round_to(spec.scale_format, {std::uint64_t{1} << 62, -62})
                              : std::clamp(round_to(spec.scale_format, quotient(range, steps)), Pattern{1}, largest);
  const QParams result = with_scale(spec, nearest, hi, lo);
  // One step is enough: a scale of at least the exact step leaves nothing out of reach, and the next larger one is
  // that.
  return result.saturates && nearest < largest ? with_scale(spec, nearest + 1, hi, lo) : result;
}

bool out_of_reach(const Spec& spec, const QParams& qparams, float x) {
  if ((std::bit_cast<Pattern>(x) & 0x7FFFFFFFu) >= 0x7F800000u) return false;
  if (spec.code_format != CodeFormat::integer) return beyond_floats(spec, decode(spec.scale_format, qparams.scale), x);
  return beyond(code_range(spec), decode(spec.scale_format, qparams.scale), qparams.zero_point, x);
}

}  // namespace quantizer
