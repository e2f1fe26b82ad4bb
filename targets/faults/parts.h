// What planted faults are made of: the right quantizer, and places where one step of it can be exchanged.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "targets/adapters/quantizer_adapter.h"
#include "targets/faults/faults.h"

namespace assay {

// The faults, a table in each file.
std::span<const Fault> qparams_faults();
std::span<const Fault> code_faults();
std::span<const Fault> value_faults();
std::span<const Fault> kernel_faults();
std::span<const Fault> float_faults();
std::span<const Fault> packing_faults();
std::span<const Fault> requantize_faults();

// The same machinery with every step done right.
Target innocent_qparams();
Target innocent_codes();
Target innocent_values();

// ------------------------------------------------------------------------------------------- what a fault looks at

/// What a fault may look at when it spoils one block's qparams.
struct BlockView {
  const Options& options;
  const void* x;
  Format format;  // of x
  const Block& block;
  bool symmetric;
  float lo, hi;           // zero included
  float least, greatest;  // as found, zero not included
  CodeRange codes;
};
BlockView view(const Request& r, const void* x, const Block& block);

/// The i-th element, which every input format holds exactly in a float.
float at(const void* x, Format format, std::size_t i);

inline Bits load_scale(const Options& o, const void* scales, std::size_t b) {
  return load_pattern(scales, o.scale_format, b);
}
inline void store_scale(const Options& o, void* scales, std::size_t b, Bits bits) {
  store_pattern(scales, o.scale_format, b, bits);
}

/// The nearest scale pattern by search over its neighbours: plain rounding, without any of the guards.
Bits plain_scale(Format f, double value);
double plain_step(const BlockView& v);
/// A fault about the formula of the scale must not also lose the guards: it spoils only blocks whose scale stays
/// normal.
bool guarded(Format f, Bits scale);

/// The right quantizer in one row, without the paths that would be right although this one is not.
Target base();

/// The faults compute with doubles: what they do in the caller's environment would be a fault of its own.
class DefaultEnvironment {
 public:
  DefaultEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&callers_); }
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

// ------------------------------------------------------------------------------------------- one step exchanged

// All of these leave float codes to the right quantizer.

using SpoilQParams = void (*)(const BlockView&, Bits& scale, std::int32_t& zero_point);

template <SpoilQParams Spoil>
Target qparams_fault() {
  Target t = base();
  t.choose_qparams = [right = t.choose_qparams](const Request& r, const void* x, void* scales,
                                                std::int32_t* zero_points, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, counts);
    if (status != Status::ok || r.options.code_format) return status;
    const DefaultEnvironment environment;
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      Bits scale = load_scale(r.options, scales, b);
      Spoil(view(r, x, blocks[b]), scale, zero_points[b]);
      store_scale(r.options, scales, b, scale);
    }
    return status;
  };
  return t;
}

struct ElementView {
  float x, scale;
  int zero_point;
  CodeRange codes;
};
using Code = int (*)(const ElementView&);

int clamped(double code, CodeRange c);
int exact_code(const ElementView& e);

template <Code CodeOf>
Status quantize_in_callers_environment(const Request& r, const void* x, const void* scales,
                                       const std::int32_t* zero_points, void* codes, Counts* counts) {
  if (r.options.code_format) return best_quantizer().quantize(r, x, scales, zero_points, codes, counts);
  const std::vector<Block> blocks = cut(r.shape, r.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto scale = static_cast<float>(to_double(r.options.scale_format, load_scale(r.options, scales, b)));
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t where = blocks[b].at(i);
      const int code = CodeOf({at(x, r.format, where), scale, zero_points[b], code_range(r.options)});
      static_cast<std::uint8_t*>(codes)[where] = static_cast<std::uint8_t>(code);
    }
  }
  return Status::ok;
}

template <Code CodeOf>
Status quantize_with(const Request& r, const void* x, const void* scales, const std::int32_t* zero_points, void* codes,
                     Counts* counts) {
  const DefaultEnvironment environment;
  return quantize_in_callers_environment<CodeOf>(r, x, scales, zero_points, codes, counts);
}

template <Code CodeOf>
Target code_fault() {
  Target t = base();
  t.counts_special = false;
  t.quantize = quantize_with<CodeOf>;
  return t;
}

using Value = float (*)(int code, int zero_point, float scale);

template <Value ValueOf>
Status dequantize_with(const Request& r, const void* codes, const void* scales, const std::int32_t* zero_points,
                       void* values) {
  if (r.options.code_format) return best_quantizer().dequantize(r, codes, scales, zero_points, values);
  if (r.options.output_format != Format::f32) return Status::unsupported;
  const DefaultEnvironment environment;
  const std::vector<Block> blocks = cut(r.shape, r.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto scale = static_cast<float>(to_double(r.options.scale_format, load_scale(r.options, scales, b)));
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t where = blocks[b].at(i);
      const float value = ValueOf(load_code(codes, r.options, where), zero_points[b], scale);
      std::memcpy(static_cast<std::byte*>(values) + where * sizeof value, &value, sizeof value);
    }
  }
  return Status::ok;
}

template <Value ValueOf>
Target value_fault() {
  Target t = base();
  t.dequantize = dequantize_with<ValueOf>;
  return t;
}

/// The right codes, and then what `Spoil` does to them.
using SpoilCodes = void (*)(const Request&, const void* x, const std::int32_t* zero_points, std::uint8_t* codes,
                            Counts* counts);

template <SpoilCodes Spoil>
Target spoiled_codes_fault() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status == Status::ok) Spoil(r, x, zero_points, static_cast<std::uint8_t*>(codes), counts);
    return status;
  };
  return t;
}

}  // namespace assay
