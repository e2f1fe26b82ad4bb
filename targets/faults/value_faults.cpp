// Values decoded wrong.
#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include "targets/faults/parts.h"

namespace assay {
namespace {

float exact_value(int code, int zero_point, float scale) {
  const float value = static_cast<float>(code - zero_point) * scale;
  return std::clamp(value, -std::numeric_limits<float>::max(), std::numeric_limits<float>::max());
}
float sign_extension_lost(int code, int zero_point, float scale) {
  return exact_value(code < 0 ? code + 256 : code, zero_point, scale);
}
float flushed_value(int code, int zero_point, float scale) {
  const float value = exact_value(code, zero_point, scale);
  return std::fpclassify(value) == FP_SUBNORMAL ? 0 : value;
}
float overflowing_value(int code, int zero_point, float scale) { return static_cast<float>(code - zero_point) * scale; }
float low_plus_steps(int code, int zero_point, float scale) {
  return static_cast<float>(code) * scale + static_cast<float>(-zero_point) * scale * (1 + 0x1p-23f);
}
float subtracts_after_scaling(int code, int zero_point, float scale) {
  const float value = static_cast<float>(code) * scale - static_cast<float>(zero_point) * scale;
  return std::clamp(std::isnan(value) ? 0.0f : value, -std::numeric_limits<float>::max(),
                    std::numeric_limits<float>::max());
}

// Values of half precision pass through f32, and `Narrowed` makes of them what is stored.
using Narrowed = Bits (*)(Format, float magnitude);

template <Narrowed NarrowedOf>
Target narrowing_fault() {
  Target t = base();
  t.dequantize = [right = t.dequantize](const Request& r, const void* codes, const void* scales,
                                        const std::int32_t* zero_points, void* values) {
    const Format o = r.options.output_format;
    if (o == Format::f32 || r.options.code_format) return right(r, codes, scales, zero_points, values);
    Options options = r.options;
    options.output_format = Format::f32;
    std::vector<float> wide(element_count(r.shape));
    const Status status =
        right({r.scheme, options, r.format, r.shape, r.tensor_scale}, codes, scales, zero_points, wide.data());
    if (status != Status::ok) return status;
    const DefaultEnvironment environment;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      Bits bits = NarrowedOf(o, std::fabs(wide[i]));
      if (std::signbit(wide[i])) bits |= sign_bit(o);
      store_pattern(values, o, i, bits);
    }
    return status;
  };
  return t;
}
Bits rounded_twice(Format f, float magnitude) { return std::min(plain_scale(f, magnitude), largest_finite(f)); }
Bits overflowing(Format f, float magnitude) { return plain_scale(f, magnitude); }

constexpr std::array kFaults = {
    Fault{"value_overflows", "public bugs: overflow on decode", "nan_free", value_fault<overflowing_value>},
    Fault{"zero_is_no_fixed_point", "PyTorch fake quant: low + k * step", "zero_exact", value_fault<low_plus_steps>},
    Fault{"subtracts_after_scaling", "public bugs: two roundings on decode", "legal_values",
          value_fault<subtracts_after_scaling>},
    Fault{"rounds_value_twice", "public bugs: f32 on the way to half precision", "legal_values",
          narrowing_fault<rounded_twice>},
    Fault{"half_value_overflows", "public bugs: a cast to half precision that overflows", "nan_free",
          narrowing_fault<overflowing>},
    Fault{"sign_extension_lost", "public bugs: signed codes read as unsigned", "zero_exact",
          value_fault<sign_extension_lost>},
    Fault{"flushes_subnormal_values", "public bugs: FTZ on decode", "legal_values", value_fault<flushed_value>},
};

}  // namespace

Target innocent_values() { return value_fault<exact_value>(); }

std::span<const Fault> value_faults() { return kFaults; }

}  // namespace assay
