// Every property: one check and one row of the table at the end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "properties/ask.h"
#include "properties/float_environment.h"
#include "properties/guarded.h"
#include "properties/property.h"

namespace assay {
namespace {

Verdict pass() { return {}; }
Verdict not_applicable() { return {Outcome::not_applicable, {}, {}, {}, 0}; }
Verdict unsupported() { return {Outcome::unsupported, {}, {}, {}, 0}; }
Verdict fail(std::string kind, std::string legal, std::string got, std::size_t index = 0) {
  return {Outcome::fail, std::move(kind), std::move(legal), std::move(got), index};
}

bool chooses(const Case& c) { return !takes_qparams(c.op); }
bool makes_codes(const Case& c) { return c.op == Operation::quantize || c.op == Operation::round_trip; }
bool makes_values(const Case& c) { return c.op == Operation::dequantize || c.op == Operation::round_trip; }

// A reply that cannot be judged: nothing to judge, or an error where the scheme has an answer.
std::optional<Verdict> no_answer(const Reply& reply) {
  if (reply.status == Status::unsupported) return unsupported();
  if (reply.status == Status::failed) return fail("refused", "an answer: the scheme accepts this input", "an error");
  return std::nullopt;
}

std::string show(const Options& options, QParams q) {
  return fmt::format("scale {} zero_point {}", assay::show(options.scale_format, q.scale), q.zero_point);
}

std::string show(const Counts& counts) {
  return fmt::format("nan {} inf {} saturated {}", counts.nan, counts.inf, counts.saturated);
}

bool zero_point_is_code(const Options& options, std::int32_t zero_point) {
  const CodeRange codes = code_range(options);
  return zero_point >= codes.qmin && zero_point <= codes.qmax;
}

bool usable(const Options& options, QParams q) {
  return scale_is_positive_finite(options, q.scale) && zero_point_is_code(options, q.zero_point);
}

// The qparams under which the target quantizes this case: given ones, or those it chose that can be judged by.
struct Chosen {
  std::optional<Verdict> none;
  std::vector<QParams> qparams;
};

Chosen usable_qparams(const Target& target, const Case& c) {
  if (takes_qparams(c.op)) return {std::nullopt, c.given};
  Case choose = c;
  choose.op = Operation::choose_qparams;
  const Reply reply = ask(target, choose, usual_path(target, choose));
  if (auto verdict = no_answer(reply)) return {verdict, {}};
  Chosen chosen;
  for (const QParams& q : reply.qparams) {
    if (usable(c.options, q)) chosen.qparams.push_back(q);
  }
  if (chosen.qparams.empty()) chosen.none = not_applicable();
  return chosen;
}

// Where two replies to the same question first differ, in words; nothing if they are the same.
std::optional<Verdict> difference(const Case& c, const Reply& expected, const Reply& got, std::string_view kind) {
  if (expected.status != got.status) return fail(fmt::format("{}_status", kind), "the same status", "another");
  for (std::size_t b = 0; b < expected.qparams.size(); ++b) {
    if (expected.qparams[b] != got.qparams[b]) {
      return fail(fmt::format("{}_qparams", kind), show(c.options, expected.qparams[b]),
                  show(c.options, got.qparams[b]), b);
    }
  }
  for (std::size_t i = 0; i < expected.codes.size(); ++i) {
    if (expected.codes[i] != got.codes[i]) {
      return fail(fmt::format("{}_codes", kind), fmt::format("code {}", expected.codes[i]),
                  fmt::format("code {}", got.codes[i]), i);
    }
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!same_bits(c.options.output_format, expected.values[i], got.values[i])) {
      return fail(fmt::format("{}_values", kind), assay::show(c.options.output_format, expected.values[i]),
                  assay::show(c.options.output_format, got.values[i]), i);
    }
  }
  if (expected.counts != got.counts) {
    return fail(fmt::format("{}_counts", kind), show(expected.counts), show(got.counts));
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------- memory and repetition

Verdict in_bounds(const Target& target, const Case& c, const Oracle&) {
  bool asked = false;
  for (const Path path : {Path::separate, Path::fused}) {
    for (const auto flush : {GuardedMemory::Flush::end, GuardedMemory::Flush::start}) {
      GuardedMemory memory(flush);
      Status status = Status::ok;
      const auto caught = caught_access([&] { status = ask(target, c, path, memory).status; });
      if (caught) return fail("out_of_bounds", "no access outside the buffers", memory.locate(*caught));
      asked = asked || status != Status::unsupported;
    }
  }
  return asked ? pass() : unsupported();
}

Verdict deterministic(const Target& target, const Case& c, const Oracle&) {
  const Path path = usual_path(target, c);
  PlainMemory zeros(std::byte{0x00}), ones(std::byte{0xff});
  const Reply first = ask(target, c, path, zeros);
  if (auto verdict = no_answer(first)) return *verdict;
  const Reply second = ask(target, c, path, ones);
  return difference(c, first, second, "second_call").value_or(pass());
}

// The signals that exact arithmetic never raises on the way to a code: rounding is inexact, and may underflow.
std::optional<Verdict> alarms_raised(std::string_view where) {
  if (std::fetestexcept(FE_INVALID) != 0)
    return fail("raises_invalid", "no invalid operation", fmt::format("the invalid flag, {}", where));
  if (std::fetestexcept(FE_DIVBYZERO) != 0)
    return fail("divides_by_zero", "no division by zero", fmt::format("the division by zero flag, {}", where));
  return std::nullopt;
}

// One question in one caller's environment.
std::optional<Verdict> in_environment(const Target& target, const Case& c, Path path, const Reply& expected,
                                      const CallerEnvironment& caller) {
  PlainMemory memory;
  const KeepFloatEnvironment keep;
  caller.enter();
  const std::uint64_t before = float_control();
  const Reply got = ask_in_this_environment(target, c, path, memory);
  const std::uint64_t after = float_control();
  if (before != after) {
    return fail("environment_changed", fmt::format("the control word {:08x} as before, {}", before, caller.name),
                fmt::format("{:08x}", after));
  }
  auto verdict = difference(c, expected, got, "environment");
  if (verdict) verdict->got += fmt::format(" when called {}", caller.name);
  return verdict;
}

Verdict environment_kept(const Target& target, const Case& c, const Oracle&) {
  const Path path = usual_path(target, c);
  PlainMemory memory;
  const KeepFloatEnvironment keep;
  std::feclearexcept(FE_ALL_EXCEPT);
  const std::uint64_t before = float_control();
  const Reply expected = ask_in_this_environment(target, c, path, memory);
  const std::uint64_t after = float_control();
  if (auto verdict = no_answer(expected)) return *verdict;
  if (auto verdict = alarms_raised("in the default environment")) return *verdict;
  if (before != after) {
    return fail("environment_changed", fmt::format("the control word {:08x} as before", before),
                fmt::format("{:08x}", after));
  }
  for (const CallerEnvironment& caller : caller_environments()) {
    if (auto verdict = in_environment(target, c, path, expected, caller)) return *verdict;
  }
  return pass();
}

// ------------------------------------------------------------------------------------------- qparams that can be used

// Judges both ways of asking with the same function of (reply, kind prefix).
template <typename Judge>
Verdict both_paths(const Target& target, const Case& c, Judge judge) {
  bool asked = false;
  for (const Path path : {Path::separate, Path::fused}) {
    const Reply reply = ask(target, c, path);
    if (reply.status == Status::unsupported) continue;
    if (auto verdict = no_answer(reply)) return *verdict;
    asked = true;
    if (std::optional<Verdict> verdict = judge(reply, path == Path::fused ? "fused_" : "")) return *verdict;
  }
  return asked ? pass() : unsupported();
}

template <typename Good>
Verdict each_qparams(const Target& target, const Case& c, Good good) {
  if (!chooses(c)) return not_applicable();
  Case choose = c;
  choose.op = Operation::choose_qparams;
  return both_paths(target, choose, [&](const Reply& reply, std::string_view) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < reply.qparams.size(); ++b) {
      if (auto verdict = good(reply.qparams[b], b)) return verdict;
    }
    return std::nullopt;
  });
}

Verdict scale_positive_finite(const Target& target, const Case& c, const Oracle&) {
  return each_qparams(target, c, [&](QParams q, std::size_t b) -> std::optional<Verdict> {
    if (scale_is_positive_finite(c.options, q.scale)) return std::nullopt;
    const Format s = c.options.scale_format;
    const std::string_view kind = is_zero(s, q.scale)       ? "scale_zero"
                                  : is_nan(s, q.scale)      ? "scale_nan"
                                  : is_negative(s, q.scale) ? "scale_negative"
                                                            : "scale_infinite";
    return fail(std::string(kind), "a scale > 0 and finite", assay::show(s, q.scale), b);
  });
}

Verdict zero_point_in_range(const Target& target, const Case& c, const Oracle&) {
  return each_qparams(target, c, [&](QParams q, std::size_t b) -> std::optional<Verdict> {
    if (zero_point_is_code(c.options, q.zero_point)) return std::nullopt;
    const CodeRange codes = code_range(c.options);
    return fail("zero_point_outside", fmt::format("a code, {}..{}", codes.qmin, codes.qmax),
                fmt::format("{}", q.zero_point), b);
  });
}

Verdict nan_free(const Target& target, const Case& c, const Oracle&) {
  if (!makes_codes(c) && !makes_values(c)) return not_applicable();
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  const CodeRange codes = code_range(c.options);
  for (std::size_t i = 0; i < reply.codes.size(); ++i) {
    if (reply.codes[i] < codes.qmin || reply.codes[i] > codes.qmax) {
      return fail("code_outside", fmt::format("a code, {}..{}", codes.qmin, codes.qmax),
                  fmt::format("{}", reply.codes[i]), i);
    }
  }
  for (std::size_t i = 0; i < reply.values.size(); ++i) {
    const Format o = c.options.output_format;
    if (!is_finite(o, reply.values[i])) {
      return fail(is_nan(o, reply.values[i]) ? "value_nan" : "value_infinite", "a finite value",
                  assay::show(o, reply.values[i]), i);
    }
  }
  return pass();
}

// ------------------------------------------------------------------------------------------- codes as a function of x

Bits from_double(Format format, double value) {
  // A cast is one rounding, half to even; only the other formats need the oracle's.
  return format == Format::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value)) : round_double(format, value);
}

// Inputs on which conversions to integers overflow at 2^7, 2^15, 2^31 and 2^63 steps, on both sides.
std::vector<Bits> far_inputs(const Case& c, QParams q) {
  const double scale = to_double(c.options.scale_format, q.scale);
  std::vector<Bits> x = {infinity(c.format), largest_finite(c.format)};
  for (const double steps : {0x1p8, 0x1p16, 0x1.8p31, 0x1.8p32, 0x1.8p63, 0x1.8p64}) {
    const Bits far = from_double(c.format, steps * scale);
    // A narrow format may have no number there: it rounds to 0 or to infinity.
    if (is_finite(c.format, far) && !is_zero(c.format, far)) x.push_back(far);
  }
  for (std::size_t i = 0, n = x.size(); i < n; ++i) x.push_back(x[i] | sign_bit(c.format));
  return x;
}

Verdict saturates(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.op == Operation::dequantize) return not_applicable();
  if (!target.quantize) return unsupported();
  const Chosen chosen = usable_qparams(target, c);
  if (chosen.none) return *chosen.none;
  const QParams q = chosen.qparams.front();
  const Case probe = quantize_case(c, q, far_inputs(c, q));
  const Reply reply = ask(target, probe);
  if (auto verdict = no_answer(reply)) return *verdict;
  const CodeRange codes = code_range(c.options);
  for (std::size_t i = 0; i < probe.x.size(); ++i) {
    const int legal = oracle.quantize(c.options, c.format, q, probe.x[i]);
    if (legal != codes.qmin && legal != codes.qmax) continue;
    if (reply.codes[i] != legal) {
      return fail(
          is_inf(c.format, probe.x[i]) ? "infinity" : "large",
          fmt::format("code {} for x = {} under {}", legal, assay::show(c.format, probe.x[i]), show(c.options, q)),
          fmt::format("code {}", reply.codes[i]), i);
    }
  }
  return pass();
}

std::vector<Bits> sorted_with_neighbours(const Case& c, std::size_t most) {
  std::vector<Bits> x;
  for (const Bits bits : c.x) {
    if (is_nan(c.format, bits)) continue;
    x.insert(x.end(), {next_down(c.format, bits), bits, next_up(c.format, bits)});
    if (x.size() >= most) break;
  }
  std::sort(x.begin(), x.end(), [&](Bits a, Bits b) { return ordinal(c.format, a) < ordinal(c.format, b); });
  return x;
}

Verdict monotone(const Target& target, const Case& c, const Oracle&) {
  if (c.op == Operation::dequantize) return not_applicable();
  if (!target.quantize) return unsupported();
  const Chosen chosen = usable_qparams(target, c);
  if (chosen.none) return *chosen.none;
  std::vector<Bits> x = sorted_with_neighbours(c, 600);
  if (x.empty()) return not_applicable();
  const Case probe = quantize_case(c, chosen.qparams.front(), std::move(x));
  const Reply reply = ask(target, probe);
  if (auto verdict = no_answer(reply)) return *verdict;
  for (std::size_t i = 1; i < probe.x.size(); ++i) {
    if (reply.codes[i] < reply.codes[i - 1]) {
      return fail("decreases",
                  fmt::format("at least {}, the code of {}", reply.codes[i - 1], assay::show(c.format, probe.x[i - 1])),
                  fmt::format("code {} for {}", reply.codes[i], assay::show(c.format, probe.x[i])), i);
    }
  }
  return pass();
}

// +0 and -0 get the code zero_point, which reconstructs to +0.
std::optional<Verdict> zero_under(const Target& target, const Case& c, QParams q) {
  if (target.quantize && c.op != Operation::dequantize) {
    const Case zeros = quantize_case(c, q, {0, sign_bit(c.format), 0});
    const Reply reply = ask(target, zeros);
    if (auto verdict = no_answer(reply)) return verdict;
    for (std::size_t i = 0; i < reply.codes.size(); ++i) {
      if (reply.codes[i] == q.zero_point) continue;
      return fail("zero_code", fmt::format("code {}, the zero point", q.zero_point),
                  fmt::format("code {} under {}", reply.codes[i], show(c.options, q)), i);
    }
  }
  if (!target.dequantize) return std::nullopt;
  const Reply reply = ask(target, dequantize_case(c, q, {q.zero_point}));
  if (auto verdict = no_answer(reply)) return verdict;
  if (reply.values.front() == 0) return std::nullopt;
  return fail("zero_value", "+0", assay::show(c.options.output_format, reply.values.front()));
}

Verdict zero_exact(const Target& target, const Case& c, const Oracle&) {
  const Chosen chosen = usable_qparams(target, c);
  if (chosen.none) return *chosen.none;
  if (auto verdict = zero_under(target, c, chosen.qparams.front())) return *verdict;
  if (c.op != Operation::round_trip) return pass();
  const Case zeros = with_block(c, std::vector<Bits>(c.x.size()));
  const Reply reply = ask(target, zeros, usual_path(target, zeros));
  if (auto verdict = no_answer(reply)) return *verdict;
  for (std::size_t i = 0; i < reply.values.size(); ++i) {
    if (reply.values[i] != 0) {
      return fail("zero_block", "+0 throughout", assay::show(c.options.output_format, reply.values[i]), i);
    }
  }
  return pass();
}

// ------------------------------------------------------------------------------------------- round trips

// Every finite element of one-block case `c` within half a step of its exact reconstruction, under the target's
// qparams.
Verdict every_element_survives(const Target& target, const Case& c, std::string_view kind) {
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const QParams q = reply.qparams[b];
    if (!usable(c.options, q) || range_too_large(c.scheme, c.options, c.format, block_of(c, blocks[b]))) continue;
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      if (!is_finite(c.format, c.x[at])) continue;
      const RoundTrip judged = judge_round_trip(c.options, c.format, q, c.x[at], reply.codes[at]);
      if (judged.nearest && judged.within_half_step) continue;
      return fail(judged.within_half_step ? "not_nearest" : std::string(kind),
                  fmt::format("x = {} within scale/2 of its reconstruction", assay::show(c.format, c.x[at])),
                  fmt::format("code {} under {}: {:.6g} steps away", reply.codes[at], show(c.options, q),
                              error_in_steps(c.options, c.format, q, c.x[at], reply.codes[at])),
                  at);
    }
  }
  return pass();
}

Verdict constant_block(const Target& target, const Case& c, const Oracle&) {
  if (c.op != Operation::round_trip) return not_applicable();
  const auto first = std::find_if(c.x.begin(), c.x.end(), [&](Bits x) { return is_finite(c.format, x); });
  if (first == c.x.end()) return not_applicable();
  return every_element_survives(target, with_block(c, std::vector<Bits>(c.x.size(), *first)), "constant_lost");
}

Verdict range_includes_zero(const Target& target, const Case& c, const Oracle&) {
  if (c.op != Operation::round_trip) return not_applicable();
  // Mirrored to the side of the first element, any block becomes one whose range excludes zero.
  const Bits side = c.x.front() & sign_bit(c.format);
  std::vector<Bits> x;
  for (const Bits bits : c.x) {
    if (is_finite(c.format, bits) && !is_zero(c.format, bits)) x.push_back((bits & ~sign_bit(c.format)) | side);
  }
  if (x.empty()) return not_applicable();
  return every_element_survives(target, with_block(c, std::move(x)), "single_sign_lost");
}

Verdict round_trip(const Target& target, const Case& c, const Oracle&) {
  if (c.op == Operation::round_trip) return every_element_survives(target, c, "element_lost");
  if (c.op != Operation::quantize) return not_applicable();
  const Reply reply = ask(target, c);
  if (auto verdict = no_answer(reply)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      if (!is_finite(c.format, c.x[at])) continue;
      if (judge_round_trip(c.options, c.format, c.given[b], c.x[at], reply.codes[at]).nearest) continue;
      return fail("not_nearest", fmt::format("the code nearest to x = {}", assay::show(c.format, c.x[at])),
                  fmt::format("code {} under {}", reply.codes[at], show(c.options, c.given[b])), at);
    }
  }
  return pass();
}

// The first finite element of `c` with this code.
std::optional<std::size_t> reached(const Case& c, const std::vector<std::int32_t>& codes, int code) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == code && is_finite(c.format, c.x[i])) return i;
  }
  return std::nullopt;
}

Verdict full_range(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.op != Operation::round_trip) return not_applicable();
  bool judged = false;
  for (const Block& block : cut(c.shape, c.options)) {
    const Case alone = with_block(c, block_of(c, block));
    const Answer legal = legal_answer(oracle, alone);
    const CodeRange codes = code_range(c.options);
    for (const int end : {codes.qmin, codes.qmax}) {
      const auto at = reached(alone, legal.codes, end);
      if (!at) continue;
      const Reply reply = ask(target, alone, usual_path(target, alone));
      if (auto verdict = no_answer(reply)) return *verdict;
      judged = true;
      if (reached(alone, reply.codes, end)) continue;
      return fail(end == codes.qmin ? "lowest_unused" : "highest_unused",
                  fmt::format("code {} for x = {}", end, assay::show(c.format, alone.x[*at])),
                  fmt::format("code {}", reply.codes[*at]), block.at(*at));
    }
  }
  return judged ? pass() : not_applicable();
}

Verdict requantize_stable(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.op != Operation::round_trip || c.format != c.options.output_format) return not_applicable();
  const Answer first = legal_answer(oracle, c);
  Case again = c;
  again.x = first.values;
  const Answer second = legal_answer(oracle, again);
  // Where the output format is too coarse for the codes even exact arithmetic moves them; that is not the target's.
  if (second.codes != first.codes) return not_applicable();
  const Reply reply = ask(target, again, usual_path(target, again));
  if (auto verdict = no_answer(reply)) return *verdict;
  for (std::size_t i = 0; i < again.x.size(); ++i) {
    if (reply.codes[i] == first.codes[i]) continue;
    return fail("code_moved",
                fmt::format("code {} again, from its own value {}", first.codes[i], assay::show(c.format, again.x[i])),
                fmt::format("code {}", reply.codes[i]), i);
  }
  return pass();
}

// ------------------------------------------------------------------------------------------- symmetries

Case negated(const Case& c) {
  Case other = c;
  for (Bits& x : other.x) x ^= sign_bit(c.format);
  return other;
}

Verdict sign_symmetric(const Target& target, const Case& c, const Oracle&) {
  if (!makes_codes(c) || !scheme_named(c.scheme)->symmetric || !c.options.narrow_range) return not_applicable();
  // Whoever hands a zero point to a symmetric scheme moves its centre.
  if (std::any_of(c.given.begin(), c.given.end(), [](QParams q) { return q.zero_point != 0; })) return not_applicable();
  const Path path = usual_path(target, c);
  const Reply plain = ask(target, c, path), mirrored = ask(target, negated(c), path);
  if (auto verdict = no_answer(plain)) return *verdict;
  if (auto verdict = no_answer(mirrored)) return *verdict;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    if (mirrored.codes[i] == -plain.codes[i]) continue;
    return fail("not_odd",
                fmt::format("code {}, since {} has {}", -plain.codes[i], assay::show(c.format, c.x[i]), plain.codes[i]),
                fmt::format("code {} for its negative", mirrored.codes[i]), i);
  }
  return pass();
}

// The pattern of 2^k times a normal number; nothing if that is not normal.
std::optional<Bits> scaled(Format format, Bits bits, int k) {
  if (is_zero(format, bits) || !is_finite(format, bits)) return bits;
  const int fraction_bits = info(format).precision - 1;
  const std::int64_t exponents = static_cast<std::int64_t>(infinity(format) >> fraction_bits);
  const std::int64_t exponent = static_cast<std::int64_t>((bits & ~sign_bit(format)) >> fraction_bits);
  if (exponent == 0 || exponent + k <= 0 || exponent + k >= exponents) return std::nullopt;
  return bits + (static_cast<Bits>(std::int64_t{k}) << fraction_bits);
}

// The case with every input and every given scale multiplied by 2^k, where nothing leaves the normal numbers.
std::optional<Case> scaled(const Case& c, int k) {
  Case other = c;
  for (Bits& x : other.x) {
    const auto bits = scaled(c.format, x, k);
    if (!bits) return std::nullopt;
    x = *bits;
  }
  for (QParams& q : other.given) {
    const auto bits = scaled(c.options.scale_format, q.scale, k);
    if (!bits) return std::nullopt;
    q.scale = *bits;
  }
  return other;
}

// Whether the scheme itself keeps qparams and codes: a block of zeros has the scale 1 at any size, and a scale at the
// limits of its format cannot follow.
bool scheme_follows(const Case& c, const Case& other, int k, const Oracle& oracle) {
  const Answer legal = legal_answer(oracle, c), legal_other = legal_answer(oracle, other);
  for (std::size_t b = 0; b < legal.qparams.size(); ++b) {
    const auto expected = scaled(c.options.scale_format, legal.qparams[b].scale, k);
    if (!expected || *expected != legal_other.qparams[b].scale) return false;
  }
  return legal.codes == legal_other.codes;
}

Verdict scale_equivariant(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.op == Operation::dequantize) return not_applicable();
  for (const int k : {7, -7, 1, -1}) {
    const std::optional<Case> other = scaled(c, k);
    if (!other || !scheme_follows(c, *other, k, oracle)) continue;
    const Path path = usual_path(target, c);
    const Reply plain = ask(target, c, path), larger = ask(target, *other, path);
    if (auto verdict = no_answer(plain)) return *verdict;
    if (auto verdict = no_answer(larger)) return *verdict;
    Reply expected = plain;
    expected.values.clear();  // those may round in the output format
    for (QParams& q : expected.qparams) {
      const auto scale = scaled(c.options.scale_format, q.scale, k);
      if (!scale || !usable(c.options, q)) return not_applicable();
      q.scale = *scale;
    }
    auto verdict = difference(c, expected, larger, "scaled");
    if (verdict) verdict->legal += fmt::format(", since everything is 2^{} times as large", k);
    return verdict.value_or(pass());
  }
  return not_applicable();
}

// ------------------------------------------------------------------------------------------- sameness

// Codes written over their own input: right, or refused. Not through ask(), whose buffers lie apart.
std::optional<Verdict> quantize_in_place(const Target& target, const Case& whole, const Reply& expected) {
  const Request request{whole.scheme, whole.options, whole.format, whole.shape};
  const std::size_t width = byte_width(whole.format), n = whole.x.size();
  PlainMemory memory;
  std::byte* const x = memory.allocate(n * width, width);
  for (std::size_t i = 0; i < n; ++i) store_pattern(x, whole.format, i, whole.x[i]);
  const QParams q = whole.given.front();
  const KeepFloatEnvironment keep;
  Counts counts;
  if (target.quantize(request, x, &q.scale, &q.zero_point, x, &counts) != Status::ok) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) {
    const int code = load_code(x, whole.options, i);
    if (code == expected.codes[i]) continue;
    return fail("in_place", fmt::format("code {}, or a refusal", expected.codes[i]),
                fmt::format("code {} when the codes take the place of x", code), i);
  }
  return std::nullopt;
}

// The same elements at other addresses, fewer of them, and in reverse.
Verdict quantize_anywhere(const Target& target, const Case& c, QParams q) {
  const Case whole = quantize_case(c, q, c.x);
  const Reply expected = ask(target, whole);
  if (auto verdict = no_answer(expected)) return *verdict;
  if (auto verdict = quantize_in_place(target, whole, expected)) return *verdict;
  for (const std::size_t shift : {1u, 3u, 7u}) {
    PlainMemory memory(std::byte{0x5a}, shift);
    if (auto verdict = difference(c, expected, ask(target, whole, Path::separate, memory), "shifted")) return *verdict;
  }
  const std::size_t n = c.x.size();
  for (const std::size_t length : {std::size_t{1}, n / 3, n / 2, n - n / 5, n - 1}) {
    if (length == 0 || length >= n) continue;
    const Case head = quantize_case(c, q, {c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(length)});
    const Reply got = ask(target, head);
    if (got.status != Status::ok) {
      return fail("length_status", fmt::format("an answer, as for {} elements", n),
                  fmt::format("none for {} elements", length));
    }
    for (std::size_t i = 0; i < length; ++i) {
      if (got.codes[i] != expected.codes[i]) {
        return fail("length", fmt::format("code {} as in {} elements", expected.codes[i], n),
                    fmt::format("code {} in {} elements", got.codes[i], length), i);
      }
    }
  }
  const Reply reversed = ask(target, quantize_case(c, q, {c.x.rbegin(), c.x.rend()}));
  if (reversed.status != Status::ok) return fail("order_status", "an answer", "none in reverse order");
  for (std::size_t i = 0; i < n; ++i) {
    if (reversed.codes[n - 1 - i] != expected.codes[i]) {
      return fail("order", fmt::format("code {}", expected.codes[i]),
                  fmt::format("code {} in reverse order", reversed.codes[n - 1 - i]), i);
    }
  }
  return pass();
}

// Every block of a tensor gets the answer that it gets alone.
Verdict blocks_alone(const Target& target, const Case& c) {
  const Path path = usual_path(target, c);
  const Reply whole = ask(target, c, path);
  if (auto verdict = no_answer(whole)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  if (blocks.size() < 2) return pass();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Reply alone = ask(target, with_block(c, block_of(c, blocks[b])), path);
    if (alone.status == Status::unsupported) return pass();
    if (auto verdict = no_answer(alone)) return *verdict;
    if (alone.qparams.at(0) != whole.qparams[b]) {
      return fail("block_qparams", show(c.options, alone.qparams[0]) + " as alone", show(c.options, whole.qparams[b]),
                  b);
    }
    for (std::size_t i = 0; i < alone.codes.size(); ++i) {
      if (alone.codes[i] == whole.codes[blocks[b].at(i)]) continue;
      return fail("block_codes", fmt::format("code {} as alone", alone.codes[i]),
                  fmt::format("code {} in block {}", whole.codes[blocks[b].at(i)], b), blocks[b].at(i));
    }
  }
  return pass();
}

Verdict position_independent(const Target& target, const Case& c, const Oracle&) {
  if (c.op == Operation::dequantize) {
    const Reply expected = ask(target, c);
    if (auto verdict = no_answer(expected)) return *verdict;
    PlainMemory memory(std::byte{0x5a}, 3);
    return difference(c, expected, ask(target, c, Path::separate, memory), "shifted").value_or(pass());
  }
  if (chooses(c)) {
    const Verdict verdict = blocks_alone(target, c);
    if (verdict.outcome != Outcome::pass || !target.quantize) return verdict;
  }
  if (!target.quantize) return unsupported();
  const Chosen chosen = usable_qparams(target, c);
  if (chosen.none) return *chosen.none;
  return quantize_anywhere(target, c, chosen.qparams.front());
}

Verdict isa_agree(const Target& target, const Case& c, const Oracle&) {
  const std::vector<Target> others = target.other_isas ? target.other_isas() : std::vector<Target>{};
  if (others.empty()) return unsupported();
  for (const Path path : {Path::separate, Path::fused}) {
    const Reply mine = ask(target, c, path);
    if (mine.status == Status::unsupported && path == Path::fused) break;
    if (auto verdict = no_answer(mine)) return *verdict;
    for (const Target& other : others) {
      if (auto verdict = difference(c, mine, ask(other, c, path), "isa")) {
        verdict->got += fmt::format(" on {}", other.isa);
        return *verdict;
      }
    }
  }
  return pass();
}

// ------------------------------------------------------------------------------------------- equal to the oracle

Verdict legal_counts(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.op == Operation::dequantize) return not_applicable();
  if (!target.counts_special) return unsupported();
  return both_paths(target, c, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    Counts legal;
    const std::vector<Block> blocks = cut(c.shape, c.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (!usable(c.options, reply.qparams[b])) return std::nullopt;
      for (const Bits x : block_of(c, blocks[b])) {
        legal.nan += is_nan(c.format, x);
        legal.inf += is_inf(c.format, x);
        legal.saturated += oracle.saturated(c.options, c.format, reply.qparams[b], x);
      }
    }
    if (reply.counts == legal) return std::nullopt;
    return fail(fmt::format("{}counts", prefix), show(legal), show(reply.counts));
  });
}

Verdict legal_qparams(const Target& target, const Case& c, const Oracle& oracle) {
  if (!chooses(c)) return not_applicable();
  Case choose = c;
  choose.op = Operation::choose_qparams;
  const Answer legal = legal_answer(oracle, choose);
  return both_paths(target, choose, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < legal.qparams.size(); ++b) {
      if (reply.qparams[b] == legal.qparams[b]) continue;
      const bool scale = reply.qparams[b].scale != legal.qparams[b].scale;
      return fail(fmt::format("{}{}", prefix, scale ? "scale" : "zero_point"), show(c.options, legal.qparams[b]),
                  show(c.options, reply.qparams[b]), b);
    }
    return std::nullopt;
  });
}

Verdict legal_codes(const Target& target, const Case& c, const Oracle& oracle) {
  if (!makes_codes(c)) return not_applicable();
  return both_paths(target, c, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    const std::vector<Block> blocks = cut(c.shape, c.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const QParams q = reply.qparams[b];
      if (!usable(c.options, q)) continue;
      for (std::size_t i = 0; i < blocks[b].size(); ++i) {
        const std::size_t at = blocks[b].at(i);
        const int legal = oracle.quantize(c.options, c.format, q, c.x[at]);
        if (reply.codes[at] == legal) continue;
        return fail(
            fmt::format("{}code", prefix),
            fmt::format("code {} for x = {} under {}", legal, assay::show(c.format, c.x[at]), show(c.options, q)),
            fmt::format("code {}", reply.codes[at]), at);
      }
    }
    return std::nullopt;
  });
}

Verdict legal_values(const Target& target, const Case& c, const Oracle& oracle) {
  if (!makes_values(c)) return not_applicable();
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  if (reply.values.empty()) return unsupported();
  const std::vector<std::int32_t>& codes = c.op == Operation::dequantize ? c.codes : reply.codes;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const QParams q = reply.qparams[b];
    if (!usable(c.options, q)) continue;
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      const Bits legal = oracle.dequantize(c.options, q, codes[at]);
      if (same_bits(c.options.output_format, legal, reply.values[at])) continue;
      return fail("value",
                  fmt::format("{} for code {} under {}", assay::show(c.options.output_format, legal), codes[at],
                              show(c.options, q)),
                  assay::show(c.options.output_format, reply.values[at]), at);
    }
  }
  return pass();
}

constexpr std::array kCatalogue = {
    Property{"in_bounds", "public bugs: tail writes and over-reads",
             "Nothing outside the outputs is written, nothing outside the inputs is read, no input is changed.",
             in_bounds},
    Property{"scale_positive_finite", "coremltools #2853; ModelOpt #1353 (TensorRT: scales all positive)",
             "The stored scale is greater than zero and finite for every input.", scale_positive_finite},
    Property{"zero_point_in_range", "LLMC #334", "The zero point is a code of the format.", zero_point_in_range},
    Property{"nan_free", "coremltools #2853", "Codes are in range and values finite for every input.", nan_free},
    Property{"saturates", "public bugs: casts that overflow",
             "Huge and infinite inputs land on the end codes and never wrap.", saturates},
    Property{"monotone", "definition", "x <= y implies q(x) <= q(y).", monotone},
    Property{"zero_exact", "coremltools #2853",
             "0.0 gets the zero point as its code and comes back as +0.0; an all-zero block comes back as zeros.",
             zero_exact},
    Property{"constant_block", "public bugs: min == max", "A block of equal values comes back within half a step.",
             constant_block},
    Property{"range_includes_zero", "LLMC #334",
             "A block whose values are all positive or all negative comes back within half a step everywhere.",
             range_includes_zero},
    Property{"requantize_stable", "LLMC #334", "An already-quantized block requantizes to itself.", requantize_stable},
    Property{"full_range", "LLMC #334", "The end codes that exact arithmetic reaches are reached.", full_range},
    Property{"deterministic", "definition",
             "The same call twice gives the same bits, whatever the outputs held before.", deterministic},
    Property{"isa_agree", "public bugs: instruction sets that differ",
             "Every instruction set of this machine gives the same bits.", isa_agree},
    Property{"position_independent", "public bugs: tails, alignment, neighbours",
             "Address, length, order and neighbouring blocks change nothing.", position_independent},
    Property{"environment_kept", "public bugs: subnormals flushed, rounding left changed",
             "The caller's rounding mode and flushing of subnormals neither change the result nor are changed, and no "
             "invalid operation or division by zero is signalled.",
             environment_kept},
    Property{"sign_symmetric", "definition", "Symmetric codes without the lowest are odd: q(-x) = -q(x).",
             sign_symmetric},
    Property{"scale_equivariant", "definition",
             "A block times 2^k has 2^k times the scale, and the same zero point and codes.", scale_equivariant},
    Property{"round_trip", "the mission",
             "No other code reconstructs closer to x, and every finite element is within half a step of its exact "
             "reconstruction.",
             round_trip},
    Property{"legal_counts", "the mission", "The reported NaN, infinite and saturated elements are counted exactly.",
             legal_counts},
    Property{"legal_qparams", "the mission", "Scale and zero point equal the oracle's, bit for bit.", legal_qparams},
    Property{"legal_codes", "the mission", "Every code equals the oracle's.", legal_codes},
    Property{"legal_values", "the mission", "Every dequantized value equals the oracle's, bit for bit.", legal_values},
};

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "fail";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::not_applicable:
      return "not_applicable";
  }
  return "?";
}

void Tally::add(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      ++pass;
      break;
    case Outcome::fail:
      ++fail;
      break;
    case Outcome::unsupported:
      ++unsupported;
      break;
    case Outcome::not_applicable:
      ++not_applicable;
      break;
  }
}

std::string signature(const Finding& finding) {
  return fmt::format("{}/{}/{}/{}", finding.target, finding.property, finding.example.scheme, finding.verdict.kind);
}

std::span<const Property> catalogue() { return kCatalogue; }

const Property* property_named(std::string_view id) {
  for (const Property& property : kCatalogue) {
    if (property.id == id) return &property;
  }
  return nullptr;
}

}  // namespace assay
