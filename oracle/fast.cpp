// The twin: the exact formulas in 128-bit integers, for sweeps and fuzzers. No floating-point arithmetic, no allocation.
#include <bit>

#include "oracle/oracle.h"
#include "oracle/schemes.h"

namespace assay {
namespace {

__extension__ typedef unsigned __int128 uint128;

// magnitude * 2^exponent with its sign; magnitude 0 is zero. Significands have at most 24 bits as decoded.
struct Dyadic {
  bool negative;
  std::uint64_t magnitude;
  int exponent;
};

Dyadic decode(Format format, Bits bits) {
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  const Bits magnitude = bits & ~sign_bit(format);
  const int biased = static_cast<int>(magnitude >> width);
  const Bits hidden = Bits{1} << width;
  const Bits significand = biased == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
  return {is_negative(format, bits), significand, (biased == 0 ? 1 : biased) - 1 + f.min_exponent - width};
}

int top_bit(uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 64 + static_cast<int>(std::bit_width(high)) : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
}

// The one rounding of this file: (value + fraction) * 2^exponent for a fraction in [0, 1) that is 0 unless `sticky`.
Bits round(Format format, bool negative, uint128 value, int exponent, bool sticky) {
  const FormatInfo& f = info(format);
  const Bits sign = negative ? sign_bit(format) : 0;
  if (value == 0 && !sticky) return sign;
  const int lead = std::max(top_bit(value) - 1 + exponent, f.min_exponent);
  const int drop = lead - (f.precision - 1) - exponent;
  uint128 significand;
  if (drop <= 0) {
    significand = value << -drop;  // callers keep enough bits, so that a sticky fraction never meets this branch
  } else if (drop > 126) {
    significand = 0;
  } else {
    significand = value >> drop;
    const uint128 rest = value - (significand << drop), half = uint128{1} << (drop - 1);
    if (rest > half || (rest == half && (sticky || (significand & 1) != 0))) ++significand;
  }
  const std::int64_t pattern =
      (static_cast<std::int64_t>(lead - f.min_exponent) << (f.precision - 1)) + static_cast<std::int64_t>(significand);
  if (lead > f.max_exponent || pattern >= static_cast<std::int64_t>(infinity(format))) return sign | infinity(format);
  return sign | static_cast<Bits>(pattern);
}

// Sign of a - b for non-negative numbers whose magnitudes have at most 62 bits.
int compare(std::uint64_t a, int a_exponent, std::uint64_t b, int b_exponent) {
  if (a == 0 || b == 0) return (a > 0) - (b > 0);
  const int a_top = static_cast<int>(std::bit_width(a)) + a_exponent, b_top = static_cast<int>(std::bit_width(b)) + b_exponent;
  if (a_top != b_top) return a_top < b_top ? -1 : 1;
  const int least = std::min(a_exponent, b_exponent);  // equal tops: the shifts below stay under 62 bits
  const uint128 x = uint128{a} << (a_exponent - least), y = uint128{b} << (b_exponent - least);
  return (x > y) - (x < y);
}

// round half to even of base + a / b for non-negative a / b, saturated at `most` steps above base.
int base_plus_quotient(int base, Dyadic a, Dyadic b, int most) {
  if (a.magnitude == 0) return base;
  const int shift = a.exponent - b.exponent;
  // Both significands have 24 bits or less: beyond these shifts the quotient is above 2^12 or below 2^-12.
  if (shift + static_cast<int>(std::bit_width(a.magnitude)) - static_cast<int>(std::bit_width(b.magnitude)) > 12) return base + most;
  if (shift + static_cast<int>(std::bit_width(a.magnitude)) - static_cast<int>(std::bit_width(b.magnitude)) < -12) return base;
  const uint128 numerator = uint128{a.magnitude} << std::max(shift, 0), denominator = uint128{b.magnitude} << std::max(-shift, 0);
  const auto quotient = static_cast<int>(numerator / denominator);
  const uint128 twice = 2 * (numerator % denominator);
  const int floor = base + quotient;
  const bool up = twice > denominator || (twice == denominator && floor % 2 != 0);
  return std::min(floor + up, base + most);
}

struct Ends {
  Bits lo = 0, hi = 0;
};

Ends ends_of(Format format, std::span<const Bits> x) {
  std::int64_t lo = 0, hi = 0;
  for (const Bits bits : x) {
    if (!is_finite(format, bits)) continue;
    lo = std::min(lo, ordinal(format, bits));
    hi = std::max(hi, ordinal(format, bits));
  }
  return {from_ordinal(format, lo), from_ordinal(format, hi)};
}

// (a + b) / divisor rounded to the scale format. The larger addend is shifted up by 64 bits; what of the smaller falls
// below that window is a fraction eps in (0, 1) of its unit, and floor((A + eps) / d) = floor(A / d) with a remainder.
Bits rounded_sum_quotient(Format s, Dyadic a, Dyadic b, int divisor) {
  const bool a_leads = b.magnitude == 0 || (a.magnitude != 0 && a.exponent >= b.exponent);
  const Dyadic& large = a_leads ? a : b;
  const Dyadic& small = a_leads ? b : a;
  uint128 sum = uint128{large.magnitude} << 64;
  const int exponent = large.exponent - 64;
  bool sticky = false;
  if (small.magnitude != 0) {
    const int down = exponent - small.exponent;
    if (down <= 0) {
      sum += uint128{small.magnitude} << -down;
    } else if (down < 64) {
      sum += small.magnitude >> down;
      sticky = (small.magnitude & ((std::uint64_t{1} << down) - 1)) != 0;
    } else {
      sticky = true;
    }
  }
  const auto d = static_cast<uint128>(divisor);
  return round(s, false, sum / d, exponent, sticky || sum % d != 0);
}

// x beyond the reach of the codes by more than half a scale: 2|x| > (2 steps + 1) * s on its side of zero.
bool beyond(Dyadic x, CodeRange codes, Dyadic s, int zero_point) {
  const int steps = x.negative ? zero_point - codes.qmin : codes.qmax - zero_point;
  const int odd = 2 * steps + 1;
  if (odd < 0) return true;
  return compare(2 * x.magnitude, x.exponent, s.magnitude * static_cast<std::uint64_t>(odd), s.exponent) > 0;
}

bool wide(const Options& options, Format format) {
  return format == Format::f64 || options.scale_format == Format::f64 || options.output_format == Format::f64;
}

int fast_quantize(const Options& options, Format format, QParams q, Bits x) {
  if (wide(options, format)) return exact_oracle().quantize(options, format, q, x);
  const CodeRange codes = code_range(options);
  if (is_nan(format, x)) return q.zero_point;
  if (is_inf(format, x)) return is_negative(format, x) ? codes.qmin : codes.qmax;
  const Dyadic a = decode(format, x);
  const int steps = base_plus_quotient(0, a, decode(options.scale_format, q.scale), 4096);
  const int code = q.zero_point + (a.negative ? -steps : steps);
  return std::min(std::max(code, codes.qmin), codes.qmax);
}

Bits fast_dequantize(const Options& options, QParams q, int code) {
  if (wide(options, Format::f32)) return exact_oracle().dequantize(options, q, code);
  const int k = code - q.zero_point;
  const Dyadic s = decode(options.scale_format, q.scale);
  const auto magnitude = static_cast<std::uint64_t>(k < 0 ? -k : k) * s.magnitude;
  const Bits value = round(options.output_format, k < 0, magnitude, s.exponent, false);
  if (!is_inf(options.output_format, value)) return value;
  return largest_finite(options.output_format) | (value & sign_bit(options.output_format));
}

bool fast_saturated(const Options& options, Format format, QParams q, Bits x) {
  if (wide(options, format)) return exact_oracle().saturated(options, format, q, x);
  return is_finite(format, x) &&
         beyond(decode(format, x), code_range(options), decode(options.scale_format, q.scale), q.zero_point);
}

QParams fast_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x) {
  const bool symmetric = scheme == "assay.symmetric";
  if (wide(options, format) || (!symmetric && scheme != "assay.asymmetric")) {
    return exact_oracle().choose_qparams(scheme, options, format, x);
  }
  const CodeRange codes = code_range(options);
  const Ends ends = ends_of(format, x);
  const Dyadic lo = decode(format, ends.lo), hi = decode(format, ends.hi);
  const Format s = options.scale_format;
  Bits scale;
  if (lo.magnitude == 0 && hi.magnitude == 0) {
    scale = static_cast<Bits>(-info(s).min_exponent + 1) << (info(s).precision - 1);  // 1.0
  } else if (symmetric) {
    // hi/qmax against |lo|/|qmin|, cross-multiplied.
    const auto top = static_cast<std::uint64_t>(codes.qmax), bottom = static_cast<std::uint64_t>(-codes.qmin);
    const bool by_hi = compare(hi.magnitude * bottom, hi.exponent, lo.magnitude * top, lo.exponent) >= 0;
    scale = rounded_sum_quotient(s, by_hi ? hi : lo, {false, 0, 0}, by_hi ? codes.qmax : -codes.qmin);
  } else {
    scale = rounded_sum_quotient(s, hi, lo, codes.qmax - codes.qmin);
  }
  if (is_zero(s, scale)) scale = smallest_positive(s);
  if (is_inf(s, scale)) scale = largest_finite(s);
  const auto zero_point = [&] {
    if (symmetric) return 0;
    return base_plus_quotient(codes.qmin, lo, decode(s, scale), codes.qmax - codes.qmin);
  };
  int zp = zero_point();
  const Dyadic stored = decode(s, scale);
  if ((beyond(hi, codes, stored, zp) || beyond(lo, codes, stored, zp)) && scale != largest_finite(s)) {
    scale = next_up(s, scale);
    zp = zero_point();
  }
  return {scale, zp};
}

constexpr Oracle kFast = {"fast", fast_choose, fast_quantize, fast_dequantize, fast_saturated};

}  // namespace

const Oracle& fast_oracle() { return kFast; }

}  // namespace assay
