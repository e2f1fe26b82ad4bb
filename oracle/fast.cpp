// The twin: the exact formulas in 64 and 128-bit integers, for sweeps and fuzzers. No floating-point arithmetic, no
// allocation.
#include <algorithm>
#include <bit>

#include "oracle/oracle.h"

namespace assay {
namespace {

__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

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
  int unit_exponent;    // of the smallest subnormal
  Bits sign, infinity;  // the pattern after the largest finite one, where a format has no infinity
};

Layout layout_of(Format format) {
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  return {width, f.min_exponent - width, sign_bit(format), largest_finite(format) + 1};
}

Dyadic decode(const Layout& layout, Bits bits) {
  const Bits magnitude = bits & ~layout.sign;
  const int biased = static_cast<int>(magnitude >> layout.fraction_width);
  const Bits hidden = Bits{1} << layout.fraction_width;
  const Bits significand = biased == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
  return {(bits & layout.sign) != 0, significand, std::max(biased - 1, 0) + layout.unit_exponent};
}

Dyadic decode(Format format, Bits bits) {
  if (format == Format::e8m0) return {false, 1, static_cast<int>(bits) + info(format).min_exponent};
  return decode(layout_of(format), bits);
}

int top_bit(std::uint64_t value) { return static_cast<int>(std::bit_width(value)); }

int top_bit(uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 64 + top_bit(high) : top_bit(static_cast<std::uint64_t>(value));
}

// The one rounding of this file: (value + fraction) * 2^exponent for a fraction in [0, 1) that is 0 unless `sticky`. An
// overflow gives infinity or, where there is none, the largest finite number.
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
  if (lead > f.max_exponent || pattern > static_cast<std::int64_t>(largest_finite(format)))
    return sign | (has_infinity(format) ? infinity(format) : largest_finite(format));
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

// ------------------------------------------------------------------------------------------- float codes

// The scale of a block times that of its tensor: at most 24 bits, or 4 and 24.
Dyadic product_of_scales(const Options& options, QParams q) {
  const Dyadic s = decode(options.scale_format, q.scale);
  if (q.tensor_scale == 0) return s;
  const Dyadic t = decode(Format::f32, q.tensor_scale);
  return {false, s.magnitude * t.magnitude, s.exponent + t.exponent};
}

// |a| / b rounded to `format`: 40 more bits than the numerator has keep at least 12 of the quotient, and every format
// of codes has fewer.
Bits rounded_quotient(Format format, Dyadic a, Dyadic b) {
  const uint128 numerator = uint128{a.magnitude} << 40;
  const uint128 quotient = numerator / b.magnitude;
  return round(format, a.negative, quotient, a.exponent - b.exponent - 40, quotient * b.magnitude != numerator);
}

Bits saturated_at_largest(Format format, Bits bits) {
  return is_inf(format, bits) ? largest_finite(format) | (bits & sign_bit(format)) : bits;
}

int fast_float_code(const Options& options, Format format, QParams q, Bits x) {
  const Format f = *options.code_format;
  const Layout layout = layout_of(format);
  const Bits magnitude = x & ~layout.sign;
  if (magnitude > layout.infinity) return 0;
  const Bits sign = (x & layout.sign) != 0 ? sign_bit(f) : 0;
  if (magnitude == layout.infinity) return static_cast<int>(sign | largest_finite(f));
  const Bits code = rounded_quotient(f, decode(layout, x), product_of_scales(options, q));
  return static_cast<int>(saturated_at_largest(f, code));
}

Bits fast_float_value(const Options& options, QParams q, int code) {
  const Dyadic c = decode(*options.code_format, static_cast<Bits>(code)), s = product_of_scales(options, q);
  const Bits value =
      round(options.output_format, c.negative, uint128{c.magnitude} * s.magnitude, c.exponent + s.exponent, false);
  return saturated_at_largest(options.output_format, value);
}

// 2x beyond (3 top - before) times the scale, for the two last numbers of the format.
bool beyond_codes(Format f, Dyadic x, Dyadic scale) {
  const Dyadic top = decode(f, largest_finite(f)), before = decode(f, largest_finite(f) - 1);  // of one binade
  return compare(2 * x.magnitude, x.exponent, (3 * top.magnitude - before.magnitude) * scale.magnitude,
                 top.exponent + scale.exponent) > 0;
}

// Positive and finite, and one value higher if the greatest magnitude is out of reach.
template <typename Lost>
Bits stored_scale(Format s, Dyadic amax, Dyadic most, Lost lost) {
  Bits scale = amax.magnitude == 0 ? round(s, false, 1, 0, false) : 0;
  if (amax.magnitude != 0) {
    const uint128 numerator = uint128{amax.magnitude} << 64;
    const uint128 quotient = numerator / most.magnitude;
    scale = round(s, false, quotient, amax.exponent - most.exponent - 64, quotient * most.magnitude != numerator);
  }
  if (is_zero(s, scale)) scale = smallest_positive(s);
  scale = saturated_at_largest(s, scale);
  return scale != largest_finite(s) && lost(scale) ? next_up(s, scale) : scale;
}

int floor_log2(Dyadic x) { return top_bit(x.magnitude) - 1 + x.exponent; }

int ceil_log2(Dyadic x) { return floor_log2(x) + !std::has_single_bit(x.magnitude); }

// The exponent of an MX scale, for a greatest magnitude above 0.
int power_for(const Options& options, Dyadic amax) {
  const FormatInfo& f = info(*options.code_format);
  switch (options.scale_rounding) {
    case ScaleRounding::floor:
      return floor_log2(amax) - f.max_exponent;
    case ScaleRounding::ceil:
      return ceil_log2(amax) - f.max_exponent;
    case ScaleRounding::even: {
      // Half a step of the code format, added to a significand of 40 bits, carries where rounding would.
      const int up = 40 - top_bit(amax.magnitude);
      const std::uint64_t half = std::uint64_t{1} << (40 - f.precision - 1);
      return floor_log2({false, (amax.magnitude << up) + half, amax.exponent - up}) - f.max_exponent;
    }
    case ScaleRounding::rceil: {
      const Dyadic top = decode(f.format, largest_finite(f.format));
      const int least = floor_log2(amax) - floor_log2(top);
      return least + (compare(amax.magnitude, amax.exponent, top.magnitude, top.exponent + least) > 0);
    }
  }
  return 0;
}

QParams fast_choose_float(const Options& options, Dyadic amax, Bits tensor_scale) {
  const Format f = *options.code_format, s = options.scale_format;
  if (s == Format::e8m0) {
    const int exponent = amax.magnitude == 0 ? 0 : power_for(options, amax);
    return {static_cast<Bits>(std::clamp(exponent, -127, 127) + 127), 0, 0};
  }
  Dyadic most = decode(f, largest_finite(f));
  if (tensor_scale != 0) {
    const Dyadic t = decode(Format::f32, tensor_scale);
    most = {false, most.magnitude * t.magnitude, most.exponent + t.exponent};
  }
  const Bits scale = stored_scale(s, amax, most, [&](Bits candidate) {
    return beyond_codes(f, amax, product_of_scales(options, {candidate, 0, tensor_scale}));
  });
  return {scale, 0, tensor_scale};
}

Dyadic greatest(Format format, std::span<const Bits> x) {
  const Layout layout = layout_of(format);
  const Ends ends = ends_of(layout, x);
  return decode(layout, std::max(ends.lo, ends.hi));
}

Bits fast_choose_tensor_scale(std::string_view scheme, Format format, std::span<const Bits> x) {
  if (scheme != "assay.nvfp4") return 0;
  if (format == Format::f64) return exact_oracle().choose_tensor_scale(scheme, format, x);
  const Dyadic amax = greatest(format, x);
  const Dyadic code = decode(Format::e2m1, largest_finite(Format::e2m1));
  const Dyadic scale = decode(Format::e4m3fn, largest_finite(Format::e4m3fn));
  const Dyadic most{false, code.magnitude * scale.magnitude, code.exponent + scale.exponent};
  Options scale_is_e4m3fn;
  scale_is_e4m3fn.scale_format = Format::e4m3fn;
  return stored_scale(Format::f32, amax, most, [&](Bits t) {
    return beyond_codes(Format::e2m1, amax, product_of_scales(scale_is_e4m3fn, {largest_finite(Format::e4m3fn), 0, t}));
  });
}

// ------------------------------------------------------------------------------------------- accumulators

// numerator / denominator, to the nearest whole number; what to do with a tie is the caller's.
enum class Tie : std::uint8_t { even, up, away };

int128 nearest_quotient(int128 numerator, int128 denominator, Tie tie) {
  int128 floor = numerator / denominator;
  if (numerator % denominator < 0) --floor;
  const int128 twice = 2 * (numerator - floor * denominator);
  if (twice != denominator) return floor + (twice > denominator);
  const bool up = tie == Tie::up || (tie == Tie::even ? floor % 2 != 0 : numerator > 0);
  return floor + up;
}

// Half to even of a finite f32 pattern, kept within 32 bits.
int128 nearest_whole(Bits bits) {
  const Dyadic d = decode(Format::f32, bits);
  int128 whole = 0;
  if (d.exponent >= 40) {
    whole = int128{1} << 40;  // far beyond every code
  } else if (d.exponent >= 0) {
    whole = int128{d.magnitude} << d.exponent;
  } else if (d.exponent > -40) {
    whole = nearest_quotient(int128{d.magnitude}, int128{1} << -d.exponent, Tie::even);
  }
  return d.negative ? -whole : whole;
}

Bits float_product(std::int64_t v, Bits scale) {
  const Bits rounded = round(Format::f32, v < 0, static_cast<std::uint64_t>(v < 0 ? -v : v), 0, false);
  const Dyadic a = decode(Format::f32, rounded), b = decode(Format::f32, scale);
  return saturated_at_largest(
      Format::f32, round(Format::f32, a.negative, uint128{a.magnitude} * b.magnitude, a.exponent + b.exponent, false));
}

int fast_requantize(std::string_view scheme, const Options& options, const Rescale& r, std::int32_t accumulator) {
  const CodeRange codes = code_range(options);
  const auto within_int32 = [](int128 value) { return std::clamp(value, int128{INT32_MIN}, int128{INT32_MAX}); };
  const int128 v = within_int32(int128{accumulator} + r.bias);
  int128 z = 0;
  if (scheme == "fixed_point.exact") {
    z = nearest_quotient(v * r.multiplier, r.divisor, Tie::even);
  } else if (scheme == "fixed_point.single_rounding") {
    z = nearest_quotient(v * r.multiplier, int128{1} << (31 - r.shift), Tie::up);
  } else if (scheme == "fixed_point.double_rounding") {
    const int128 shifted = within_int32(v * (int128{1} << std::max(r.shift, 0)));
    const int128 high = nearest_quotient(shifted * r.multiplier, int128{1} << 31, Tie::up);
    z = nearest_quotient(high, int128{1} << -std::min(r.shift, 0), Tie::away);
  } else {
    z = nearest_whole(float_product(static_cast<std::int64_t>(v), r.scale));
  }
  return static_cast<int>(std::clamp(z + r.zero_point, int128{codes.qmin}, int128{codes.qmax}));
}

// ------------------------------------------------------------------------------------------- the oracle

bool wide(const Options& options, Format format) {
  return format == Format::f64 || options.scale_format == Format::f64 || options.output_format == Format::f64;
}

int fast_quantize(const Options& options, Format format, QParams q, Bits x) {
  if (wide(options, format)) return exact_oracle().quantize(options, format, q, x);
  if (options.code_format) return fast_float_code(options, format, q, x);
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
  if (options.code_format) return fast_float_value(options, q, code);
  const int k = code - q.zero_point;
  const Dyadic s = decode(options.scale_format, q.scale);
  const auto magnitude = static_cast<std::uint64_t>(k < 0 ? -k : k) * s.magnitude;
  return saturated_at_largest(options.output_format, round(options.output_format, k < 0, magnitude, s.exponent, false));
}

bool fast_saturated(const Options& options, Format format, QParams q, Bits x) {
  if (wide(options, format)) return exact_oracle().saturated(options, format, q, x);
  if (!is_finite(format, x)) return false;
  if (options.code_format) return beyond_codes(*options.code_format, decode(format, x), product_of_scales(options, q));
  return beyond(decode(format, x), code_range(options), decode(options.scale_format, q.scale), q.zero_point);
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

QParams fast_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                    Bits tensor_scale) {
  if (wide(options, format)) return exact_oracle().choose_qparams(scheme, options, format, x, tensor_scale);
  if (options.code_format) return fast_choose_float(options, greatest(format, x), tensor_scale);
  const bool symmetric = scheme == "assay.symmetric";
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
  return {scale, zp, 0};
}

constexpr Oracle kFast = {"fast",          fast_choose_tensor_scale, fast_choose,    fast_quantize,
                          fast_dequantize, fast_saturated,           fast_requantize};

}  // namespace

const Oracle& fast_oracle() { return kFast; }

}  // namespace assay
