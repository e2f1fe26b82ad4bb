#include "targets/faults/faults.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include "targets/adapters/quantizer_adapter.h"

namespace assay {
namespace {

// What a fault may look at when it spoils one block's qparams.
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

// The i-th element, which every format here holds exactly in a float.
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

Bits load_scale(const Options& o, const void* scales, std::size_t b) { return load_pattern(scales, o.scale_format, b); }

void store_scale(const Options& o, void* scales, std::size_t b, Bits bits) {
  store_pattern(scales, o.scale_format, b, bits);
}

// The nearest scale pattern by search over its neighbours: plain rounding, without any of the guards.
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

// A fault about the formula of the scale must not also lose the guards: it spoils only blocks whose scale stays normal.
bool guarded(Format f, Bits scale) { return is_finite(f, scale) && !is_zero(f, scale) && !is_subnormal(f, scale); }

Target base() {
  Target t = best_quantizer();
  t.quantize_dynamic = nullptr;
  t.other_isas = nullptr;
  return t;
}

// The faults compute with doubles: what they do in the caller's environment would be a fault of its own.
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

using SpoilQParams = void (*)(const BlockView&, Bits& scale, std::int32_t& zero_point);

template <SpoilQParams Spoil>
Target qparams_fault() {
  Target t = base();
  t.choose_qparams = [right = t.choose_qparams](const Request& r, const void* x, void* scales,
                                                std::int32_t* zero_points, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, counts);
    if (status != Status::ok) return status;
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

int clamped(double code, CodeRange c) {
  if (std::isnan(code)) return c.qmin;
  return static_cast<int>(std::min(std::max(code, double(c.qmin)), double(c.qmax)));
}

int exact_code(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  const double k = std::nearbyint(double{e.x} / double{e.scale});
  return clamped(k + e.zero_point, e.codes);
}

template <Code CodeOf>
Status quantize_in_callers_environment(const Request& r, const void* x, const void* scales,
                                       const std::int32_t* zero_points, void* codes, Counts*) {
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

// ------------------------------------------------------------------------------------------- qparams

void leave_alone(const BlockView&, Bits&, std::int32_t&) {}
void zero_for_zero_block(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.lo == 0 && v.hi == 0) scale = 0;
}
void underflows(const BlockView& v, Bits& scale, std::int32_t&) {
  const double step = plain_step(v);
  if (step > 0 && plain_scale(v.options.scale_format, step) == 0) scale = 0;
}
void rounds_down_and_clips(const BlockView& v, Bits& scale, std::int32_t&) {
  const Bits plain = plain_scale(v.options.scale_format, plain_step(v));
  if (plain != 0 && plain < scale) scale = plain;
}
void divides_by_qmax(const BlockView& v, Bits& scale, std::int32_t&) {
  const double amax = std::max(double{v.hi}, -double{v.lo});
  if (!v.symmetric || v.hi >= -v.lo) return;
  const Bits wider = plain_scale(v.options.scale_format, amax / v.codes.qmax);
  if (guarded(v.options.scale_format, wider)) scale = wider;
}
void divides_by_half_span(const BlockView& v, Bits& scale, std::int32_t&) {
  if (!v.symmetric || v.options.narrow_range) return;
  const Bits other = plain_scale(v.options.scale_format, std::max(double{v.hi}, -double{v.lo}) / (v.codes.qmax + 0.5));
  if (guarded(v.options.scale_format, other)) scale = other;
}
void clamps_without_zero(const BlockView& v, Bits& scale, std::int32_t& zero_point) {
  if (v.symmetric || (v.least <= 0 && v.greatest >= 0)) return;
  const Bits narrow =
      plain_scale(v.options.scale_format, (double{v.greatest} - double{v.least}) / (v.codes.qmax - v.codes.qmin));
  if (!guarded(v.options.scale_format, narrow)) return;
  scale = narrow;
  zero_point =
      clamped(std::nearbyint(v.codes.qmin - double{v.least} / to_double(v.options.scale_format, narrow)), v.codes);
}
void floors_at_epsilon(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.lo == 0 && v.hi == 0) return;
  const Bits floor = plain_scale(v.options.scale_format, std::ldexp(1.0, 1 - info(v.options.scale_format).precision));
  scale = std::max(scale, floor);
}
// Harmless for the codes of ordinary weights, yet no scale is what it was asked to be.
void adds_epsilon(const BlockView& v, Bits& scale, std::int32_t&) {
  const double exact = to_double(v.options.scale_format, scale);
  // In a block without negative values the ends stay far from ties, so that no other claim suffers.
  if (exact > 1e-3 && v.lo == 0) scale = plain_scale(v.options.scale_format, exact + 1e-9);
}
void unguarded(const BlockView& v, Bits& scale, std::int32_t&) {
  const Bits plain = plain_scale(v.options.scale_format, plain_step(v));
  if (plain == 0) scale = plain;
}
void epsilon_for_zero_block(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.lo == 0 && v.hi == 0) scale = plain_scale(v.options.scale_format, 1e-5);
}
// minps and maxps return their second operand if either is NaN, so one NaN makes the range forget what came before it.
void forgets_before_nan(const BlockView& v, Bits& scale, std::int32_t& zero_point) {
  float hi = 0, lo = 0;
  bool forgot = false;
  for (std::size_t i = 0; i < v.block.size(); ++i) {
    const float value = at(v.x, v.format, v.block.at(i));
    if (std::isnan(value)) hi = lo = 0, forgot = true;
    if (!std::isfinite(value)) continue;
    hi = std::max(hi, value);
    lo = std::min(lo, value);
  }
  if (!forgot) return;
  const BlockView rest{v.options, v.x, v.format, v.block, v.symmetric, lo, hi, lo, hi, v.codes};
  const Bits narrow = plain_scale(v.options.scale_format, plain_step(rest));
  if (!guarded(v.options.scale_format, narrow)) return;
  scale = narrow;
  if (!v.symmetric) {
    zero_point =
        clamped(std::nearbyint(v.codes.qmin - double{lo} / to_double(v.options.scale_format, narrow)), v.codes);
  }
}
// "Sanitised" to the largest float, an infinity widens the range until everything finite is one code.
void infinity_widens(const BlockView& v, Bits& scale, std::int32_t& zero_point) {
  for (std::size_t i = 0; i < v.block.size(); ++i) {
    if (!std::isinf(at(v.x, v.format, v.block.at(i)))) continue;
    const Bits wide =
        plain_scale(v.options.scale_format, double{std::numeric_limits<float>::max()} / (v.codes.qmax - v.codes.qmin));
    if (!guarded(v.options.scale_format, wide)) return;
    scale = std::max(scale, wide);
    if (!v.symmetric) zero_point = std::clamp(0, v.codes.qmin, v.codes.qmax);
  }
}
void range_overflows(const BlockView& v, Bits& scale, std::int32_t&) {
  if (!v.symmetric && std::isinf(v.hi - v.lo)) scale = infinity(v.options.scale_format);
}
void flushes_subnormals(const BlockView& v, Bits& scale, std::int32_t&) {
  if (is_subnormal(v.options.scale_format, scale)) scale = Bits{1} << (info(v.options.scale_format).precision - 1);
}
void guards_constant_with_one(const BlockView& v, Bits& scale, std::int32_t& zero_point) {
  if (v.least != v.greatest) return;
  scale = plain_scale(v.options.scale_format, 1.0);
  zero_point = std::clamp(0, v.codes.qmin, v.codes.qmax);
}
void truncates_zero_point(const BlockView& v, Bits& scale, std::int32_t& zero_point) {
  if (v.symmetric) return;
  zero_point = clamped(std::trunc(v.codes.qmin - double{v.lo} / to_double(v.options.scale_format, scale)), v.codes);
}
void zero_point_past_the_end(const BlockView& v, Bits&, std::int32_t& zero_point) {
  if (!v.symmetric && zero_point == v.codes.qmax) ++zero_point;
}
void poisoned_by_nan(const BlockView& v, Bits& scale, std::int32_t&) {
  for (std::size_t i = 0; i < v.block.size(); ++i) {
    if (std::isnan(at(v.x, v.format, v.block.at(i)))) scale = quiet_nan(v.options.scale_format);
  }
}
// The upper half of the f32 pattern, as a cast by shift has it. A scale that is too small clips both ends.
void truncated_scale(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.options.scale_format != Format::bf16 || !guarded(Format::bf16, scale)) return;
  const auto step = static_cast<float>(plain_step(v));
  if (std::isfinite(step) && step > 0) scale = std::bit_cast<std::uint32_t>(step) >> 16;
}
void negative_scale(const BlockView& v, Bits& scale, std::int32_t&) {
  if (-v.lo > v.hi) scale |= sign_bit(v.options.scale_format);
}

// ------------------------------------------------------------------------------------------- codes

int by_reciprocal(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  const float inverse = 1.0f / e.scale;
  return clamped(double{std::nearbyint(e.x * inverse)} + e.zero_point, e.codes);
}
int half_away(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return clamped(std::round(double{e.x} / double{e.scale}) + e.zero_point, e.codes);
}
// Ties go up on both sides of zero; the end codes are left to other faults.
int half_up(const ElementView& e) {
  if (!std::isfinite(e.x)) return exact_code(e);
  const double k = std::nearbyint(double{e.x} / double{e.scale});
  const bool tie_above = std::fma(-k, double{e.scale}, double{e.x}) * 2 == double{e.scale};
  const bool inside = k + e.zero_point > e.codes.qmin;
  return clamped(k + (tie_above && inside) + e.zero_point, e.codes);
}
int zero_point_first(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return clamped(std::nearbyint(double{e.x} / double{e.scale} + e.zero_point), e.codes);
}
int truncated(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return clamped(std::trunc(double{e.x} / double{e.scale}) + e.zero_point, e.codes);
}
int unclamped_code(const ElementView& e) {
  return std::isnan(e.x) ? e.zero_point
                         : clamped(std::nearbyint(double{e.x} / double{e.scale}) + e.zero_point,
                                   {e.codes.qmin < 0 ? -128 : 0, e.codes.qmin < 0 ? 127 : 255});
}
int wraps(const ElementView& e) {
  const int span = e.codes.qmax - e.codes.qmin + 1;
  if (!std::isfinite(e.x)) return exact_code(e);
  const double k = std::nearbyint(double{e.x} / double{e.scale}) + e.zero_point - e.codes.qmin;
  const double wrapped = std::fmod(k, span);  // exact, however large k
  return e.codes.qmin + static_cast<int>(wrapped < 0 ? wrapped + span : wrapped);
}
// 1/scale is infinite for the smallest scales, and 0 times that is NaN.
int reciprocal_overflows(const ElementView& e) {
  return e.x == 0 && std::isinf(1.0f / e.scale) ? e.codes.qmin : exact_code(e);
}
// What the conversion instruction answers where an integer cannot hold the quotient: the least integer.
int indefinite_integer(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return double{e.x} / double{e.scale} >= 0x1p31 ? e.codes.qmin : exact_code(e);
}
int clamps_too_early(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return clamped(clamped(std::nearbyint(double{e.x} / double{e.scale}), e.codes) + double(e.zero_point), e.codes);
}
// Under an odd zero point, another code than the one whose distance from it is even.
int tie_to_even_code(const ElementView& e) {
  if (!std::isfinite(e.x) || e.zero_point % 2 == 0) return exact_code(e);
  const double quotient = double{e.x} / double{e.scale}, down = std::floor(quotient);
  if (quotient - down != 0.5) return exact_code(e);
  return clamped(down + (std::nearbyint(quotient) == down ? 1 : 0) + e.zero_point, e.codes);
}
int forgets_narrow_range(const ElementView& e) {
  const bool narrow = e.codes.qmin == -e.codes.qmax;
  ElementView wide = e;
  if (narrow) --wide.codes.qmin;
  return exact_code(wide);
}
int infinity_to_qmin(const ElementView& e) { return std::isinf(e.x) ? e.codes.qmin : exact_code(e); }
int magnitude_only(const ElementView& e) {
  ElementView positive = e;
  if (e.zero_point == e.codes.qmin) positive.x = std::fabs(e.x);
  return exact_code(positive);
}
int flushed_input(const ElementView& e) {
  ElementView flushed = e;
  if (std::fpclassify(e.x) == FP_SUBNORMAL) flushed.x = 0;
  return exact_code(flushed);
}
int nan_to_qmax(const ElementView& e) { return std::isnan(e.x) ? e.codes.qmax : exact_code(e); }
int negative_zero_below(const ElementView& e) {
  return e.x == 0 && std::signbit(e.x) ? std::max(e.zero_point - 1, e.codes.qmin) : exact_code(e);
}

// ------------------------------------------------------------------------------------------- values

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
    if (o == Format::f32) return right(r, codes, scales, zero_points, values);
    Options options = r.options;
    options.output_format = Format::f32;
    std::vector<float> wide(element_count(r.shape));
    const Status status = right({r.scheme, options, r.format, r.shape}, codes, scales, zero_points, wide.data());
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

// ------------------------------------------------------------------------------------------- codes and scales apart

// Scale and codes chosen in one call, so that they can disagree: `StoredOf` is what is written for the step that the
// codes were made with. Only steps whose plain rounding keeps every element in reach are judged by their codes alone.
using Stored = Bits (*)(Format, double step);

template <Stored StoredOf>
Status choose_apart(const Request& r, const void* x, void* scales, std::int32_t* zero_points, void* codes, Counts*) {
  const DefaultEnvironment environment;
  const std::vector<Block> blocks = cut(r.shape, r.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const BlockView v = view(r, x, blocks[b]);
    const double step = plain_step(v) > 0 ? plain_step(v) : 1;
    store_scale(r.options, scales, b, StoredOf(r.options.scale_format, step));
    zero_points[b] = v.symmetric ? 0 : clamped(std::nearbyint(v.codes.qmin - double{v.lo} / step), v.codes);
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t where = blocks[b].at(i);
      const float value = at(x, r.format, where);
      const int code =
          std::isnan(value) ? zero_points[b] : clamped(std::nearbyint(double{value} / step) + zero_points[b], v.codes);
      static_cast<std::uint8_t*>(codes)[where] = static_cast<std::uint8_t>(code);
    }
  }
  return Status::ok;
}

Bits zero_patched(Format f, double step) {
  const Bits plain = plain_scale(f, step);
  return plain == 0 ? Bits{1} : std::min(plain, largest_finite(f));
}

Target patches_zero_scale_under_old_codes() {
  Target t = base();
  t.counts_special = false;
  t.choose_qparams = nullptr;
  t.quantize_dynamic = choose_apart<zero_patched>;
  return t;
}

// A zero block divided by its zero range: 0/0 is NaN, and the cast or the clamp makes it the lowest code.
Target zero_over_zero_codes() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status != Status::ok) return status;
    const DefaultEnvironment environment;
    for (const Block& block : cut(r.shape, r.options)) {
      const BlockView v = view(r, x, block);
      if (v.lo != 0 || v.hi != 0) continue;
      for (std::size_t i = 0; i < block.size(); ++i) {
        static_cast<std::uint8_t*>(codes)[block.at(i)] = static_cast<std::uint8_t>(v.codes.qmin);
      }
    }
    return status;
  };
  return t;
}

// The scale of the first block serves all of them.
Target reads_only_the_first_scale() {
  Target t = base();
  t.dequantize = nullptr;
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    Options whole = r.options;
    whole.granularity = Granularity::per_tensor;
    return right({r.scheme, whole, r.format, r.shape}, x, scales, zero_points, codes, counts);
  };
  return t;
}

// The last block of a tensor, which may be ragged, takes the scale of its neighbour.
Target last_block_borrows_scale() {
  Target t = base();
  t.dequantize = nullptr;
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t blocks = cut(r.shape, r.options).size(), width = byte_width(r.options.scale_format);
    if (blocks < 2) return right(r, x, scales, zero_points, codes, counts);
    const auto* const stored = static_cast<const std::byte*>(scales);
    std::vector<std::byte> borrowed(stored, stored + blocks * width);
    std::copy_n(stored + (blocks - 2) * width, width, borrowed.end() - static_cast<std::ptrdiff_t>(width));
    return right(r, x, borrowed.data(), zero_points, codes, counts);
  };
  return t;
}

// ------------------------------------------------------------------------------------------- the caller's environment

// Right as long as the caller rounds to nearest and keeps subnormals.
Target trusts_callers_environment() {
  Target t = base();
  t.counts_special = false;
  t.quantize = quantize_in_callers_environment<exact_code>;
  return t;
}

// The kernel is right, and leaves behind what `Leave` did.
template <void (*Leave)(const Request&, const void* x)>
Target leaves_behind() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    Leave(r, x);
    return status;
  };
  return t;
}
void rounding_mode(const Request&, const void*) { std::fesetround(FE_TOWARDZERO); }
// As a conversion of NaN to an integer does, or an ordered comparison with it.
void invalid_flag(const Request& r, const void* x) {
  for (std::size_t i = 0; i < element_count(r.shape); ++i) {
    if (std::isnan(at(x, r.format, i))) std::feraiseexcept(FE_INVALID);
  }
}

// ------------------------------------------------------------------------------------------- memory and repetition

Target unaligned_store_skips_first() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status == Status::ok && reinterpret_cast<std::uintptr_t>(codes) % 16 != 0) {
      static_cast<std::uint8_t*>(codes)[0] = static_cast<std::uint8_t>(*zero_points);
    }
    return status;
  };
  return t;
}

// Lanes that compare false are not stored, and NaN compares false with everything.
Target leaves_nan_lanes_unwritten() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t n = element_count(r.shape);
    const auto* bytes = static_cast<const std::uint8_t*>(codes);
    const std::vector<std::uint8_t> before(bytes, bytes + n);
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status != Status::ok || r.options.bits != 8) return status;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(at(x, r.format, i))) static_cast<std::uint8_t*>(codes)[i] = before[i];
    }
    return status;
  };
  return t;
}

// Right itself; the row of another instruction set is not.
Target other_isa_rounds_half_away() {
  Target t = base();
  t.counts_special = false;
  t.quantize = quantize_with<exact_code>;
  t.other_isas = [] {
    Target other = code_fault<half_away>();
    other.isa = "other";
    return std::vector<Target>{other};
  };
  return t;
}

Target drops_last_lane() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t last = element_count(r.shape) - 1;
    const std::uint8_t before = static_cast<std::uint8_t*>(codes)[last];
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (last % 16 != 15) static_cast<std::uint8_t*>(codes)[last] = before;
    return status;
  };
  return t;
}

// From the last element to the first, which is as good a way as any, unless the codes take the place of the input.
Target runs_backwards() {
  Target t = base();
  t.counts_special = false;
  t.quantize = [](const Request& r, const void* x, const void* scales, const std::int32_t* zero_points, void* codes,
                  Counts*) {
    const DefaultEnvironment environment;
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = blocks.size(); b-- > 0;) {
      const auto scale = static_cast<float>(to_double(r.options.scale_format, load_scale(r.options, scales, b)));
      for (std::size_t i = blocks[b].size(); i-- > 0;) {
        const std::size_t where = blocks[b].at(i);
        const int code = exact_code({at(x, r.format, where), scale, zero_points[b], code_range(r.options)});
        static_cast<std::uint8_t*>(codes)[where] = static_cast<std::uint8_t>(code);
      }
    }
    return Status::ok;
  };
  return t;
}

// A kernel that has no tail loop refuses what is no multiple of its vector, although the scheme has an answer.
Target refuses_odd_lengths() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t n = element_count(r.shape);
    return n > 16 && n % 16 != 0 ? Status::failed : right(r, x, scales, zero_points, codes, counts);
  };
  return t;
}

Target writes_whole_vectors() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    const std::size_t n = element_count(r.shape);
    for (std::size_t i = n; i % 16 != 0; ++i) *(static_cast<volatile std::uint8_t*>(codes) + i) = 0;
    return status;
  };
  return t;
}

Target tail_uses_other_rounding() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    const std::size_t n = element_count(r.shape);
    std::vector<std::uint8_t> other(n);
    if (status != Status::ok ||
        quantize_with<half_away>(r, x, scales, zero_points, other.data(), nullptr) != Status::ok)
      return status;
    for (std::size_t i = n / 16 * 16; i < n; ++i) static_cast<std::uint8_t*>(codes)[i] = other[i];
    return status;
  };
  t.other_isas = [] { return std::vector<Target>{best_quantizer()}; };
  return t;
}

Target miscounts_nan() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (counts != nullptr) counts->nan = std::min<std::uint64_t>(counts->nan, 1);
    return status;
  };
  return t;
}

constexpr std::array kFaults = {
    Fault{"zero_scale_for_zero_block", "coremltools #2853", "scale_positive_finite",
          qparams_fault<zero_for_zero_block>},
    Fault{"scale_underflows_to_zero", "ModelOpt #1353", "scale_positive_finite", qparams_fault<underflows>},
    Fault{"range_overflows", "public bugs: max - min in f32", "scale_positive_finite", qparams_fault<range_overflows>},
    Fault{"negative_scale", "AIMET #4009", "scale_positive_finite", qparams_fault<negative_scale>},
    Fault{"subnormal_scale_clips", "coremltools: subnormal f16 scale rounded down", "round_trip",
          qparams_fault<rounds_down_and_clips>},
    Fault{"never_uses_lowest_code", "LLMC #334, problem 1", "requantize_stable", qparams_fault<divides_by_qmax>},
    Fault{"divides_by_half_span", "torchao SYMMETRIC: (qmax - qmin)/2", "requantize_stable",
          qparams_fault<divides_by_half_span>},
    Fault{"zero_point_clamped_without_zero", "LLMC #334, problem 2", "range_includes_zero",
          qparams_fault<clamps_without_zero>},
    Fault{"floors_scale_at_epsilon", "torchao #4534", "legal_qparams", qparams_fault<floors_at_epsilon>},
    Fault{"flushes_subnormal_scales", "public bugs: FTZ", "legal_qparams", qparams_fault<flushes_subnormals>},
    Fault{"constant_block_guarded_with_one", "public bugs: min == max", "constant_block",
          qparams_fault<guards_constant_with_one>},
    Fault{"truncates_zero_point", "MCT #124", "legal_qparams", qparams_fault<truncates_zero_point>},
    Fault{"zero_point_past_the_end", "LLMC #334: zero point that is no code", "zero_point_in_range",
          qparams_fault<zero_point_past_the_end>},
    Fault{"multiplies_by_reciprocal", "XNNPACK, FBGEMM, torchao #1770", "legal_codes", code_fault<by_reciprocal>},
    Fault{"rounds_half_away", "candle #3629", "legal_codes", code_fault<half_away>},
    Fault{"adds_zero_point_before_rounding", "public bugs: operation order", "legal_codes",
          code_fault<zero_point_first>},
    Fault{"truncates", "public bugs: missing round", "round_trip", code_fault<truncated>},
    Fault{"misses_clamp", "public bugs: code outside the format", "nan_free", code_fault<unclamped_code>},
    Fault{"wraps_on_saturation", "aiter #4637", "saturates", code_fault<wraps>},
    Fault{"infinity_to_qmin", "PyTorch #133557", "saturates", code_fault<infinity_to_qmin>},
    Fault{"drops_the_sign", "tt-metal #56325", "monotone", code_fault<magnitude_only>},
    Fault{"nan_to_qmax", "public bugs: NaN passes a clamp", "legal_codes", code_fault<nan_to_qmax>},
    Fault{"negative_zero_below_zero", "public bugs: signed zero", "monotone", code_fault<negative_zero_below>},
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
    Fault{"nan_poisons_scale", "public bugs: a maximum that takes NaN along", "scale_positive_finite",
          qparams_fault<poisoned_by_nan>},
    Fault{"truncates_scale_to_bf16", "public bugs: f32 cast to bf16 by a shift", "legal_qparams",
          qparams_fault<truncated_scale>},
    Fault{"reciprocal_overflows", "torchao #1770: 1/scale is infinite", "zero_exact", code_fault<reciprocal_overflows>},
    Fault{"indefinite_integer_on_overflow", "public bugs: cvtps2dq out of range", "saturates",
          code_fault<indefinite_integer>},
    Fault{"clamps_before_zero_point", "public bugs: operation order", "round_trip", code_fault<clamps_too_early>},
    Fault{"tie_to_even_code", "public bugs: zero point added before rounding to even", "legal_codes",
          code_fault<tie_to_even_code>},
    Fault{"forgets_narrow_range", "public bugs: -128 in a format without it", "nan_free",
          code_fault<forgets_narrow_range>},
    Fault{"last_block_borrows_scale", "public bugs: ragged last block", "position_independent",
          last_block_borrows_scale},
    Fault{"drops_last_lane", "public bugs: SIMD tail", "deterministic", drops_last_lane},
    Fault{"runs_backwards", "public bugs: in-place use", "position_independent", runs_backwards},
    Fault{"refuses_odd_lengths", "public bugs: sizes that are no multiple of a vector", "position_independent",
          refuses_odd_lengths},
    Fault{"writes_whole_vectors", "public bugs: tail write", "in_bounds", writes_whole_vectors},
    Fault{"tail_uses_other_rounding", "candle #3629: paths that differ", "isa_agree", tail_uses_other_rounding},
    Fault{"drops_epsilon", "LLMC #334: the proposed formula without its floor", "scale_positive_finite",
          qparams_fault<unguarded>},
    Fault{"epsilon_scale_for_zero_block", "LLMC, torchao: a floor of 1e-5 under the scale", "legal_qparams",
          qparams_fault<epsilon_for_zero_block>},
    Fault{"range_forgets_before_nan", "public bugs: min/max that drop NaN", "round_trip",
          qparams_fault<forgets_before_nan>},
    Fault{"infinity_widens_range", "public bugs: infinities replaced by the largest float", "full_range",
          qparams_fault<infinity_widens>},
    Fault{"flushes_subnormal_inputs", "public bugs: DAZ", "round_trip", code_fault<flushed_input>},
    Fault{"zero_over_zero_codes", "coremltools #2853: codes of a zero block", "zero_exact", zero_over_zero_codes},
    Fault{"patches_zero_scale_under_old_codes", "ModelOpt #1353: 0 becomes 2^-24, codes stay", "round_trip",
          patches_zero_scale_under_old_codes},
    Fault{"reads_only_the_first_scale", "public bugs: axis ignored", "position_independent",
          reads_only_the_first_scale},
    Fault{"unaligned_store_skips_first", "vLLM #45466: a vector store that assumes alignment", "position_independent",
          unaligned_store_skips_first},
    Fault{"leaves_nan_lanes_unwritten", "public bugs: NaN passes a comparison", "deterministic",
          leaves_nan_lanes_unwritten},
    Fault{"other_isa_rounds_half_away", "candle #3629: NEON against scalar", "isa_agree", other_isa_rounds_half_away},
    Fault{"adds_epsilon_to_scale", "public bugs: scale + eps against division by zero", "scale_equivariant",
          qparams_fault<adds_epsilon>},
    Fault{"rounds_half_up", "public bugs: floor(x + 0.5)", "sign_symmetric", code_fault<half_up>},
    Fault{"trusts_callers_environment", "public bugs: FTZ and DAZ set by the host application", "environment_kept",
          trusts_callers_environment},
    Fault{"leaves_rounding_changed", "public bugs: rounding mode set for a conversion and left so", "environment_kept",
          leaves_behind<rounding_mode>},
    Fault{"signals_invalid_on_nan", "public bugs: NaN converted to an integer", "environment_kept",
          leaves_behind<invalid_flag>},
    Fault{"miscounts_nan", "Assay: a count that callers rely on", "legal_counts", miscounts_nan},
};

}  // namespace

std::vector<Target> innocent_targets() {
  return {qparams_fault<leave_alone>(), code_fault<exact_code>(), value_fault<exact_value>()};
}

std::span<const Fault> faults() { return kFaults; }

Target fault_target(const Fault& fault) {
  Target t = fault.make();
  t.name = "fault:" + std::string(fault.id);
  return t;
}

}  // namespace assay
