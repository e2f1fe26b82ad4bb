// Scales and zero points chosen wrong.
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
// A guard of (1 + epsilon) that nothing but the scale itself shows, in blocks whose ends stay far from ties.
void up_by_an_ulp(const BlockView& v, Bits& scale, std::int32_t&) {
  const Format s = v.options.scale_format;
  if (s == Format::f32 && v.symmetric && v.lo == 0 && v.hi > 0 && guarded(s, scale)) scale = next_up(s, scale);
}
// Made in another format and stored as it is: its number, or only its pattern.
void number_of_f16(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.options.scale_format != Format::f32 || !v.symmetric || v.lo != 0) return;  // the ends stay far from ties
  const Bits narrow = plain_scale(Format::f16, plain_step(v));
  if (guarded(Format::f16, narrow)) scale = plain_scale(Format::f32, to_double(Format::f16, narrow));
}
void pattern_of_bf16(const BlockView& v, Bits& scale, std::int32_t&) {
  if (v.options.scale_format != Format::f16) return;
  const Bits other = plain_scale(Format::bf16, plain_step(v));
  if (guarded(Format::bf16, other) && guarded(Format::f16, other)) scale = other;
}
void negative_scale(const BlockView& v, Bits& scale, std::int32_t&) {
  if (-v.lo > v.hi) scale |= sign_bit(v.options.scale_format);
}

constexpr std::array kFaults = {
    Fault{"scale_up_by_an_ulp", "coremltools PR 2851: a guard that also touches ordinary blocks",
          "fix_changes_nothing_else", qparams_fault<up_by_an_ulp>},
    Fault{"scale_through_f16", "ModelOpt review: scales cast on the way out", "dtype_preserved",
          qparams_fault<number_of_f16>},
    Fault{"bf16_scale_stored_as_f16", "mamba Q4_0 engine #677, FBGEMM #5843: bits read as the other format",
          "dtype_preserved", qparams_fault<pattern_of_bf16>},
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
    Fault{"nan_poisons_scale", "public bugs: a maximum that takes NaN along", "scale_positive_finite",
          qparams_fault<poisoned_by_nan>},
    Fault{"truncates_scale_to_bf16", "public bugs: f32 cast to bf16 by a shift", "legal_qparams",
          qparams_fault<truncated_scale>},
    Fault{"drops_epsilon", "LLMC #334: the proposed formula without its floor", "scale_positive_finite",
          qparams_fault<unguarded>},
    Fault{"epsilon_scale_for_zero_block", "LLMC, torchao: a floor of 1e-5 under the scale", "legal_qparams",
          qparams_fault<epsilon_for_zero_block>},
    Fault{"range_forgets_before_nan", "public bugs: min/max that drop NaN", "round_trip",
          qparams_fault<forgets_before_nan>},
    Fault{"infinity_widens_range", "public bugs: infinities replaced by the largest float", "full_range",
          qparams_fault<infinity_widens>},
    Fault{"adds_epsilon_to_scale", "public bugs: scale + eps against division by zero", "scale_equivariant",
          qparams_fault<adds_epsilon>},
};

}  // namespace

Target innocent_qparams() { return qparams_fault<leave_alone>(); }

std::span<const Fault> qparams_faults() { return kFaults; }

}  // namespace assay
