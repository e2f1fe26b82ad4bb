// Integer codes made wrong, or made with other scales than those that are stored.
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

// ------------------------------------------------------------------------------------------- codes and scales apart

// Scale and codes chosen in one call, so that they can disagree: `StoredOf` is what is written for the step that the
// codes were made with. Only steps whose plain rounding keeps every element in reach are judged by their codes alone.
using Stored = Bits (*)(Format, double step);

template <Stored StoredOf>
Status choose_apart(const Request& r, const void* x, void* scales, std::int32_t* zero_points, void* codes, Counts*) {
  if (r.options.code_format) return Status::unsupported;
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
void zero_over_zero(const Request& r, const void* x, const std::int32_t*, std::uint8_t* codes, Counts*) {
  if (r.options.code_format) return;
  const DefaultEnvironment environment;
  for (const Block& block : cut(r.shape, r.options)) {
    const BlockView v = view(r, x, block);
    if (v.lo != 0 || v.hi != 0) continue;
    for (std::size_t i = 0; i < block.size(); ++i) codes[block.at(i)] = static_cast<std::uint8_t>(v.codes.qmin);
  }
}

// The scale of the first block serves all of them.
Target reads_only_the_first_scale() {
  Target t = base();
  t.dequantize = nullptr;
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    Options whole = r.options;
    whole.granularity = Granularity::per_tensor;
    return right({r.scheme, whole, r.format, r.shape, r.tensor_scale}, x, scales, zero_points, codes, counts);
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

constexpr std::array kFaults = {
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
    Fault{"flushes_subnormal_inputs", "public bugs: DAZ", "round_trip", code_fault<flushed_input>},
    Fault{"zero_over_zero_codes", "coremltools #2853: codes of a zero block", "zero_exact",
          spoiled_codes_fault<zero_over_zero>},
    Fault{"patches_zero_scale_under_old_codes", "ModelOpt #1353: 0 becomes 2^-24, codes stay", "round_trip",
          patches_zero_scale_under_old_codes},
    Fault{"reads_only_the_first_scale", "public bugs: axis ignored", "position_independent",
          reads_only_the_first_scale},
    Fault{"rounds_half_up", "public bugs: floor(x + 0.5)", "sign_symmetric", code_fault<half_up>},
};

}  // namespace

Target innocent_codes() { return code_fault<exact_code>(); }

std::span<const Fault> code_faults() { return kFaults; }

}  // namespace assay
