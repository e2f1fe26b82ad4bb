#include "oracle/oracle.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cassert>

#include "oracle/real.h"
#include "oracle/schemes.h"

namespace assay {
namespace {

Real scale_of(const Options& options, QParams q) { return Real(options.scale_format, q.scale); }

QParams exact_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x) {
  const Scheme* row = find_scheme(scheme);
  assert(row != nullptr);
  return store_scale(*row, options, range_of(format, x));
}

int exact_quantize(const Options& options, Format format, QParams q, Bits x) {
  return code_of(Real(format, x), code_range(options), scale_of(options, q), q.zero_point);
}

Bits exact_dequantize(const Options& options, QParams q, int code) {
  return value_of(code, scale_of(options, q), q.zero_point, options.output_format);
}

bool exact_saturated(const Options& options, Format format, QParams q, Bits x) {
  return is_finite(format, x) && out_of_reach(Real(format, x), code_range(options), scale_of(options, q), q.zero_point);
}

constexpr Oracle kExact = {"exact", exact_choose, exact_quantize, exact_dequantize, exact_saturated};

void count(Counts& counts, const Oracle& oracle, const Options& options, Format format, QParams q, Bits x) {
  counts.nan += is_nan(format, x);
  counts.inf += is_inf(format, x);
  counts.saturated += oracle.saturated(options, format, q, x);
}

// The least pattern at or above (strictly above if `after`) an exact threshold that lies among the finite numbers.
Bits first_from(Format format, const Real& threshold, bool after) {
  const Bits near = rn(format, threshold);
  const bool reached = after ? Real(format, near) > threshold : Real(format, near) >= threshold;
  return reached ? near : next_up(format, near);
}

}  // namespace

const Oracle& exact_oracle() { return kExact; }

std::span<const Oracle* const> oracles() {
  static const std::array<const Oracle*, 3> kAll = {&exact_oracle(), &search_oracle(), &fast_oracle()};
  return kAll;
}

std::span<const SchemeInfo> schemes() {
  static const std::vector<SchemeInfo> kInfos = [] {
    std::vector<SchemeInfo> infos;
    for (const Scheme& scheme : scheme_table()) infos.push_back(scheme.info);
    return infos;
  }();
  return kInfos;
}

const SchemeInfo* scheme_named(std::string_view name) {
  const Scheme* scheme = find_scheme(name);
  return scheme == nullptr ? nullptr : &scheme->info;
}

std::string check_scheme_options(const SchemeInfo& scheme, const Options& options) {
  if (scheme.symmetric && !options.is_signed) {
    return fmt::format("{} needs signed codes: with signed=false there is no code below zero", scheme.name);
  }
  if (options.narrow_range && !options.is_signed)
    return "narrow_range drops the lowest signed code: it needs signed=true";
  return {};
}

bool scale_is_positive_finite(const Options& options, Bits scale) {
  const Format s = options.scale_format;
  return is_finite(s, scale) && !is_zero(s, scale) && !is_negative(s, scale);
}

Answer legal_answer(const Oracle& oracle, const Case& c) {
  Answer answer;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  const bool wants_codes = c.op == Operation::quantize || c.op == Operation::round_trip;
  const bool wants_values = c.op == Operation::dequantize || c.op == Operation::round_trip;
  answer.qparams = c.given;
  if (wants_codes) answer.codes.resize(c.x.size());
  if (wants_values) answer.values.resize(std::max(c.x.size(), c.codes.size()));
  std::vector<Bits> x;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    if (!takes_qparams(c.op)) {
      x.clear();
      for (std::size_t i = 0; i < block.size(); ++i) x.push_back(c.x[block.at(i)]);
      answer.qparams.push_back(oracle.choose_qparams(c.scheme, c.options, c.format, x));
    }
    const QParams q = answer.qparams[b];
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t at = block.at(i);
      if (!c.x.empty()) count(answer.counts, oracle, c.options, c.format, q, c.x[at]);
      if (wants_codes) answer.codes[at] = oracle.quantize(c.options, c.format, q, c.x[at]);
      if (wants_values) {
        answer.values[at] = oracle.dequantize(c.options, q, wants_codes ? answer.codes[at] : c.codes[at]);
      }
    }
  }
  return answer;
}

Bits round_double(Format format, double value) { return rn(format, Real(Format::f64, std::bit_cast<Bits>(value))); }

std::vector<Breakpoint> breakpoints(const Options& options, Format format, QParams q) {
  const CodeRange codes = code_range(options);
  const Real scale = scale_of(options, q);
  std::vector<Breakpoint> result;
  for (int code = codes.qmin + 1; code <= codes.qmax; ++code) {
    const int k = code - q.zero_point;
    const Real threshold = Real::ratio(2 * k - 1, 2) * scale;
    // At the threshold itself the tie goes to the even one of k - 1 and k.
    const bool tie_goes_down = k % 2 != 0;
    const Bits x = first_from(format, threshold, tie_goes_down);
    if (!is_finite(format, x)) continue;
    // Where the scale is finer than the inputs, several thresholds lie below one input: the last code wins.
    if (!result.empty() && ordinal(format, result.back().x) == ordinal(format, x)) result.pop_back();
    result.push_back({x, code, threshold.fraction()});
  }
  return result;
}

RoundTrip judge_round_trip(const Options& options, Format format, QParams q, Bits x, int code) {
  const CodeRange codes = code_range(options);
  const bool in_range = code >= codes.qmin && code <= codes.qmax;
  // A target may answer with any number: 64 bits hold every difference of two ints, doubled.
  const std::int64_t k = std::int64_t{code} - q.zero_point;
  bool above, below;  // x beyond the half step on either side of the reconstruction
  if (format == Format::f64 || options.scale_format == Format::f64 || !in_range) {
    const Real scale = scale_of(options, q);
    above = Real(format, x) > Real::ratio(2 * k + 1, 2) * scale;
    below = Real(format, x) < Real::ratio(2 * k - 1, 2) * scale;
  } else {
    // For codes and zero points in range, (2k + 1) * scale has at most 10 + 24 bits and an exponent far inside
    // double's, so these products are exact.
    const double half_scale = to_double(options.scale_format, q.scale) / 2;
    above = to_double(format, x) > static_cast<double>(2 * k + 1) * half_scale;
    below = to_double(format, x) < static_cast<double>(2 * k - 1) * half_scale;
  }
  // Reconstructions are equally spaced, so only a neighbour in range can be closer. What is no code is no nearest code.
  const bool nearest = in_range && !(above && code < codes.qmax) && !(below && code > codes.qmin);
  return {nearest, !above && !below};
}

double error_in_steps(const Options& options, Format format, QParams q, Bits x, int code) {
  const Real scale = scale_of(options, q);
  const Real steps = Real::ratio(std::int64_t{code} - q.zero_point, 1);
  return (abs(Real(format, x) - steps * scale) / scale).approximate();
}

bool range_too_large(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x) {
  const Scheme* row = find_scheme(scheme);
  assert(row != nullptr);
  const Format s = options.scale_format;
  return row->step(range_of(format, x), code_range(options)) > Real(s, largest_finite(s));
}

}  // namespace assay
