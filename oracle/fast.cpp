// The twin: the exact formulas in 64 and 128-bit integers, for sweeps and fuzzers. No floating-point arithmetic, no
// allocation.
#include <algorithm>
#include <bit>

#include "oracle/oracle.h"

namespace assay {
namespace {

__extension__ typedef unsigned __int128 uint128;

// magnitude * 2^exponent with its sign; magnitude 0 is zero. Significands have at most 24 bits as decoded.
struct Dyadic {
  bool negative;
  std::uint64_t magnitude;
  int exponent;
};

// What decoding needs of a format, worked out once per call: the accessors of spec.h live in another file, and one call
// of them per question costs more than the arithmetic.
struct Layout {
  int fraction_width;
  int unit_exponent;  // of the smallest subnormal
  Bits sign, infinity;
};

Layout layout_of(Format format) {
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  const Bits sign = Bits{1} << (f.width - 1);
  return {width, f.min_exponent - width, sign, sign - (Bits{1} << width)};
}

Dyadic decode(const Layout& layout, Bits bits) {
  const Bits magnitude = bits & ~layout.sign;
  const int biased = static_cast<int>(magnitude >> layout.fraction_width);
  const Bits hidden = Bits{1} << layout.fraction_width;
  const Bits significand = biased == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
  return {(bits & layout.sign) != 0, significand, std::max(biased - 1, 0) + layout.unit_exponent};
}

Dyadic decode(Format format, Bits bits) { return decode(layout_of(format), bits); }

int top_bit(std::uint64_t value) { return static_cast<int>(std::bit_width(value)); }

int top_bit(uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 64 + top_bit(high) : top_bit(static_cast<std::uint64_t>(value));
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
    significand = 0;  // values have at most 90 bits here, so this is less than half of the smallest subnormal
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

// Sign of a * 2^a_exponent - b * 2^b_exponent. Where the leading bits meet, the shift only fills the one number up to
// the width of the other, so nothing is lost.
int compare(std::uint64_t a, int a_exponent, std::uint64_t b, int b_exponent) {
  if (a == 0 || b == 0) return (a > 0) - (b > 0);
  const int a_top = top_bit(a) + a_exponent, b_top = top_bit(b) + b_exponent;
  if (a_top != b_top) return a_top < b_top ? -1 : 1;
  const std::uint64_t x = a << std::max(a_exponent - b_exponent, 0), y = b << std::max(b_exponent - a_exponent, 0);
  return (x > y) - (x < y);
}

// The most steps that a quotient of this file is ever followed to; code ranges are far narrower.
constexpr int kMostSteps = 4096;

// base + |a / b|, rounded half to even as a sum, at most `most` <= kMostSteps above base.
int base_plus_quotient(int base, Dyadic a, Dyadic b, int most) {
  if (a.magnitude == 0) return base;
  const int shift = a.exponent - b.exponent;
  const int tops = top_bit(a.magnitude) + shift - top_bit(b.magnitude);
  // The quotient lies between 2^(tops - 1) and 2^(tops + 1): past kMostSteps above, under any half below.
  if (tops > 12) return base + most;
  if (tops < -12) return base;
  // Between these bounds neither number outgrows the 24 bits of the other's significand by more than 12.
  const std::uint64_t numerator = a.magnitude << std::max(shift, 0), denominator = b.magnitude << std::max(-shift, 0);
  const std::uint64_t quotient = numerator / denominator;
  const std::uint64_t twice = 2 * (numerator - quotient * denominator);
  const int floor = base + static_cast<int>(quotient);
  const bool up = twice > denominator || (twice == denominator && floor % 2 != 0);
  return std::min(floor + up, base + most);
}

// Magnitudes of the ends of a range lo <= 0 <= hi.
struct Ends {
  Bits lo = 0, hi = 0;
};

// Among finite patterns of one sign, the greater magnitude is the greater pattern.
Ends ends_of(const Layout& layout, std::span<const Bits> x) {
  Ends ends;
  for (const Bits bits : x) {
    const Bits magnitude = bits & ~layout.sign;
    if (magnitude >= layout.infinity) continue;
    Bits& end = (bits & layout.sign) != 0 ? ends.lo : ends.hi;
    end = std::max(end, magnitude);
  }
  return ends;
}

// (|a| + |b|) / divisor rounded to the scale format. The addend with the larger exponent is shifted up by 64 bits; what
// of the other falls below that window is a fraction eps in (0, 1) of its unit, and floor((A + eps) / d) = floor(A / d)
// for whole A and d, with a remainder that is not zero: all that the rounding asks of the lost bits. It never lands on
// a tie by mistake, because A is at least 2^64 and so A / d keeps more than 50 bits, twice what a scale holds.
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
  const uint128 quotient = sum / d;
  return round(s, false, quotient, exponent, sticky || quotient * d != sum);
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
  const Layout layout = layout_of(format);
  const Bits magnitude = x & ~layout.sign;
  if (magnitude > layout.infinity) return q.zero_point;
  const Dyadic a = decode(layout, x);
  if (magnitude == layout.infinity) return a.negative ? codes.qmin : codes.qmax;
  const int steps = base_plus_quotient(0, a, decode(options.scale_format, q.scale), kMostSteps);
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

// R_S of the exact step; 1 where the range is a single zero.
Bits rounded_step(bool symmetric, CodeRange codes, Format s, Dyadic lo, Dyadic hi) {
  if (lo.magnitude == 0 && hi.magnitude == 0) return round(s, false, 1, 0, false);
  if (!symmetric) return rounded_sum_quotient(s, hi, lo, codes.qmax - codes.qmin);
  // hi/qmax against lo/qmin, cross-multiplied.
  const auto top = static_cast<std::uint64_t>(codes.qmax), bottom = static_cast<std::uint64_t>(-codes.qmin);
  const bool by_hi = compare(hi.magnitude * bottom, hi.exponent, lo.magnitude * top, lo.exponent) >= 0;
  return rounded_sum_quotient(s, by_hi ? hi : lo, {false, 0, 0}, by_hi ? codes.qmax : -codes.qmin);
}

QParams fast_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x) {
  const bool symmetric = scheme == "assay.symmetric";
  if (wide(options, format) || (!symmetric && scheme != "assay.asymmetric")) {
    return exact_oracle().choose_qparams(scheme, options, format, x);
  }
  const CodeRange codes = code_range(options);
  const Layout layout = layout_of(format);
  const Ends ends = ends_of(layout, x);
  const Dyadic lo = decode(layout, ends.lo | layout.sign), hi = decode(layout, ends.hi);
  const Format s = options.scale_format;
  Bits scale = rounded_step(symmetric, codes, s, lo, hi);
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
