#include "targets/faults/parts.h"

#include <algorithm>
#include <limits>

namespace assay {

float at(const void* x, Format format, std::size_t i) {
  return static_cast<float>(to_double(format, load_pattern(x, format, i)));
}

BlockView view(const Request& r, const void* x, const Block& block) {
  float least = std::numeric_limits<float>::infinity(), greatest = -least;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const float value = at(x, r.format, block.at(i));
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (least > greatest) least = greatest = 0;
  return {r.options,
          x,
          r.format,
          block,
          r.scheme == "assay.symmetric",
          std::min(least, 0.0f),
          std::max(greatest, 0.0f),
          least,
          greatest,
          code_range(r.options)};
}

Bits plain_scale(Format f, double value) {
  if (!(value > 0)) return value == 0 ? 0 : quiet_nan(f);
  if (value > to_double(f, largest_finite(f)) * (1 + 1e-9)) return infinity(f);
  Bits low = 0, high = largest_finite(f);
  while (high - low > 1) {
    const Bits middle = low + (high - low) / 2;
    (to_double(f, middle) <= value ? low : high) = middle;
  }
  const double down = value - to_double(f, low), up = to_double(f, high) - value;
  return down < up || (down == up && low % 2 == 0) ? low : high;
}

double plain_step(const BlockView& v) {
  if (v.symmetric) return std::max(double{v.hi} / v.codes.qmax, double{v.lo} / v.codes.qmin);
  return (double{v.hi} - double{v.lo}) / (v.codes.qmax - v.codes.qmin);
}

bool guarded(Format f, Bits scale) { return is_finite(f, scale) && !is_zero(f, scale) && !is_subnormal(f, scale); }

Target base() {
  Target t = best_quantizer();
  t.quantize_dynamic = nullptr;
  t.other_isas = nullptr;
  t.other_thread_counts = nullptr;
  return t;
}

int clamped(double code, CodeRange c) {
  if (std::isnan(code)) return c.qmin;
  return static_cast<int>(std::min(std::max(code, double(c.qmin)), double(c.qmax)));
}

int exact_code(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  const double k = std::nearbyint(double{e.x} / double{e.scale});
  return clamped(k + e.zero_point, e.codes);
}

}  // namespace assay
