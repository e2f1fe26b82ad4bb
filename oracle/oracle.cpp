#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "oracle/real.h"
#include "oracle/schemes.h"

namespace assay {
namespace {

const Scheme& scheme_of(std::string_view name) {
  const Scheme* row = find_scheme(name);
  assert(row != nullptr);
  return *row;
}

Bits exact_choose_tensor_scale(std::string_view scheme, Format format, std::span<const Bits> x) {
  return store_tensor_scale(scheme_of(scheme), range_of(format, x));
}

QParams exact_choose(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                     Bits tensor_scale) {
  return store_scale(scheme_of(scheme), options, range_of(format, x), tensor_scale);
}

int exact_quantize(const Options& options, Format format, QParams q, Bits x) {
  return code_of(Real(format, x), options, scale_of(options, q), q.zero_point);
}

Bits exact_dequantize(const Options& options, QParams q, int code) {
  return value_of(code, options, scale_of(options, q), q.zero_point);
}

bool exact_saturated(const Options& options, Format format, QParams q, Bits x) {
  return is_finite(format, x) && out_of_reach(Real(format, x), options, scale_of(options, q), q.zero_point);
}

int exact_requantize(std::string_view scheme, const Options& options, const Rescale& rescale, std::int32_t v) {
  return requantized(scheme_of(scheme), options, rescale, v);
}

constexpr Oracle kExact = {"exact",          exact_choose_tensor_scale, exact_choose,    exact_quantize,
                           exact_dequantize, exact_saturated,           exact_requantize};

// The least pattern at or above (strictly above if `after`) an exact threshold that lies among the finite numbers.
Bits first_from(Format format, const Real& threshold, bool after) {
  const Bits near = rn(format, threshold);
  const bool reached = after ? Real(format, near) > threshold : Real(format, near) >= threshold;
  return reached ? near : next_up(format, near);
}

}  // namespace

const Oracle& exact_oracle() { return kExact; }

void count_element(Counts& counts, const Oracle& oracle, const Options& options, Format format, QParams q, Bits x) {
  counts.nan += is_nan(format, x);
  counts.inf += is_inf(format, x);
  counts.saturated += oracle.saturated(options, format, q, x);
}

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

namespace {

bool is_one_of(Format format, std::initializer_list<Format> formats) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

std::string check_integer_options(const SchemeInfo& scheme, const Options& o) {
  if (o.code_format) return fmt::format("{} has integer codes: code_format must be int", scheme.name);
  if (o.bits > 8) return fmt::format("{} has codes of 2 to 8 bits", scheme.name);
  if (!is_one_of(o.scale_format, {Format::f32, Format::f16, Format::bf16, Format::f64}))
    return fmt::format("{} stores scales as f32, f16, bf16 or f64, not {}", scheme.name, info(o.scale_format).name);
  if (scheme.symmetric && !o.is_signed)
    return fmt::format("{} needs signed codes: with signed=false there is no code below zero", scheme.name);
  if (o.narrow_range && !o.is_signed) return "narrow_range drops the lowest signed code: it needs signed=true";
  return {};
}

std::string check_float_options(const SchemeInfo& scheme, const Options& o) {
  if (!o.code_format) return fmt::format("{} has float codes: code_format must be e4m3fn, e5m2 or e2m1", scheme.name);
  const Options& usual = scheme.defaults;
  if (scheme.two_levels && o.code_format != usual.code_format)
    return fmt::format("{} has codes of {}", scheme.name, info(*usual.code_format).name);
  if (usual.scale_format != Format::f32 && o.scale_format != usual.scale_format)
    return fmt::format("{} stores scales as {}", scheme.name, info(usual.scale_format).name);
  if (usual.scale_format == Format::f32 &&
      !is_one_of(o.scale_format, {Format::f32, Format::f16, Format::bf16, Format::f64}))
    return fmt::format("{} stores scales as f32, f16, bf16 or f64, not {}", scheme.name, info(o.scale_format).name);
  return {};
}

std::string check_requantize_options(const SchemeInfo& scheme, const Options& o) {
  if (o.code_format) return fmt::format("{} has integer codes: code_format must be int", scheme.name);
  if (o.bits != 8 && o.bits != 16) return fmt::format("{} has codes of 8 or 16 bits", scheme.name);
  if (o.bits == 16 && !o.is_signed) return fmt::format("{}: codes of 16 bits are signed", scheme.name);
  if (o.narrow_range) return fmt::format("{} uses all codes: narrow_range must be false", scheme.name);
  if (o.granularity == Granularity::per_block || o.granularity == Granularity::per_tile)
    return fmt::format("{} has a multiplier per tensor or per axis", scheme.name);
  return {};
}

std::string check_multiplier(const SchemeInfo& scheme, const Rescale& r) {
  const std::string_view kind = scheme.name.substr(scheme.name.find('.') + 1);
  if (kind == "float_multiplier" && r.scale == 0) return fmt::format("{} needs a scale", scheme.name);
  if (kind != "float_multiplier" && r.scale != 0) return fmt::format("{} takes no scale", scheme.name);
  const bool fixed = kind == "single_rounding" || kind == "double_rounding";
  if (fixed && r.multiplier > INT32_MAX)
    return fmt::format("multiplier {} is above 2147483647, the largest Q31 multiplier", r.multiplier);
  return {};
}

}  // namespace

std::string check_scheme_options(const SchemeInfo& scheme, const Options& options) {
  if (options.packing != Packing::none && code_width(options) > 8) return "codes of 16 bits are not packed";
  switch (scheme.codes) {
    case CodeKind::integer:
      return check_integer_options(scheme, options);
    case CodeKind::floating:
      return check_float_options(scheme, options);
    case CodeKind::requantized:
      return check_requantize_options(scheme, options);
  }
  return {};
}

std::string check_scheme_case(const SchemeInfo& scheme, const Case& c) {
  if (std::string problem = check_scheme_options(scheme, c.options); !problem.empty()) return problem;
  if ((scheme.codes == CodeKind::requantized) != (c.op == Operation::requantize)) {
    return scheme.codes == CodeKind::requantized
               ? fmt::format("{} is for requantize, not for {}", scheme.name, to_string(c.op))
               : fmt::format("requantize takes a scheme of accumulators such as fixed_point.exact, not {}",
                             scheme.name);
  }
  for (const QParams& q : c.given) {
    if (scheme.two_levels && q.tensor_scale == 0) return fmt::format("{} needs a tensor_scale", scheme.name);
    if (!scheme.two_levels && q.tensor_scale != 0) return fmt::format("{} has no tensor_scale", scheme.name);
  }
  for (const Rescale& r : c.rescales) {
    if (std::string problem = check_multiplier(scheme, r); !problem.empty()) return problem;
  }
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
  if (wants_codes || c.op == Operation::requantize) answer.codes.resize(input_size(c));
  if (wants_values) answer.values.resize(input_size(c));
  const Bits tensor_scale = chooses_qparams(c.op) ? oracle.choose_tensor_scale(c.scheme, c.format, c.x) : 0;
  std::vector<Bits> x;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    if (c.op == Operation::requantize) {
      for (std::size_t i = 0; i < block.size(); ++i) {
        const std::size_t at = block.at(i);
        answer.codes[at] = oracle.requantize(c.scheme, c.options, c.rescales[b], c.accumulators[at]);
      }
      continue;
    }
    if (chooses_qparams(c.op)) {
      x.clear();
      for (std::size_t i = 0; i < block.size(); ++i) x.push_back(c.x[block.at(i)]);
      answer.qparams.push_back(oracle.choose_qparams(c.scheme, c.options, c.format, x, tensor_scale));
    }
    const QParams q = answer.qparams[b];
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t at = block.at(i);
      if (!c.x.empty()) count_element(answer.counts, oracle, c.options, c.format, q, c.x[at]);
      if (wants_codes) answer.codes[at] = oracle.quantize(c.options, c.format, q, c.x[at]);
      if (wants_values) {
        answer.values[at] = oracle.dequantize(c.options, q, wants_codes ? answer.codes[at] : c.codes[at]);
      }
    }
  }
  return answer;
}

Bits round_double(Format format, double value) { return rn(format, Real(Format::f64, std::bit_cast<Bits>(value))); }

namespace {

// Where the code changes: the middle between two neighbouring values, and whether a tie there takes the lower code.
struct Middle {
  Real threshold;
  int code;  // from here on
  bool tie_goes_down;
};

std::vector<Middle> middles(const Options& options, const Real& scale, int zero_point) {
  std::vector<Middle> result;
  const CodeRange codes = code_range(options);
  if (!options.code_format) {
    for (int code = codes.qmin + 1; code <= codes.qmax; ++code) {
      const int k = code - zero_point;
      // The tie goes to the even one of k - 1 and k.
      result.push_back({Real::ratio(2 * k - 1, 2) * scale, code, k % 2 != 0});
    }
    return result;
  }
  const Format f = *options.code_format;
  for (auto low = static_cast<Bits>(codes.qmin); low != static_cast<Bits>(codes.qmax);) {
    const Bits high = next_up(f, low);
    // What rounds to zero from below keeps its sign.
    const Bits code = is_zero(f, high) ? sign_bit(f) : high;
    result.push_back({(Real(f, low) + Real(f, high)) / 2 * scale, static_cast<int>(code), high % 2 != 0});
    low = high;
  }
  return result;
}

}  // namespace

std::vector<Breakpoint> breakpoints(const Options& options, Format format, QParams q) {
  std::vector<Breakpoint> result;
  for (const Middle& middle : middles(options, scale_of(options, q), q.zero_point)) {
    const Bits x = first_from(format, middle.threshold, middle.tie_goes_down);
    if (!is_finite(format, x)) continue;
    // Where the scale is finer than the inputs, several thresholds lie below one input: the last code wins.
    if (!result.empty() && ordinal(format, result.back().x) == ordinal(format, x)) result.pop_back();
    result.push_back({x, middle.code, middle.threshold.fraction()});
  }
  return result;
}

namespace {

// x beyond the half gap on either side of the value of `code`.
struct Beyond {
  bool above, below;
};

Beyond beyond_integer(const Options& options, Format format, QParams q, Bits x, int code) {
  // A target may answer with any number: 64 bits hold every difference of two ints, doubled.
  const std::int64_t k = std::int64_t{code} - q.zero_point;
  if (format == Format::f64 || options.scale_format == Format::f64 || !is_code(options, code)) {
    const Real scale = scale_of(options, q);
    return {Real(format, x) > Real::ratio(2 * k + 1, 2) * scale, Real(format, x) < Real::ratio(2 * k - 1, 2) * scale};
  }
  // For codes and zero points in range, (2k + 1) * scale has at most 10 + 24 bits and an exponent far inside double's,
  // so these products are exact.
  const double half_scale = to_double(options.scale_format, q.scale) / 2;
  return {to_double(format, x) > static_cast<double>(2 * k + 1) * half_scale,
          to_double(format, x) < static_cast<double>(2 * k - 1) * half_scale};
}

// The end codes reach half of their last gap farther.
Beyond beyond_float(const Options& options, Format format, QParams q, Bits x, int code) {
  const Format f = *options.code_format;
  const auto bits = static_cast<Bits>(code);
  const double value = to_double(f, bits);
  const auto half_gap = [&](Bits end, Bits outward, Bits inward) {
    return (to_double(f, bits == end ? bits : outward) - to_double(f, bits == end ? inward : bits)) / 2;
  };
  const CodeRange codes = code_range(options);
  const Bits up = next_up(f, bits), down = next_down(f, bits);
  const double above = value + half_gap(static_cast<Bits>(codes.qmax), up, down);
  const double below = value + half_gap(static_cast<Bits>(codes.qmin), down, up);
  if (format == Format::f64 || options.scale_format == Format::f64) {
    const Real scale = scale_of(options, q);
    const auto real = [](double number) { return Real(Format::f64, std::bit_cast<Bits>(number)); };
    return {Real(format, x) > real(above) * scale, Real(format, x) < real(below) * scale};
  }
  // A middle has at most 5 bits, the scales together 28, and their exponents stay inside double's: exact.
  const double scale =
      to_double(options.scale_format, q.scale) * (q.tensor_scale == 0 ? 1.0 : to_double(Format::f32, q.tensor_scale));
  return {to_double(format, x) > above * scale, to_double(format, x) < below * scale};
}

}  // namespace

RoundTrip judge_round_trip(const Options& options, Format format, QParams q, Bits x, int code) {
  const bool in_range = is_code(options, code);
  if (options.code_format && !in_range) return {false, false};
  const Beyond beyond =
      options.code_format ? beyond_float(options, format, q, x, code) : beyond_integer(options, format, q, x, code);
  // Only a neighbour among the codes can be closer. What is no code is no nearest code.
  const CodeRange codes = code_range(options);
  const bool nearest = in_range && !(beyond.above && code != codes.qmax) && !(beyond.below && code != codes.qmin);
  return {nearest, !beyond.above && !beyond.below};
}

double error_in_steps(const Options& options, Format format, QParams q, Bits x, int code) {
  const Real scale = scale_of(options, q);
  const Real value = options.code_format ? exact_value_of(code, options, scale, 0)
                                         : Real::ratio(std::int64_t{code} - q.zero_point, 1) * scale;
  return (abs(Real(format, x) - value) / scale).approximate();
}

bool range_too_large(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                     Bits tensor_scale) {
  const Range range = range_of(format, x);
  const QParams q = store_scale(scheme_of(scheme), options, range, tensor_scale);
  const Real scale = scale_of(options, q);
  return out_of_reach(range.hi, options, scale, q.zero_point) || out_of_reach(range.lo, options, scale, q.zero_point);
}

bool well_conditioned(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                      Bits tensor_scale) {
  const Format s = options.scale_format;
  const Range range = range_of(format, x);
  const Bits stored = store_scale(scheme_of(scheme), options, range, tensor_scale).scale;
  if (s == Format::e8m0) return !greatest(range).is_zero() && stored != smallest_positive(s) && stored != largest_finite(s);
  const Real tensor = tensor_scale == 0 ? Real(1) : Real(Format::f32, tensor_scale);
  const Real step = scheme_of(scheme).step(range, options, tensor);
  return !step.is_zero() && rn(s, step) == stored && !is_subnormal(s, stored);
}

// ---------------------------------------------------------------------------------------------------- packing

namespace {

// The bit of the stream with this number, in a byte of it.
int place_in_byte(Packing packing, std::size_t bit) {
  return static_cast<int>(packing == Packing::lsb_first ? bit % 8 : 7 - bit % 8);
}

// Which bit of a code is the i-th of the code in the stream.
int place_in_code(Packing packing, int width, int i) { return packing == Packing::lsb_first ? i : width - 1 - i; }

}  // namespace

std::vector<std::uint8_t> pack(const Options& options, std::span<const std::int32_t> codes) {
  const int width = code_width(options);
  std::vector<std::uint8_t> packed((codes.size() * static_cast<std::size_t>(width) + 7) / 8);
  std::size_t bit = 0;
  for (const std::int32_t code : codes) {
    for (int i = 0; i < width; ++i, ++bit) {
      const int value = code >> place_in_code(options.packing, width, i) & 1;
      packed[bit / 8] = static_cast<std::uint8_t>(packed[bit / 8] | value << place_in_byte(options.packing, bit));
    }
  }
  return packed;
}

std::vector<std::int32_t> unpack(const Options& options, std::span<const std::uint8_t> packed, std::size_t n) {
  const int width = code_width(options);
  std::vector<std::int32_t> codes(n);
  std::size_t bit = 0;
  for (std::int32_t& code : codes) {
    for (int i = 0; i < width; ++i, ++bit) {
      code |= (packed[bit / 8] >> place_in_byte(options.packing, bit) & 1) << place_in_code(options.packing, width, i);
    }
    const bool negative = !options.code_format && options.is_signed && code >> (width - 1) != 0;
    if (negative) code -= 1 << width;
  }
  return codes;
}

}  // namespace assay
