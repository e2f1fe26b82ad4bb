// The oracle's adversary: the same answers from another definition. Codes, scales and zero points are the nearest ones,
// found by search and comparison of whole numbers; there is no quotient and no rounding formula in this file.
#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>

#include "oracle/oracle.h"

namespace assay {
namespace {

using Integer = boost::multiprecision::cpp_int;

// Every number of every format is a whole multiple of 2^-kUnit, f64's smallest subnormal and half of it included.
constexpr int kUnit = 1080;
const Integer kOne = Integer(1) << kUnit;

// Of a pattern without its sign: one past the largest finite one may need the place of the sign.
Integer units_of_magnitude(Format format, Bits magnitude) {
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  const int biased = static_cast<int>(magnitude >> width);
  const Bits fraction = magnitude & ((Bits{1} << width) - 1);
  const bool always_normal = f.specials == Specials::unsigned_power;
  const Bits significand = biased == 0 && !always_normal ? fraction : fraction | Bits{1} << width;
  Integer value = significand;
  value <<= (always_normal ? biased : std::max(biased, 1) - 1) + f.min_exponent - width + kUnit;
  return value;
}

Integer units(Format format, Bits bits) {
  const Integer magnitude = units_of_magnitude(format, bits & ~sign_bit(format));
  return is_negative(format, bits) ? Integer(-magnitude) : magnitude;
}

// The positive number of `format` whose multiple by `each` is nearest to `wanted`, the even pattern on equal distance;
// one step past the largest finite value stands for what lies above, as if the exponent range went on.
Bits nearest_pattern(Format format, const Integer& wanted, const Integer& each) {
  const auto below = [&](Bits pattern) { return Integer(units_of_magnitude(format, pattern) * each) <= wanted; };
  Bits low = 0, high = largest_finite(format) + 1;
  if (below(high)) return high;
  while (high - low > 1) {
    const Bits middle = low + (high - low) / 2;
    (below(middle) ? low : high) = middle;
  }
  const Integer down = wanted - units_of_magnitude(format, low) * each;
  const Integer up = units_of_magnitude(format, high) * each - wanted;
  if (down != up) return down < up ? low : high;
  return low % 2 == 0 ? low : high;
}

// The whole number z in [least, most] for which z * s is nearest to `wanted`; the even one on equal distance.
int nearest_multiple(const Integer& wanted, const Integer& s, int least, int most) {
  int low = least, high = most;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (Integer(s * middle) <= wanted ? low : high) = middle;
  }
  const Integer down = boost::multiprecision::abs(Integer(wanted - s * low));
  const Integer up = boost::multiprecision::abs(Integer(wanted - s * high));
  if (down != up) return down < up ? low : high;
  return low % 2 == 0 ? low : high;
}

// ------------------------------------------------------------------------------------------- integer codes

bool lost(const Integer& x, CodeRange codes, const Integer& s, int zero_point) {
  return 2 * x > s * (2 * (codes.qmax - zero_point) + 1) || 2 * x < s * (2 * (codes.qmin - zero_point) - 1);
}

struct Ends {
  Integer lo = 0, hi = 0;
  Integer greatest() const { return std::max(hi, Integer(-lo)); }
};

Ends ends_of(Format format, std::span<const Bits> x) {
  Ends ends;
  for (const Bits bits : x) {
    if (!is_finite(format, bits)) continue;
    ends.lo = std::min(ends.lo, units(format, bits));
    ends.hi = std::max(ends.hi, units(format, bits));
  }
  return ends;
}

QParams choose_for_integers(bool symmetric, const Options& options, const Ends& ends) {
  const CodeRange codes = code_range(options);
  const Format s = options.scale_format;
  Integer numerator = ends.hi - ends.lo;
  int denominator = codes.qmax - codes.qmin;
  if (symmetric) {
    const bool by_hi = ends.hi * -codes.qmin >= -ends.lo * codes.qmax;
    numerator = by_hi ? ends.hi : Integer(-ends.lo);
    denominator = by_hi ? codes.qmax : -codes.qmin;
  }
  Bits scale = numerator == 0 ? nearest_pattern(s, kOne, 1) : nearest_pattern(s, numerator, denominator);
  scale = std::min(std::max(scale, smallest_positive(s)), largest_finite(s));
  const auto zero_point = [&] {
    if (symmetric) return 0;
    const Integer step = units(s, scale);
    return nearest_multiple(step * codes.qmin - ends.lo, step, codes.qmin, codes.qmax);
  };
  int zp = zero_point();
  if ((lost(ends.hi, codes, units(s, scale), zp) || lost(ends.lo, codes, units(s, scale), zp)) &&
      scale != largest_finite(s)) {
    scale = next_up(s, scale);
    zp = zero_point();
  }
  return {scale, zp, 0};
}

// ------------------------------------------------------------------------------------------- float codes

// The scale of a block times that of its tensor, in units of a unit.
Integer product_of_scales(const Options& options, QParams q) {
  return units(options.scale_format, q.scale) * (q.tensor_scale == 0 ? kOne : units(Format::f32, q.tensor_scale));
}

// x beyond the greatest code by more than half the last gap, under a scale in units of a unit.
bool beyond_codes(Format f, const Integer& x, const Integer& scale) {
  const Integer top = units(f, largest_finite(f)), before = units(f, largest_finite(f) - 1);
  return 2 * boost::multiprecision::abs(x) * kOne * kOne > (3 * top - before) * scale;
}

// The greatest power of two among the scales for which `fits` holds; the least one if there is none.
template <typename Fits>
Bits last_power(Format s, Fits fits) {
  Bits best = smallest_positive(s);
  for (Bits pattern = best; pattern <= largest_finite(s) && fits(units(s, pattern)); ++pattern) best = pattern;
  return best;
}

// The least power of two for which `holds` does; the greatest one if there is none.
template <typename Holds>
Bits first_power(Format s, Holds holds) {
  Bits pattern = smallest_positive(s);
  while (pattern < largest_finite(s) && !holds(units(s, pattern))) ++pattern;
  return pattern;
}

Bits search_power(const Options& options, const Integer& amax) {
  const Format f = *options.code_format, s = options.scale_format;
  if (amax == 0) return nearest_pattern(s, kOne, 1);
  const int emax = info(f).max_exponent, bits = info(f).precision + 1;
  switch (options.scale_rounding) {
    case ScaleRounding::floor:
      return last_power(s, [&](const Integer& scale) { return (scale << emax) <= amax; });
    case ScaleRounding::ceil:
      return first_power(s, [&](const Integer& scale) { return (scale << emax) >= amax; });
    case ScaleRounding::even:
      // What rounds up to a power of two starts half a step of the code format below it.
      return last_power(
          s, [&](const Integer& scale) { return (scale << emax) * ((Integer(1) << bits) - 1) <= (amax << bits); });
    case ScaleRounding::rceil:
      return first_power(s, [&](const Integer& scale) { return scale * units(f, largest_finite(f)) >= amax * kOne; });
  }
  return 0;
}

// Positive and finite, and one value higher if the greatest magnitude would be out of reach.
template <typename Lost>
Bits search_scale(Format s, const Integer& wanted, const Integer& each, Lost is_lost) {
  Bits scale = wanted == 0 ? nearest_pattern(s, kOne, 1) : nearest_pattern(s, wanted, each);
  scale = std::min(std::max(scale, smallest_positive(s)), largest_finite(s));
  return is_lost(scale) && scale != largest_finite(s) ? next_up(s, scale) : scale;
}

QParams choose_for_floats(const Options& options, const Integer& amax, Bits tensor_scale) {
  const Format f = *options.code_format, s = options.scale_format;
  if (s == Format::e8m0) return {search_power(options, amax), 0, 0};
  const Integer tensor = tensor_scale == 0 ? kOne : units(Format::f32, tensor_scale);
  const Bits scale = search_scale(s, amax * kOne * kOne, units(f, largest_finite(f)) * tensor, [&](Bits candidate) {
    return beyond_codes(f, amax, product_of_scales(options, {candidate, 0, tensor_scale}));
  });
  return {scale, 0, tensor_scale};
}

Bits search_choose_tensor_scale(std::string_view scheme, Format format, std::span<const Bits> x) {
  if (scheme != "assay.nvfp4") return 0;
  const Integer amax = ends_of(format, x).greatest();
  const Integer most = units(Format::e4m3fn, largest_finite(Format::e4m3fn));
  return search_scale(Format::f32, amax * kOne * kOne, most * units(Format::e2m1, largest_finite(Format::e2m1)),
                      [&](Bits t) { return beyond_codes(Format::e2m1, amax, most * units(Format::f32, t)); });
}

// ------------------------------------------------------------------------------------------- the oracle

int search_quantize(const Options& options, Format format, QParams q, Bits x) {
  const CodeRange codes = code_range(options);
  if (is_nan(format, x)) return q.zero_point;
  if (is_inf(format, x)) return is_negative(format, x) ? codes.qmin : codes.qmax;
  if (options.code_format) {
    const Format f = *options.code_format;
    const Bits sign = is_negative(format, x) ? sign_bit(f) : 0;
    const Integer magnitude = boost::multiprecision::abs(units(format, x));
    const Bits nearest = nearest_pattern(f, magnitude * kOne * kOne, product_of_scales(options, q));
    return static_cast<int>(sign | std::min(nearest, largest_finite(f)));
  }
  return q.zero_point + nearest_multiple(units(format, x), units(options.scale_format, q.scale),
                                         codes.qmin - q.zero_point, codes.qmax - q.zero_point);
}

Bits search_dequantize(const Options& options, QParams q, int code) {
  const Format o = options.output_format;
  const Integer value =
      options.code_format
          ? Integer(units(*options.code_format, static_cast<Bits>(code)) * product_of_scales(options, q))
          : Integer(units(options.scale_format, q.scale) * (code - q.zero_point));
  const Integer each = options.code_format ? Integer(kOne * kOne) : Integer(1);
  const Bits nearest = nearest_pattern(o, boost::multiprecision::abs(value), each);
  const bool negative = options.code_format ? is_negative(*options.code_format, static_cast<Bits>(code)) : value < 0;
  return (negative ? sign_bit(o) : 0) | std::min(nearest, largest_finite(o));
}

bool search_saturated(const Options& options, Format format, QParams q, Bits x) {
  if (!is_finite(format, x)) return false;
  if (options.code_format) return beyond_codes(*options.code_format, units(format, x), product_of_scales(options, q));
  return lost(units(format, x), code_range(options), units(options.scale_format, q.scale), q.zero_point);
}

QParams search_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                      Bits tensor_scale) {
  const Ends ends = ends_of(format, x);
  if (options.code_format) return choose_for_floats(options, ends.greatest(), tensor_scale);
  return choose_for_integers(scheme == "assay.symmetric", options, ends);
}

// ------------------------------------------------------------------------------------------- accumulators

// The greatest whole number z in [least, most] that `reaches`, which holds for every number below one for which it
// does.
template <typename Reaches>
std::int64_t last_whole(std::int64_t least, std::int64_t most, Reaches reaches) {
  while (least < most) {
    const std::int64_t middle = least + (most - least + 1) / 2;
    if (reaches(Integer(middle))) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

// The whole number nearest to numerator/denominator, the greater one on equal distance.
std::int64_t nearest_or_above(const Integer& numerator, const Integer& denominator, std::int64_t least,
                              std::int64_t most) {
  return last_whole(least, most, [&](const Integer& z) { return (2 * z - 1) * denominator <= 2 * numerator; });
}

std::int64_t search_float_product(std::int64_t v, Bits scale, int least, int most) {
  const Format f = Format::f32;
  const Bits rounded = nearest_pattern(f, Integer(v < 0 ? -v : v) * kOne, 1);
  const Bits product = nearest_pattern(f, units(f, rounded) * units(f, scale), kOne);
  if (product > largest_finite(f)) return v < 0 ? least : most;
  return nearest_multiple(v < 0 ? Integer(-units(f, product)) : units(f, product), kOne, least, most);
}

int search_requantize(std::string_view scheme, const Options& options, const Rescale& r, std::int32_t accumulator) {
  const CodeRange codes = code_range(options);
  const int least = codes.qmin - r.zero_point, most = codes.qmax - r.zero_point;
  const std::int64_t v =
      std::clamp(std::int64_t{accumulator} + r.bias, std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX});
  std::int64_t z = 0;
  if (scheme == "fixed_point.exact") {
    z = nearest_multiple(Integer(v) * r.multiplier, Integer(r.divisor), least, most);
  } else if (scheme == "fixed_point.single_rounding") {
    z = nearest_or_above(Integer(v) * r.multiplier, Integer(1) << (31 - r.shift), least, most);
  } else if (scheme == "fixed_point.double_rounding") {
    const Integer shifted = Integer(v) << std::max(r.shift, 0);
    const Integer within = std::clamp(shifted, Integer(INT32_MIN), Integer(INT32_MAX));
    const std::int64_t high = nearest_or_above(within * r.multiplier, Integer(1) << 31, INT32_MIN, INT32_MAX);
    const Integer divisor = Integer(1) << -std::min(r.shift, 0);
    const std::int64_t away = nearest_or_above(Integer(high < 0 ? -high : high), divisor, 0, std::int64_t{1} << 32);
    z = std::clamp<std::int64_t>(high < 0 ? -away : away, least, most);
  } else {
    z = search_float_product(v, r.scale, least, most);
  }
  return r.zero_point + static_cast<int>(z);
}

constexpr Oracle kSearch = {"search",          search_choose_tensor_scale, search_choose,    search_quantize,
                            search_dequantize, search_saturated,           search_requantize};

}  // namespace

const Oracle& search_oracle() { return kSearch; }

}  // namespace assay
