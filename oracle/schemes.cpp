#include "oracle/schemes.h"

#include <array>

namespace assay {
namespace {

constexpr std::string_view kCanonicalSource =
    "Assay's canonical schemes (oracle/README.md): total functions, finite in, finite out";

const std::array<Scheme, 2> kSchemes = {{
    {{"assay.symmetric", "full-range symmetric: zero point 0, the step covers both qmin and qmax", kCanonicalSource,
      "scale: R_S(step) once, moved up one value if an end of the range would be out of reach; code: rne(x/s); "
      "value: R_O((q - zp)*s)",
      true},
     symmetric_step,
     symmetric_zero_point},
    {{"assay.asymmetric", "affine with an integer zero point; the range always includes zero", kCanonicalSource,
      "scale: R_S(step) once, moved up one value if an end of the range would be out of reach; zero point: "
      "rne(qmin - lo/s); code: rne(x/s); value: R_O((q - zp)*s)",
      false},
     asymmetric_step,
     asymmetric_zero_point},
}};

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

Real symmetric_step(const Range& range, CodeRange codes) { return max(range.hi / codes.qmax, range.lo / codes.qmin); }

Real asymmetric_step(const Range& range, CodeRange codes) { return (range.hi - range.lo) / (codes.qmax - codes.qmin); }

int symmetric_zero_point(const Range&, CodeRange, const Real&) { return 0; }

int asymmetric_zero_point(const Range& range, CodeRange codes, const Real& scale) {
  return to_int(clamp(rne(codes.qmin - range.lo / scale), codes.qmin, codes.qmax));
}

bool out_of_reach(const Real& x, CodeRange codes, const Real& scale, int zero_point) {
  return x > Real::ratio(2 * (codes.qmax - zero_point) + 1, 2) * scale ||
         x < Real::ratio(2 * (codes.qmin - zero_point) - 1, 2) * scale;
}

QParams store_scale(const Scheme& scheme, const Options& options, const Range& range) {
  const Format s = options.scale_format;
  const CodeRange codes = code_range(options);
  const Real step = scheme.step(range, codes);
  Bits scale = step.is_zero() ? rn(s, Real(1)) : rn(s, step);
  if (is_zero(s, scale)) scale = smallest_positive(s);
  if (is_inf(s, scale)) scale = largest_finite(s);
  int zero_point = scheme.zero_point(range, codes, Real(s, scale));
  const auto lost = [&](const Real& end) { return out_of_reach(end, codes, Real(s, scale), zero_point); };
  // Rounding the scale down can leave an end of the range out of reach, most of all among subnormal scales. The next
  // value is at least the exact step, so one move suffices; above the largest finite scale there is none.
  if ((lost(range.hi) || lost(range.lo)) && scale != largest_finite(s)) {
    scale = next_up(s, scale);
    zero_point = scheme.zero_point(range, codes, Real(s, scale));
  }
  return {scale, zero_point};
}

int code_of(const Real& x, CodeRange codes, const Real& scale, int zero_point) {
  if (x.is_nan()) return zero_point;
  return to_int(clamp(rne(x / scale) + zero_point, codes.qmin, codes.qmax));
}

Bits value_of(int code, const Real& scale, int zero_point, Format output_format) {
  const Bits value = rn(output_format, Real(code - zero_point) * scale);
  if (!is_inf(output_format, value)) return value;
  return largest_finite(output_format) | (value & sign_bit(output_format));
}

}  // namespace assay
