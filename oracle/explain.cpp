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

bool is_tie(const Real& quotient) { return quotient.is_finite() && abs(quotient - rne(quotient)) == kHalf; }

// How `bits`, which is `exact` rounded to the format, stands to it.
std::string rounding_words(Format format, const Real& exact, Bits bits) {
  const Real rounded(format, bits);
  if (rounded == exact) return fmt::format("exact in {}", name_of(format));
  const bool up = exact < rounded;
  if (rounded.is_inf()) return fmt::format("overflows {}", name_of(format));
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

std::string step_formula(const SchemeInfo& scheme, CodeRange codes) {
  if (scheme.symmetric) return fmt::format("max(hi/qmax, lo/qmin) with qmin = {}, qmax = {}", codes.qmin, codes.qmax);
  return fmt::format("(hi - lo)/(qmax - qmin) with qmin = {}, qmax = {}", codes.qmin, codes.qmax);
}

// The scale before the check of reach: one rounding, kept positive and finite.
Bits first_scale(Format s, const Real& step) {
  return std::clamp(rn(s, step.is_zero() ? Real(1) : step), smallest_positive(s), largest_finite(s));
}

Step scale_step(Format s, const Real& step, Bits first) {
  Step result{"scale", fmt::format("R_{}(step)", name_of(s)), Real(s, first).fraction(), show(s, first), {}};
  const Bits plain = rn(s, step);
  if (step.is_zero()) {
    result.why = "the step is 0: the scale is 1";
  } else if (is_zero(s, plain)) {
    result.why = fmt::format("the step underflows {}: the smallest positive value takes its place", name_of(s));
  } else if (is_inf(s, plain)) {
    result.why = fmt::format("the step overflows {}: the largest finite value takes its place", name_of(s));
  } else {
    result.why = rounding_words(s, step, plain);
  }
  return result;
}

// Does an end of the range lie beyond the codes under the first scale?
Step reach_step(std::string_view end, const Real& value, CodeRange codes, const Real& scale, int zero_point) {
  const bool lost = out_of_reach(value, codes, scale, zero_point);
  const bool low = end == "lo";
  const int last = (low ? codes.qmin : codes.qmax) - zero_point;
  return {fmt::format("reach {}", end),
          fmt::format("{0}/s, to be {1} {2} {3} 1/2", end, low ? "at least" : "at most", last, low ? "-" : "+"),
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
          is_tie(exact) ? tie_words("qmin - lo/s", exact) : ""};
}

std::vector<Step> choosing_steps(const Case& c, std::span<const Bits> x, QParams stored) {
  const Scheme* scheme = find_scheme(c.scheme);
  assert(scheme != nullptr);
  const Format s = c.options.scale_format;
  const CodeRange codes = code_range(c.options);
  const Range range = range_of(c.format, x);
  const Real step = scheme->step(range, codes);
  const auto finite =
      static_cast<std::size_t>(std::count_if(x.begin(), x.end(), [&](Bits b) { return is_finite(c.format, b); }));
  const Bits first = first_scale(s, step);
  const Real scale(s, first);
  const int zero_point = scheme->zero_point(range, codes, scale);
  return {
      {"lo", "min(0, least element)", range.lo.fraction(), {}, range_words(finite, x.size())},
      {"hi", "max(0, greatest element)", range.hi.fraction(), {}, {}},
      {"step", step_formula(scheme->info, codes), step.fraction(), {}, "exact: nothing is rounded yet"},
      scale_step(s, step, first),
      reach_step("lo", range.lo, codes, scale, zero_point),
      reach_step("hi", range.hi, codes, scale, zero_point),
      moved_step(s, first, step, stored.scale),
      zero_point_step(scheme->info, range, codes, Real(s, stored.scale), stored.zero_point),
  };
}

std::vector<Step> given_steps(const Case& c, QParams q) {
  const Format s = c.options.scale_format;
  const std::string zero_point = std::to_string(q.zero_point);
  return {{"scale", "given", Real(s, q.scale).fraction(), show(s, q.scale), {}},
          {"zero point", "given", zero_point, {}, {}}};
}

// ---------------------------------------------------------------------------------------------------- one element

// The sentence for an element whose quotient fell beside no rule: the plain nearest code, or the last one.
std::string nearest_words(const Context& k, const Real& quotient, int code) {
  const Real wanted = rne(quotient) + k.q.zero_point;
  if (wanted == Real(code)) return fmt::format("nearest: x/s rounds to {}", rne(quotient).fraction());
  return fmt::format("x lies within half a step of the last code {}, which takes it", code);
}

std::string code_words(const Context& k, Bits x, const Real& quotient, int code) {
  const Format f = k.c.format;
  if (is_nan(f, x)) return "NaN has no place among the codes: it takes the zero point and is counted as nan";
  if (is_inf(f, x)) {
    return fmt::format("infinite: it takes the {} code and is counted as inf",
                       is_negative(f, x) ? "lowest" : "highest");
  }
  const std::string tie = is_tie(quotient) ? tie_words("x/s", quotient) : "";
  if (out_of_reach(Real(f, x), k.codes, k.scale, k.q.zero_point)) {
    return fmt::format("saturated: x lies more than half a step beyond the last code {}, which takes it{}{}", code,
                       tie.empty() ? "" : "; ", tie);
  }
  if (tie.empty()) return nearest_words(k, quotient, code);
  const bool clamped = !(rne(quotient) + k.q.zero_point == Real(code));
  return clamped ? fmt::format("{}; there is no such code, so the last one, {}, takes it", tie, code) : tie;
}

std::vector<Step> code_steps(const Context& k, Bits x, const Real& quotient, int code) {
  const Real exact(k.c.format, x);
  Step x_step{"x", show(k.c.format, x), exact.fraction(), {}, {}};
  if (exact.is_nan()) return {x_step, {"code", "NaN takes the zero point", std::to_string(code), {}, {}}};
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
  const Real exact = Real(code - k.q.zero_point) * k.scale;
  const Bits plain = rn(o, exact);
  std::string why = rounding_words(o, exact, plain);
  if (is_inf(o, plain)) why += ": the largest finite value takes its place";
  return {"value", fmt::format("({} - {})*s, then R_{}", code, k.q.zero_point, name_of(o)), exact.fraction(),
          show(o, value), std::move(why)};
}

void add_value(const Context& k, ElementExplanation& e) {
  const Bits value = value_of(e.code, k.scale, k.q.zero_point, k.c.options.output_format);
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
  e.code = code_of(exact, k.codes, k.scale, k.q.zero_point);
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
  if (is_tie(exact / k.scale)) return 0;
  if (!exact.is_finite()) return 2;
  if (out_of_reach(exact, k.codes, k.scale, k.q.zero_point)) return 1;
  return exact == range.lo || exact == range.hi ? 3 : 4;
}

int rank_of_code(const Context& k, int code) {
  const Format o = k.c.options.output_format;
  const Real exact = Real(code - k.q.zero_point) * k.scale;
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

BlockExplanation explain_block(const Case& c, std::size_t number, const Block& block, std::size_t most,
                               const std::vector<std::size_t>& wanted) {
  std::vector<Bits> x;
  if (c.op != Operation::dequantize) {
    for (std::size_t i = 0; i < block.size(); ++i) x.push_back(c.x[block.at(i)]);
  }
  BlockExplanation result;
  result.block = number;
  result.qparams =
      takes_qparams(c.op) ? c.given[number] : exact_oracle().choose_qparams(c.scheme, c.options, c.format, x);
  result.steps = takes_qparams(c.op) ? given_steps(c, result.qparams) : choosing_steps(c, x, result.qparams);
  if (c.op == Operation::choose_qparams) return result;
  Context k{c, code_range(c.options), result.qparams, Real(c.options.scale_format, result.qparams.scale), {}};
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

void add_breakpoint(std::string& text, Format format, std::string_view label, const std::optional<Breakpoint>& b) {
  if (!b) return;
  add_wrapped(text, 4, label, fmt::format("code {} from {}, threshold {}", b->code, show(format, b->x), b->threshold));
}

void add_element(std::string& text, const Case& c, const ElementExplanation& e) {
  text += e.x.empty() ? fmt::format("\n  element {}: code {}", e.index, e.code)
                      : fmt::format("\n  element {}: {} -> code {}", e.index, e.x, e.code);
  text += e.value.empty() ? "\n" : fmt::format(" -> {}\n", e.value);
  for (const Step& step : e.steps) add_step(text, 4, step);
  add_breakpoint(text, c.format, "change below", e.below);
  add_breakpoint(text, c.format, "change above", e.above);
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
  const std::string_view of = c.op == Operation::dequantize ? "codes" : name_of(c.format);
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
