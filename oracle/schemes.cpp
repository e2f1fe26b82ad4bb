#include "oracle/schemes.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

// ------------------------------------------------------------------------------------------- steps and zero points

Real symmetric_step(const Range& range, const Options& options, const Real&) {
  const CodeRange codes = code_range(options);
  return max(range.hi / codes.qmax, range.lo / codes.qmin);
}

Real asymmetric_step(const Range& range, const Options& options, const Real&) {
  const CodeRange codes = code_range(options);
  return (range.hi - range.lo) / (codes.qmax - codes.qmin);
}

Real largest(Format format) { return Real(format, largest_finite(format)); }

Real float_step(const Range& range, const Options& options, const Real& tensor_scale) {
  return greatest(range) / (largest(*options.code_format) * tensor_scale);
}

Real nvfp4_tensor_step(const Range& of_tensor) {
  return greatest(of_tensor) / (largest(Format::e2m1) * largest(Format::e4m3fn));
}

int no_zero_point(const Range&, CodeRange, const Real&) { return 0; }

int asymmetric_zero_point(const Range& range, CodeRange codes, const Real& scale) {
  return to_int(clamp(rne(codes.qmin - range.lo / scale), codes.qmin, codes.qmax));
}

// ------------------------------------------------------------------------------------------- accumulators

const Real kHalf = Real::ratio(1, 2);

Real half_up(const Real& value) { return floor(value + kHalf); }
Real half_away(const Real& value) { return value.is_negative() ? -half_up(-value) : half_up(value); }

Real within_int32(const Real& value) { return clamp(value, Real::ratio(INT32_MIN, 1), Real::ratio(INT32_MAX, 1)); }

Real exact_rescaled(const Real& v, const Rescale& r) {
  return rne(v * Real::ratio(r.multiplier, 1) / Real::ratio(r.divisor, 1));
}

Real single_rounded(const Real& v, const Rescale& r) {
  return half_up(v * Real::ratio(r.multiplier, 1) * power_of_two(r.shift - 31));
}

// gemmlowp: a saturating shift to the left, SaturatingRoundingDoublingHighMul, RoundingDivideByPOT.
Real double_rounded(const Real& v, const Rescale& r) {
  const Real shifted = within_int32(v * power_of_two(std::max(r.shift, 0)));
  const Real high = half_up(shifted * Real::ratio(r.multiplier, 1) * power_of_two(-31));
  return half_away(high * power_of_two(std::min(r.shift, 0)));
}

Real float_rescaled(const Real& v, const Rescale& r) {
  const Real rounded(Format::f32, rn(Format::f32, v));
  return rne(Real(Format::f32, rn(Format::f32, rounded * Real(Format::f32, r.scale))));
}

// ------------------------------------------------------------------------------------------- the table

constexpr std::string_view kCanonicalSource =
    "Assay's canonical schemes (oracle/README.md): total functions, finite in, finite out";
constexpr std::string_view kMxSource =
    "OCP Microscaling Formats (MX) specification 1.0, section 6.3, and the four ways in use to round the shared "
    "exponent; made total as oracle/README.md says";
constexpr std::string_view kNvfp4Source =
    "NVFP4 as TensorRT and its exporters have it: e2m1 codes, e4m3 scales of 16 elements, an f32 scale of the tensor; "
    "made total as oracle/README.md says";

constexpr std::string_view kSymmetricRounding =
    "scale: R_S(step) once, moved up one value if an end of the range would be out of reach; code: rne(x/s); value: "
    "R_O((q - zp)*s)";
constexpr std::string_view kAsymmetricRounding =
    "scale: R_S(step) once, moved up one value if an end of the range would be out of reach; zero point: rne(qmin - "
    "lo/s); code: rne(x/s); value: R_O((q - zp)*s)";
constexpr std::string_view kFloatRounding =
    "scale: R_S(step) once, moved up one value if the greatest magnitude would be out of reach; code: R_F(x/s); value: "
    "R_O(F(q)*s)";
constexpr std::string_view kMxRounding =
    "scale: a power of two by scale_rounding (even: the greatest magnitude is first rounded to the precision of F); "
    "code: R_F(x/s); value: R_O(F(q)*s)";
constexpr std::string_view kNvfp4Rounding =
    "tensor scale t: R_f32 once; scale: R_e4m3fn(step) once; either moved up one value if the greatest magnitude would "
    "be out of reach; code: R_e2m1(x/(s*t)); value: R_O(F(q)*s*t)";

Options float_defaults() {
  Options o;
  o.code_format = Format::e4m3fn;
  return o;
}

Options mx_defaults() {
  Options o = float_defaults();
  o.scale_format = Format::e8m0;
  o.granularity = Granularity::per_block;
  return o;
}

Options nvfp4_defaults() {
  Options o;
  o.code_format = Format::e2m1;
  o.scale_format = Format::e4m3fn;
  o.granularity = Granularity::per_block;
  o.block = 16;
  return o;
}

SchemeInfo integers(std::string_view name, std::string_view summary, std::string_view rounding, bool symmetric) {
  return {name, summary, kCanonicalSource, rounding, CodeKind::integer, symmetric, false, {}};
}

SchemeInfo floats(std::string_view name, std::string_view summary, std::string_view source, std::string_view rounding,
                  bool two_levels, const Options& defaults) {
  return {name, summary, source, rounding, CodeKind::floating, true, two_levels, defaults};
}

SchemeInfo accumulators(std::string_view name, std::string_view summary, std::string_view source,
                        std::string_view rounding) {
  return {name, summary, source, rounding, CodeKind::requantized, false, false, {}};
}

Scheme rescaling(const SchemeInfo& info, Real (*rescaled)(const Real&, const Rescale&)) {
  Scheme scheme;
  scheme.info = info;
  scheme.rescaled = rescaled;
  return scheme;
}

const std::array<Scheme, 9> kSchemes = {{
    {integers("assay.symmetric", "full-range symmetric: zero point 0, the step covers both qmin and qmax",
              kSymmetricRounding, true),
     symmetric_step, no_zero_point},
    {integers("assay.asymmetric", "affine with an integer zero point; the range always includes zero",
              kAsymmetricRounding, false),
     asymmetric_step, asymmetric_zero_point},
    {floats("assay.float", "float codes (e4m3fn, e5m2, e2m1) under a float scale", kCanonicalSource, kFloatRounding,
            false, float_defaults()),
     float_step, no_zero_point},
    {floats("assay.mx", "microscaling: float codes in blocks under a power of two", kMxSource, kMxRounding, false,
            mx_defaults()),
     float_step, no_zero_point},
    {floats("assay.nvfp4", "e2m1 codes in blocks under an e4m3fn scale, and an f32 scale of the tensor", kNvfp4Source,
            kNvfp4Rounding, true, nvfp4_defaults()),
     float_step, no_zero_point, nvfp4_tensor_step},
    rescaling(accumulators("fixed_point.exact", "int32 accumulators by a rational multiplier", kCanonicalSource,
                           "code: rne(v*multiplier/divisor)"),
              exact_rescaled),
    rescaling(accumulators("fixed_point.single_rounding", "int32 accumulators by a Q31 multiplier and a shift",
                           "TFLite MultiplyByQuantizedMultiplier, single rounding; ruy #227",
                           "code: floor(v*multiplier*2^(shift - 31) + 1/2)"),
              single_rounded),
    rescaling(accumulators("fixed_point.double_rounding", "the same with a rounding between multiplication and shift",
                           "gemmlowp SaturatingRoundingDoublingHighMul and RoundingDivideByPOT",
                           "product: floor(v*multiplier/2^31 + 1/2); code: that/2^-shift, half away from zero"),
              double_rounded),
    rescaling(accumulators("fixed_point.float_multiplier", "int32 accumulators by an f32 multiplier",
                           "FBGEMM and XNNPACK fp32 requantization",
                           "accumulator: R_f32; product: R_f32; code: rne(product)"),
              float_rescaled),
}};

// The one check of the canonical schemes. Rounding the scale down can leave an end of the range out of reach, most of
// all among subnormal scales. The next value is at least the exact step, so one move suffices; above the largest finite
// scale there is none.
template <typename Lost>
Bits positive_finite(Format s, const Real& step, Lost lost) {
  Bits scale = step.is_zero() ? rn(s, Real(1)) : rn(s, step);
  if (is_zero(s, scale)) scale = smallest_positive(s);
  if (!is_finite(s, scale)) scale = largest_finite(s);
  return scale != largest_finite(s) && lost(scale) ? next_up(s, scale) : scale;
}

Bits power_of_two_scale(const Options& options, const Real& amax) {
  const FormatInfo& s = info(options.scale_format);
  const int exponent = amax.is_zero() ? 0 : mx_exponent(amax, *options.code_format, options.scale_rounding);
  return static_cast<Bits>(std::clamp(exponent, s.min_exponent, s.max_exponent) - s.min_exponent);
}

// The least e with 2^e >= value.
int ceil_log2(const Real& value) {
  const int e = floor_log2(value);
  return power_of_two(e) == value ? e : e + 1;
}

Real largest_saturated(Format format, bool negative) { return negative ? -largest(format) : largest(format); }

}  // namespace

std::span<const Scheme> scheme_table() { return kSchemes; }

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme& scheme : kSchemes) {
    if (scheme.info.name == name) return &scheme;
  }
  return nullptr;
}

Range range_of(Format format, std::span<const Bits> x) {
  // Comparing patterns on the number line finds the same extremes as comparing reals.
  std::int64_t lo = 0, hi = 0;
  for (const Bits bits : x) {
    if (!is_finite(format, bits)) continue;
    lo = std::min(lo, ordinal(format, bits));
    hi = std::max(hi, ordinal(format, bits));
  }
  return {Real(format, from_ordinal(format, lo)), Real(format, from_ordinal(format, hi))};
}

Real greatest(const Range& range) { return max(range.hi, -range.lo); }

int mx_exponent(const Real& amax, Format code_format, ScaleRounding rounding) {
  const FormatInfo& f = info(code_format);
  switch (rounding) {
    case ScaleRounding::floor:
      return floor_log2(amax) - f.max_exponent;
    case ScaleRounding::ceil:
      return ceil_log2(amax) - f.max_exponent;
    case ScaleRounding::even: {
      const Real ulp = power_of_two(floor_log2(amax) - (f.precision - 1));
      return floor_log2(rne(amax / ulp) * ulp) - f.max_exponent;
    }
    case ScaleRounding::rceil:
      return ceil_log2(amax / largest(code_format));
  }
  return 0;
}

QParams store_scale(const Scheme& scheme, const Options& options, const Range& range, Bits tensor_scale) {
  const Format s = options.scale_format;
  if (s == Format::e8m0) return {power_of_two_scale(options, greatest(range)), 0, 0};
  const CodeRange codes = code_range(options);
  const Real tensor = tensor_scale == 0 ? Real(1) : Real(Format::f32, tensor_scale);
  const auto zero_point = [&](Bits scale) { return scheme.zero_point(range, codes, Real(s, scale)); };
  const auto lost = [&](Bits scale) {
    const Real effective = Real(s, scale) * tensor;
    return out_of_reach(range.hi, options, effective, zero_point(scale)) ||
           out_of_reach(range.lo, options, effective, zero_point(scale));
  };
  const Bits scale = positive_finite(s, scheme.step(range, options, tensor), lost);
  return {scale, zero_point(scale), tensor_scale};
}

Bits store_tensor_scale(const Scheme& scheme, const Range& of_tensor) {
  if (scheme.tensor_step == nullptr) return 0;
  const Options options = scheme.info.defaults;
  const Real most(options.scale_format, largest_finite(options.scale_format));
  return positive_finite(Format::f32, scheme.tensor_step(of_tensor), [&](Bits scale) {
    return out_of_reach(greatest(of_tensor), options, most * Real(Format::f32, scale), 0);
  });
}

Real scale_of(const Options& options, QParams q) {
  const Real scale(options.scale_format, q.scale);
  return q.tensor_scale == 0 ? scale : scale * Real(Format::f32, q.tensor_scale);
}

Reach reach_of(const Options& options, const Real& scale, int zero_point) {
  const CodeRange codes = code_range(options);
  if (!options.code_format) {
    return {Real::ratio(2 * (codes.qmin - zero_point) - 1, 2) * scale,
            Real::ratio(2 * (codes.qmax - zero_point) + 1, 2) * scale};
  }
  const Format f = *options.code_format;
  const Real top = largest(f), gap = top - Real(f, next_down(f, largest_finite(f)));
  const Real high = (top + gap / 2) * scale;
  return {-high, high};
}

bool out_of_reach(const Real& x, const Options& options, const Real& scale, int zero_point) {
  const Reach reach = reach_of(options, scale, zero_point);
  return x > reach.high || x < reach.low;
}

int code_of(const Real& x, const Options& options, const Real& scale, int zero_point) {
  if (x.is_nan()) return zero_point;
  if (!options.code_format) {
    const CodeRange codes = code_range(options);
    return to_int(clamp(rne(x / scale) + zero_point, codes.qmin, codes.qmax));
  }
  const Format f = *options.code_format;
  const Bits code = rn(f, x / scale);
  return static_cast<int>(is_finite(f, code) ? code : rn(f, largest_saturated(f, x.is_negative())));
}

Real exact_value_of(int code, const Options& options, const Real& scale, int zero_point) {
  if (options.code_format) return Real(*options.code_format, static_cast<Bits>(code)) * scale;
  return Real(code - zero_point) * scale;
}

Bits value_of(int code, const Options& options, const Real& scale, int zero_point) {
  const Format o = options.output_format;
  const Bits value = rn(o, exact_value_of(code, options, scale, zero_point));
  if (!is_inf(o, value)) return value;
  return largest_finite(o) | (value & sign_bit(o));
}

Real biased(std::int32_t accumulator, const Rescale& r) {
  return within_int32(Real::ratio(accumulator, 1) + Real::ratio(r.bias, 1));
}

int requantized(const Scheme& scheme, const Options& options, const Rescale& r, std::int32_t accumulator) {
  const CodeRange codes = code_range(options);
  return to_int(clamp(scheme.rescaled(biased(accumulator, r), r) + r.zero_point, codes.qmin, codes.qmax));
}

}  // namespace assay
