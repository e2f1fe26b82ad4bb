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

Integer units(Format format, Bits bits) {
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  const Bits magnitude = bits & ~sign_bit(format);
  const int biased = static_cast<int>(magnitude >> width);
  const Bits fraction = magnitude & ((Bits{1} << width) - 1);
  const Bits significand = biased == 0 ? fraction : fraction | Bits{1} << width;
  const std::int64_t signed_significand = static_cast<std::int64_t>(significand) * (is_negative(format, bits) ? -1 : 1);
  Integer value = signed_significand;
  value <<= std::max(biased, 1) - 1 + f.min_exponent - width + kUnit;
  return value;
}

// The value of `format` nearest to numerator/denominator units, the even pattern on equal distance; one step past the
// largest finite value stands for infinity, as if the exponent range went on.
Bits nearest_pattern(Format format, const Integer& numerator, int denominator) {
  const auto below = [&](Bits pattern) { return units(format, pattern) * denominator <= numerator; };
  Bits low = 0, high = infinity(format);  // units() of infinity's pattern is the power of two that it would be
  if (below(high)) return high;
  while (high - low > 1) {
    const Bits middle = low + (high - low) / 2;
    (below(middle) ? low : high) = middle;
  }
  const Integer down = numerator - units(format, low) * denominator, up = units(format, high) * denominator - numerator;
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

bool lost(const Integer& x, CodeRange codes, const Integer& s, int zero_point) {
  return 2 * x > s * (2 * (codes.qmax - zero_point) + 1) || 2 * x < s * (2 * (codes.qmin - zero_point) - 1);
}

int search_quantize(const Options& options, Format format, QParams q, Bits x) {
  const CodeRange codes = code_range(options);
  if (is_nan(format, x)) return q.zero_point;
  if (is_inf(format, x)) return is_negative(format, x) ? codes.qmin : codes.qmax;
  return q.zero_point + nearest_multiple(units(format, x), units(options.scale_format, q.scale),
                                         codes.qmin - q.zero_point, codes.qmax - q.zero_point);
}

Bits search_dequantize(const Options& options, QParams q, int code) {
  const Format o = options.output_format;
  const Integer value = units(options.scale_format, q.scale) * (code - q.zero_point);
  const Bits nearest = nearest_pattern(o, boost::multiprecision::abs(value), 1);
  const Bits sign = value < 0 ? sign_bit(o) : 0;
  return sign | std::min(nearest, largest_finite(o));
}

bool search_saturated(const Options& options, Format format, QParams q, Bits x) {
  return is_finite(format, x) &&
         lost(units(format, x), code_range(options), units(options.scale_format, q.scale), q.zero_point);
}

QParams search_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x) {
  const bool symmetric = scheme == "assay.symmetric";
  if (!symmetric && scheme != "assay.asymmetric") {
    return exact_oracle().choose_qparams(scheme, options, format, x);
  }
  const CodeRange codes = code_range(options);
  const Format s = options.scale_format;
  Integer lo = 0, hi = 0;
  for (const Bits bits : x) {
    if (!is_finite(format, bits)) continue;
    lo = std::min(lo, units(format, bits));
    hi = std::max(hi, units(format, bits));
  }
  Integer numerator = hi - lo;
  int denominator = codes.qmax - codes.qmin;
  if (symmetric) {
    const bool by_hi = hi * -codes.qmin >= -lo * codes.qmax;
    numerator = by_hi ? hi : Integer(-lo);
    denominator = by_hi ? codes.qmax : -codes.qmin;
  }
  Bits scale = numerator == 0 ? nearest_pattern(s, Integer(1) << kUnit, 1) : nearest_pattern(s, numerator, denominator);
  scale = std::min(std::max(scale, smallest_positive(s)), largest_finite(s));
  const auto zero_point = [&] {
    if (symmetric) return 0;
    const Integer step = units(s, scale);
    return nearest_multiple(step * codes.qmin - lo, step, codes.qmin, codes.qmax);
  };
  int zp = zero_point();
  if ((lost(hi, codes, units(s, scale), zp) || lost(lo, codes, units(s, scale), zp)) && scale != largest_finite(s)) {
    scale = next_up(s, scale);
    zp = zero_point();
  }
  return {scale, zp};
}

constexpr Oracle kSearch = {"search", search_choose, search_quantize, search_dequantize, search_saturated};

}  // namespace

const Oracle& search_oracle() { return kSearch; }

}  // namespace assay
