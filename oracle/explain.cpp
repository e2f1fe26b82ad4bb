#include "oracle/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "oracle/real.h"
#include "oracle/schemes.h"

namespace assay {
namespace {

const Real kHalf = Real::ratio(1, 2);

std::string_view name_of(Format format) { return info(format).name; }

// What every element of one block shares.
struct Context {
  const Case& c;
  CodeRange codes;
  QParams q;
  Real scale;
  std::vector<Breakpoint> breakpoints;  // none for dequantize
};

bool is_whole_tie(const Real& quotient) { return quotient.is_finite() && abs(quotient - rne(quotient)) == kHalf; }

// Of a quotient among the finite numbers of a code format.
bool is_pattern_tie(Format f, const Real& quotient) {
  if (!quotient.is_finite() || abs(quotient) >= Real(f, largest_finite(f))) return false;
  const Bits near = rn(f, quotient);
  const Real rounded(f, near);
  if (rounded == quotient) return false;
  const Real other(f, rounded < quotient ? next_up(f, near) : next_down(f, near));
  return abs(quotient - rounded) == abs(other - quotient);
}

bool is_tie(const Options& options, const Real& quotient) {
  return options.code_format ? is_pattern_tie(*options.code_format, quotient) : is_whole_tie(quotient);
}

// How `bits`, which is `exact` rounded to the format, stands to it.
std::string rounding_words(Format format, const Real& exact, Bits bits) {
  const Real rounded(format, bits);
  if (rounded == exact) return fmt::format("exact in {}", name_of(format));
  const bool up = exact < rounded;
  if (!rounded.is_finite()) return fmt::format("overflows {}", name_of(format));
  const Real other(format, up ? next_down(format, bits) : next_up(format, bits));
  if (abs(exact - rounded) == abs(other - exact)) {
    return fmt::format("a tie between two neighbours in {}: goes {}, to the even pattern", name_of(format),
                       up ? "up" : "down");
  }
  return fmt::format("rounded {}", up ? "up" : "down");
}

// The sentence for a real that rne has rounded.
std::string tie_words(std::string_view what, const Real& quotient) {
  const Real even = rne(quotient);
  const Real odd = quotient + (quotient - even);
  const bool even_is_less = even < odd;
  return fmt::format("tie: {} is exactly {}, halfway between {} and {}; it goes to {}, the even one", what,
                     quotient.fraction(), (even_is_less ? even : odd).fraction(),
                     (even_is_less ? odd : even).fraction(), even.fraction());
}

// ---------------------------------------------------------------------------------------------------- one block

// Which elements the range is taken over, where that is not simply all of them.
std::string range_words(std::size_t finite, std::size_t all) {
  if (finite == all) return {};
  if (finite == 0) return "no element is finite, so the range is zero alone";
  return fmt::format("{} of {} elements are finite; only these count", finite, all);
}

std::string step_formula(const SchemeInfo& scheme, const Options& options) {
  const CodeRange codes = code_range(options);
  if (options.code_format) {
    const std::string_view tensor = scheme.two_levels ? "*t" : "";
    return fmt::format("amax/(Fmax{}) with Fmax = {}, the largest {}", tensor,
                       Real(*options.code_format, largest_finite(*options.code_format)).fraction(),
                       name_of(*options.code_format));
  }
  if (scheme.symmetric) return fmt::format("max(hi/qmax, lo/qmin) with qmin = {}, qmax = {}", codes.qmin, codes.qmax);
  return fmt::format("(hi - lo)/(qmax - qmin) with qmin = {}, qmax = {}", codes.qmin, codes.qmax);
}

// The scale before the check of reach: one rounding, kept positive and finite.
Bits first_scale(Format s, const Real& step) {
  const Bits rounded = rn(s, step.is_zero() ? Real(1) : step);
  return is_finite(s, rounded) ? std::max(rounded, smallest_positive(s)) : largest_finite(s);
}

Step scale_step(Format s, const Real& step, Bits first) {
  Step result{"scale", fmt::format("R_{}(step)", name_of(s)), Real(s, first).fraction(), show(s, first), {}};
  const Bits plain = rn(s, step);
  if (step.is_zero()) {
    result.why = "the step is 0: the scale is 1";
  } else if (is_zero(s, plain)) {
    result.why = fmt::format("the step underflows {}: the smallest positive value takes its place", name_of(s));
  } else if (!is_finite(s, plain)) {
    result.why = fmt::format("the step overflows {}: the largest finite value takes its place", name_of(s));
  } else {
    result.why = rounding_words(s, step, plain);
  }
  return result;
}

// How far the codes reach on one side, in scales, as it is written: "127 + 1/2".
std::string reach_formula(const Options& options, bool low, int zero_point) {
  const CodeRange codes = code_range(options);
  if (options.code_format) {
    const Reach reach = reach_of(options, Real(1), 0);
    return fmt::format("{}, half the last gap beyond the last code", (low ? reach.low : reach.high).fraction());
  }
  return fmt::format("{} {} 1/2", (low ? codes.qmin : codes.qmax) - zero_point, low ? "-" : "+");
}

// Does an end of the range lie beyond the codes under the first scale?
Step reach_step(std::string_view end, const Real& value, const Options& options, const Real& scale, int zero_point) {
  const bool lost = out_of_reach(value, options, scale, zero_point);
  const bool low = end == "lo";
  return {fmt::format("reach {}", end),
          fmt::format("{}/s, to be {} {}", end, low ? "at least" : "at most", reach_formula(options, low, zero_point)),
          (value / scale).fraction(),
          {},
          lost ? fmt::format("{} lies more than half a step beyond the last code", end) : "within reach"};
}

Step moved_step(Format s, Bits first, const Real& step, Bits stored) {
  if (stored != first) {
    return {"stored scale", "the next larger value", Real(s, stored).fraction(), show(s, stored),
            "the scale moves up one value; that is at least the exact step, so now both ends are within reach"};
  }
  const bool stuck = first == largest_finite(s) && step > Real(s, first);
  return {"stored scale", "as rounded", Real(s, stored).fraction(), show(s, stored),
          stuck ? fmt::format("the step is above the largest finite {}: elements may saturate", name_of(s)) : ""};
}

Step zero_point_step(const SchemeInfo& scheme, const Range& range, CodeRange codes, const Real& scale, int zero_point) {
  if (scheme.symmetric) return {"zero point", "0", "0", "0", "symmetric: zero is code 0"};
  const Real exact = codes.qmin - range.lo / scale;
  return {"zero point", "clamp(rne(qmin - lo/s), qmin, qmax)", exact.fraction(), std::to_string(zero_point),
          is_whole_tie(exact) ? tie_words("qmin - lo/s", exact) : ""};
}

std::string power_formula(const Options& options) {
  const FormatInfo& f = info(*options.code_format);
  switch (options.scale_rounding) {
    case ScaleRounding::floor:
      return fmt::format("2^(floor(log2 amax) - {})", f.max_exponent);
    case ScaleRounding::ceil:
      return fmt::format("2^(ceil(log2 amax) - {})", f.max_exponent);
    case ScaleRounding::even:
      return fmt::format("2^(floor(log2 A) - {}), A being amax rounded to {} bits", f.max_exponent, f.precision);
    case ScaleRounding::rceil:
      return "the least power of two that is at least the step";
  }
  return {};
}

Step power_step(const Options& options, const Range& range, Bits stored) {
  const Format s = options.scale_format;
  Step result{"stored scale", power_formula(options), Real(s, stored).fraction(), show(s, stored), {}};
  const Real amax = greatest(range);
  if (amax.is_zero()) {
    result.why = "all zero: the scale is 1";
  } else if (mx_exponent(amax, *options.code_format, options.scale_rounding) !=
             static_cast<int>(stored) + info(s).min_exponent) {
    result.why = "the exponent is clamped to those of e8m0";
  } else if (out_of_reach(amax, options, Real(s, stored), 0)) {
    result.why = fmt::format("{} leaves the greatest magnitude out of reach: it will saturate",
                             to_string(options.scale_rounding));
  }
  return result;
}

std::vector<Step> choosing_steps(const Case& c, std::span<const Bits> x, QParams stored) {
  const Scheme* scheme = find_scheme(c.scheme);
  assert(scheme != nullptr);
  const Format s = c.options.scale_format;
  const CodeRange codes = code_range(c.options);
  const Range range = range_of(c.format, x);
  const Real tensor = stored.tensor_scale == 0 ? Real(1) : Real(Format::f32, stored.tensor_scale);
  const Real step = scheme->step(range, c.options, tensor);
  const auto finite =
      static_cast<std::size_t>(std::count_if(x.begin(), x.end(), [&](Bits b) { return is_finite(c.format, b); }));
  std::vector<Step> steps = {{"lo", "min(0, least element)", range.lo.fraction(), {}, range_words(finite, x.size())},
                             {"hi", "max(0, greatest element)", range.hi.fraction(), {}, {}}};
  const auto add = [&](Step next) { steps.push_back(std::move(next)); };
  if (c.options.code_format) add({"amax", "max(hi, -lo)", greatest(range).fraction(), {}, {}});
  if (stored.tensor_scale != 0) {
    add({"tensor scale",
         "t, from the amax of the whole tensor",
         tensor.fraction(),
         show(Format::f32, stored.tensor_scale),
         {}});
  }
  add({"step", step_formula(scheme->info, c.options), step.fraction(), {}, "exact: nothing is rounded yet"});
  if (s == Format::e8m0) {
    add(power_step(c.options, range, stored.scale));
    return steps;
  }
  const Bits first = first_scale(s, step);
  const Real scale = Real(s, first) * tensor;
  const int zero_point = scheme->zero_point(range, codes, scale);
  add(scale_step(s, step, first));
  add(reach_step("lo", range.lo, c.options, scale, zero_point));
  add(reach_step("hi", range.hi, c.options, scale, zero_point));
  add(moved_step(s, first, step, stored.scale));
  add(zero_point_step(scheme->info, range, codes, Real(s, stored.scale), stored.zero_point));
  return steps;
}

std::vector<Step> given_steps(const Case& c, QParams q) {
  const Format s = c.options.scale_format;
  const std::string zero_point = std::to_string(q.zero_point);
  std::vector<Step> steps = {{"scale", "given", Real(s, q.scale).fraction(), show(s, q.scale), {}},
                             {"zero point", "given", zero_point, {}, {}}};
  if (q.tensor_scale != 0) {
    steps.push_back({"tensor scale",
                     "given; s is the scale times it",
                     Real(Format::f32, q.tensor_scale).fraction(),
                     show(Format::f32, q.tensor_scale),
                     {}});
  }
  return steps;
}

// ---------------------------------------------------------------------------------------------------- one element

// The rounded quotient, as a number.
Real rounded_quotient(const Context& k, const Real& quotient) {
  if (!k.c.options.code_format) return rne(quotient);
  return Real(*k.c.options.code_format, rn(*k.c.options.code_format, quotient));
}

// The sentence for a quotient in the middle between two codes; empty for others.
std::string code_tie_words(const Context& k, const Real& quotient) {
  if (!is_tie(k.c.options, quotient)) return {};
  if (!k.c.options.code_format) return tie_words("x/s", quotient);
  const Format f = *k.c.options.code_format;
  return fmt::format("tie: x/s is exactly {}, halfway between two numbers of {}; it goes to {}, the even pattern",
                     quotient.fraction(), name_of(f), show(f, rn(f, quotient)));
}

// The sentence for an element whose quotient fell beside no rule: the plain nearest code, or the last one.
std::string nearest_words(const Context& k, const Real& quotient, int code) {
  if (k.c.options.code_format) {
    const Real top(*k.c.options.code_format, static_cast<Bits>(k.codes.qmax));
    if (abs(quotient) <= top) {
      return fmt::format("nearest: x/s rounds to {}", rounded_quotient(k, quotient).fraction());
    }
  } else if (rne(quotient) + k.q.zero_point == Real(code)) {
    return fmt::format("nearest: x/s rounds to {}", rne(quotient).fraction());
  }
  return fmt::format("x lies within half a step of the last {}, which takes it", show_code(k.c.options, code));
}

std::string code_words(const Context& k, Bits x, const Real& quotient, int code) {
  const Format f = k.c.format;
  if (is_nan(f, x)) {
    return k.c.options.code_format ? "NaN takes the code of zero and is counted as nan"
                                   : "NaN has no place among the codes: it takes the zero point and is counted as nan";
  }
  if (is_inf(f, x)) {
    return fmt::format("infinite: it takes the {} code and is counted as inf",
                       is_negative(f, x) ? "lowest" : "highest");
  }
  const std::string tie = code_tie_words(k, quotient);
  if (out_of_reach(Real(f, x), k.c.options, k.scale, k.q.zero_point)) {
    return fmt::format("saturated: x lies more than half a step beyond the last {}, which takes it{}{}",
                       show_code(k.c.options, code), tie.empty() ? "" : "; ", tie);
  }
  if (tie.empty()) return nearest_words(k, quotient, code);
  if (k.c.options.code_format) return tie;
  const bool clamped = !(rne(quotient) + k.q.zero_point == Real(code));
  return clamped ? fmt::format("{}; there is no such code, so the last one, {}, takes it", tie, code) : tie;
}

std::vector<Step> code_steps(const Context& k, Bits x, const Real& quotient, int code) {
  const Real exact(k.c.format, x);
  Step x_step{"x", show(k.c.format, x), exact.fraction(), {}, {}};
  if (exact.is_nan()) return {x_step, {"code", "NaN takes the zero point", std::to_string(code), {}, {}}};
  if (k.c.options.code_format) {
    const Format f = *k.c.options.code_format;
    return {x_step,
            {"quotient", "x/s", quotient.fraction(), {}, {}},
            {"code",
             fmt::format("R_{}(x/s), at most Fmax", name_of(f)),
             Real(f, static_cast<Bits>(code)).fraction(),
             show(f, static_cast<Bits>(code)),
             {}}};
  }
  const std::string rounded = rne(quotient).fraction();
  return {x_step,
          {"quotient", "x/s, then rne", quotient.fraction(), rounded, {}},
          {"code",
           fmt::format("clamp({} + {}, {}, {})", rounded, k.q.zero_point, k.codes.qmin, k.codes.qmax),
           std::to_string(code),
           {},
           {}}};
}

// Value of a code: the exact product, and what its one rounding did to it.
Step value_step(const Context& k, int code, Bits value) {
  const Format o = k.c.options.output_format;
  const Real exact = exact_value_of(code, k.c.options, k.scale, k.q.zero_point);
  const Bits plain = rn(o, exact);
  std::string why = rounding_words(o, exact, plain);
  if (is_inf(o, plain)) why += ": the largest finite value takes its place";
  const std::string steps = k.c.options.code_format ? Real(*k.c.options.code_format, static_cast<Bits>(code)).fraction()
                                                    : fmt::format("({} - {})", code, k.q.zero_point);
  return {"value", fmt::format("{}*s, then R_{}", steps, name_of(o)), exact.fraction(), show(o, value), std::move(why)};
}

void add_value(const Context& k, ElementExplanation& e) {
  const Bits value = value_of(e.code, k.c.options, k.scale, k.q.zero_point);
  e.steps.push_back(value_step(k, e.code, value));
  e.value = show(k.c.options.output_format, value);
}

// The codes change at below.x <= x and next at above.x > x.
void add_breakpoints(const Context& k, Bits x, ElementExplanation& e) {
  if (is_nan(k.c.format, x)) return;
  const std::int64_t at = ordinal(k.c.format, x);
  const auto above =
      std::upper_bound(k.breakpoints.begin(), k.breakpoints.end(), at,
                       [&](std::int64_t position, const Breakpoint& b) { return position < ordinal(k.c.format, b.x); });
  if (above != k.breakpoints.begin()) e.below = *(above - 1);
  if (above != k.breakpoints.end()) e.above = *above;
}

ElementExplanation explain_input(const Context& k, std::size_t index) {
  const Bits x = k.c.x[index];
  const Real exact(k.c.format, x);
  const Real quotient = exact / k.scale;
  ElementExplanation e;
  e.index = index;
  e.x = show(k.c.format, x);
  e.code = code_of(exact, k.c.options, k.scale, k.q.zero_point);
  e.steps = code_steps(k, x, quotient, e.code);
  e.why = code_words(k, x, quotient, e.code);
  add_breakpoints(k, x, e);
  if (k.c.op == Operation::round_trip) add_value(k, e);
  return e;
}

ElementExplanation explain_code(const Context& k, std::size_t index) {
  ElementExplanation e;
  e.index = index;
  e.code = k.c.codes[index];
  add_value(k, e);
  e.why = e.steps.back().why;
  return e;
}

// ---------------------------------------------------------------------------------------------------- which elements

// Smaller is more worth showing.
int rank_of_input(const Context& k, const Range& range, Bits x) {
  const Real exact(k.c.format, x);
  if (is_tie(k.c.options, exact / k.scale)) return 0;
  if (!exact.is_finite()) return 2;
  if (out_of_reach(exact, k.c.options, k.scale, k.q.zero_point)) return 1;
  return exact == range.lo || exact == range.hi ? 3 : 4;
}

int rank_of_code(const Context& k, int code) {
  const Format o = k.c.options.output_format;
  const Real exact = exact_value_of(code, k.c.options, k.scale, k.q.zero_point);
  if (is_inf(o, rn(o, exact))) return 1;
  return code == k.codes.qmin || code == k.codes.qmax ? 3 : 4;
}

std::vector<std::size_t> most_instructive(const Context& k, const Block& block, const Range& range, std::size_t most) {
  std::vector<std::pair<int, std::size_t>> ranked;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::size_t at = block.at(i);
    const bool has_codes = k.c.op == Operation::dequantize;
    ranked.emplace_back(has_codes ? rank_of_code(k, k.c.codes[at]) : rank_of_input(k, range, k.c.x[at]), at);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(most, ranked.size()));
  std::vector<std::size_t> indices;
  for (const auto& [rank, at] : ranked) indices.push_back(at);
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::vector<std::size_t> chosen_of(const Block& block, const std::vector<std::size_t>& chosen) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (std::find(chosen.begin(), chosen.end(), block.at(i)) != chosen.end()) indices.push_back(block.at(i));
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

// ---------------------------------------------------------------------------------------------------- accumulators

std::vector<Step> multiplier_steps(const Case& c, const Rescale& r) {
  std::vector<Step> steps = {{"bias", "given", std::to_string(r.bias), {}, {}},
                             {"zero point", "given", std::to_string(r.zero_point), {}, {}}};
  if (r.scale != 0) {
    steps.push_back({"multiplier", "given", Real(Format::f32, r.scale).fraction(), show(Format::f32, r.scale), {}});
  } else if (c.scheme == "fixed_point.exact") {
    const Real exact = Real::ratio(r.multiplier, 1) / Real::ratio(r.divisor, 1);
    steps.push_back({"multiplier", fmt::format("{}/{}", r.multiplier, r.divisor), exact.fraction(), {}, {}});
  } else {
    steps.push_back({"multiplier",
                     fmt::format("{}*2^({} - 31)", r.multiplier, r.shift),
                     (Real::ratio(r.multiplier, 1) * power_of_two(r.shift - 31)).fraction(),
                     {},
                     {}});
  }
  return steps;
}

ElementExplanation explain_accumulator(const Case& c, const Rescale& r, std::size_t index) {
  const Scheme& scheme = *find_scheme(c.scheme);
  const Real v = biased(c.accumulators[index], r);
  const std::string whole = scheme.rescaled(v, r).fraction();
  const CodeRange codes = code_range(c.options);
  ElementExplanation e;
  e.index = index;
  e.x = std::to_string(c.accumulators[index]);
  e.code = requantized(scheme, c.options, r, c.accumulators[index]);
  e.steps = {{"v", fmt::format("{} + {}, within 32 bits", e.x, r.bias), v.fraction(), {}, {}},
             {"rescaled", std::string(scheme.info.rounding_points), whole, {}, {}},
             {"code",
              fmt::format("clamp({} + {}, {}, {})", whole, r.zero_point, codes.qmin, codes.qmax),
              std::to_string(e.code),
              {},
              {}}};
  e.why = e.code == codes.qmin || e.code == codes.qmax ? "an end of the codes" : "as rescaled";
  return e;
}

BlockExplanation explain_rescaling(const Case& c, std::size_t number, const Block& block, std::size_t most,
                                   const std::vector<std::size_t>& wanted) {
  BlockExplanation result;
  result.block = number;
  result.steps = multiplier_steps(c, c.rescales[number]);
  std::vector<std::size_t> indices = wanted;
  for (std::size_t i = 0; wanted.empty() && i < std::min(most, block.size()); ++i) indices.push_back(block.at(i));
  for (const std::size_t at : indices) result.elements.push_back(explain_accumulator(c, c.rescales[number], at));
  return result;
}

BlockExplanation explain_block(const Case& c, std::size_t number, const Block& block, std::size_t most,
                               const std::vector<std::size_t>& wanted) {
  if (c.op == Operation::requantize) return explain_rescaling(c, number, block, most, wanted);
  std::vector<Bits> x;
  if (c.op != Operation::dequantize) {
    for (std::size_t i = 0; i < block.size(); ++i) x.push_back(c.x[block.at(i)]);
  }
  BlockExplanation result;
  result.block = number;
  if (takes_qparams(c.op)) {
    result.qparams = c.given[number];
    result.steps = given_steps(c, result.qparams);
  } else {
    const Bits tensor_scale = exact_oracle().choose_tensor_scale(c.scheme, c.format, c.x);
    result.qparams = exact_oracle().choose_qparams(c.scheme, c.options, c.format, x, tensor_scale);
    result.steps = choosing_steps(c, x, result.qparams);
  }
  if (c.op == Operation::choose_qparams) return result;
  Context k{c, code_range(c.options), result.qparams, scale_of(c.options, result.qparams), {}};
  if (!x.empty()) k.breakpoints = breakpoints(c.options, c.format, result.qparams);
  const auto indices = wanted.empty() ? most_instructive(k, block, range_of(c.format, x), most) : wanted;
  for (const std::size_t at : indices) {
    result.elements.push_back(c.op == Operation::dequantize ? explain_code(k, at) : explain_input(k, at));
  }
  return result;
}

// ---------------------------------------------------------------------------------------------------- text

constexpr std::size_t kColumns = 120;
constexpr std::size_t kLabel = 16;  // columns of a line's name

// Adds `words` behind a label, broken at spaces, and inside a number only where it is longer than a whole line.
void add_wrapped(std::string& text, std::size_t indent, std::string_view label, std::string_view words) {
  const std::size_t margin = indent + kLabel;
  std::string line = fmt::format("{:{}}{:<{}}", "", indent, label, kLabel);
  const auto finish = [&] {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    line.assign(margin, ' ');
  };
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (line.size() > margin && line.size() + word.size() > kColumns) finish();
    for (; margin + word.size() > kColumns; word.remove_prefix(kColumns - margin)) {
      line += word.substr(0, kColumns - margin);
      finish();
    }
    line += word;
    line += ' ';
  }
  finish();
}

void add_step(std::string& text, std::size_t indent, const Step& step) {
  std::string words = step.formula;
  if (step.fraction != step.formula) words += " = " + step.fraction;
  if (!step.rounded.empty() && step.rounded != step.fraction) words += " -> " + step.rounded;
  add_wrapped(text, indent, step.name, words);
  if (!step.why.empty()) add_wrapped(text, indent, "", step.why);
}

void add_breakpoint(std::string& text, const Case& c, std::string_view label, const std::optional<Breakpoint>& b) {
  if (!b) return;
  add_wrapped(
      text, 4, label,
      fmt::format("{} from {}, threshold {}", show_code(c.options, b->code), show(c.format, b->x), b->threshold));
}

void add_element(std::string& text, const Case& c, const ElementExplanation& e) {
  const std::string code = show_code(c.options, e.code);
  text += e.x.empty() ? fmt::format("\n  element {}: {}", e.index, code)
                      : fmt::format("\n  element {}: {} -> {}", e.index, e.x, code);
  text += e.value.empty() ? "\n" : fmt::format(" -> {}\n", e.value);
  for (const Step& step : e.steps) add_step(text, 4, step);
  add_breakpoint(text, c, "change below", e.below);
  add_breakpoint(text, c, "change above", e.above);
  if (c.op != Operation::dequantize) add_wrapped(text, 4, "why", e.why);
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t d : shape) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return text;
}

void add_case(std::string& text, const Case& c) {
  std::string options;
  for (const auto& [key, value] : option_list(c.options)) options += (options.empty() ? "" : " ") + key + "=" + value;
  add_wrapped(text, 0, "operation", to_string(c.op));
  add_wrapped(text, 0, "scheme", c.scheme);
  add_wrapped(text, 0, "options", options);
  const std::string_view of = c.op == Operation::dequantize   ? "codes"
                              : c.op == Operation::requantize ? "int32 accumulators"
                                                              : name_of(c.format);
  add_wrapped(text, 0, "input", fmt::format("{}, shape {}", of, shape_text(c.shape)));
  if (!c.why.empty()) add_wrapped(text, 0, "case", c.why);
  if (!c.source.empty()) add_wrapped(text, 0, "source", c.source);
}

}  // namespace

std::vector<BlockExplanation> explain(const Case& c, std::size_t most_elements,
                                      const std::vector<std::size_t>& chosen) {
  assert(check_case(c).empty());
  std::vector<BlockExplanation> result;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<std::size_t> wanted = chosen.empty() ? chosen : chosen_of(blocks[b], chosen);
    if (!chosen.empty() && wanted.empty()) continue;
    result.push_back(explain_block(c, b, blocks[b], most_elements, wanted));
  }
  return result;
}

std::string explanation_text(const Case& c, const std::vector<BlockExplanation>& blocks) {
  const std::vector<Block> cuts = cut(c.shape, c.options);
  std::string text;
  add_case(text, c);
  for (const BlockExplanation& block : blocks) {
    const std::size_t size = cuts[block.block].size();
    text += fmt::format("\nblock {} of {}: {} element{}", block.block, cuts.size(), size, size == 1 ? "" : "s");
    if (c.op != Operation::choose_qparams && block.elements.size() < size) {
      text += fmt::format(", {} shown", block.elements.size());
    }
    text += '\n';
    for (const Step& step : block.steps) add_step(text, 2, step);
    for (const ElementExplanation& e : block.elements) add_element(text, c, e);
  }
  return text;
}

}  // namespace assay
