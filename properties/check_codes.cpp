// Codes as a function of x.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
Verdict nan_free(const Target& target, const Case& c, const Oracle&) {
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  const CodeRange codes = code_range(c.options);
  for (std::size_t i = 0; i < reply.codes.size(); ++i) {
    if (is_code(c.options, reply.codes[i])) continue;
    const std::string legal = c.options.code_format
                                  ? fmt::format("a finite number of {}", info(*c.options.code_format).name)
                                  : fmt::format("a code, {}..{}", codes.qmin, codes.qmax);
    return fail("code_outside", legal, show_code(c.options, reply.codes[i]), i);
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

namespace {

Bits from_double(Format format, double value) {
  // A cast is one rounding, half to even; only the other formats need the oracle's.
  return format == Format::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value)) : round_double(format, value);
}

// Inputs on which conversions to integers overflow at 2^7, 2^15, 2^31 and 2^63 steps, on both sides.
std::vector<Bits> far_inputs(const Case& c, QParams q) {
  const double scale =
      to_double(c.options.scale_format, q.scale) * (q.tensor_scale == 0 ? 1.0 : to_double(Format::f32, q.tensor_scale));
  std::vector<Bits> x = {infinity(c.format), largest_finite(c.format)};
  for (const double steps : {0x1p8, 0x1p16, 0x1.8p31, 0x1.8p32, 0x1.8p63, 0x1.8p64}) {
    const Bits far = from_double(c.format, steps * scale);
    // A narrow format may have no number there: it rounds to 0 or to infinity.
    if (is_finite(c.format, far) && !is_zero(c.format, far)) x.push_back(far);
  }
  for (std::size_t i = 0, n = x.size(); i < n; ++i) x.push_back(x[i] | sign_bit(c.format));
  return x;
}

}  // namespace

Verdict saturates(const Target& target, const Case& c, const Oracle& oracle) {
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
      return fail(is_inf(c.format, probe.x[i]) ? "infinity" : "large",
                  fmt::format("{} for x = {} under {}", show_code(c.options, legal), assay::show(c.format, probe.x[i]),
                              show(c.options, q)),
                  show_code(c.options, reply.codes[i]), i);
    }
  }
  return pass();
}

namespace {

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

}  // namespace

Verdict monotone(const Target& target, const Case& c, const Oracle&) {
  if (!target.quantize) return unsupported();
  const Chosen chosen = usable_qparams(target, c);
  if (chosen.none) return *chosen.none;
  std::vector<Bits> x = sorted_with_neighbours(c, 600);
  if (x.empty()) return not_applicable();
  const Case probe = quantize_case(c, chosen.qparams.front(), std::move(x));
  const Reply reply = ask(target, probe);
  if (auto verdict = no_answer(reply)) return *verdict;
  for (std::size_t i = 1; i < probe.x.size(); ++i) {
    // What is no code has no place in the order; nan_free speaks of it.
    if (!is_code(c.options, reply.codes[i]) || !is_code(c.options, reply.codes[i - 1])) continue;
    if (code_ordinal(c.options, reply.codes[i]) < code_ordinal(c.options, reply.codes[i - 1])) {
      return fail("decreases",
                  fmt::format("at least {}, the one of {}", show_code(c.options, reply.codes[i - 1]),
                              assay::show(c.format, probe.x[i - 1])),
                  fmt::format("{} for {}", show_code(c.options, reply.codes[i]), assay::show(c.format, probe.x[i])), i);
    }
  }
  return pass();
}

namespace {

// Integer codes: +0 and -0 get the zero point. Float codes keep the sign of zero.
bool is_code_of_zero(const Options& options, const QParams& q, int code) {
  return options.code_format ? is_code(options, code) && code_ordinal(options, code) == 0 : code == q.zero_point;
}

// +0 and -0 get a code of zero, and that of +0 reconstructs to +0.
std::optional<Verdict> zero_under(const Target& target, const Case& c, QParams q) {
  if (target.quantize && c.op != Operation::dequantize) {
    const Case zeros = quantize_case(c, q, {0, sign_bit(c.format), 0});
    const Reply reply = ask(target, zeros);
    if (auto verdict = no_answer(reply)) return verdict;
    for (std::size_t i = 0; i < reply.codes.size(); ++i) {
      if (is_code_of_zero(c.options, q, reply.codes[i])) continue;
      return fail("zero_code", fmt::format("{}, which stands for zero", show_code(c.options, q.zero_point)),
                  fmt::format("{} under {}", show_code(c.options, reply.codes[i]), show(c.options, q)), i);
    }
  }
  if (!target.dequantize) return std::nullopt;
  const Reply reply = ask(target, dequantize_case(c, q, {q.zero_point}));
  if (auto verdict = no_answer(reply)) return verdict;
  if (reply.values.front() == 0) return std::nullopt;
  return fail("zero_value", "+0", assay::show(c.options.output_format, reply.values.front()));
}

}  // namespace

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

// ------------------------------------------------------------------------------------------- packed codes

Verdict pack_round_trip(const Target& target, const Case& c, const Oracle&) {
  if (c.options.packing == Packing::none) return not_applicable();
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  if (reply.packed.empty()) return unsupported();
  const std::vector<std::int32_t>& codes = c.op == Operation::dequantize ? c.codes : reply.codes;
  const std::vector<std::uint8_t> legal = pack(c.options, codes);
  for (std::size_t i = 0; i < legal.size(); ++i) {
    if (reply.packed[i] == legal[i]) continue;
    return fail("packed", fmt::format("byte {:02x}, {}", legal[i], to_string(c.options.packing)),
                fmt::format("byte {:02x}", reply.packed[i]), i);
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    // A code that is none, from a quantizer that is wrong elsewhere, does not survive.
    if (reply.unpacked[i] == codes[i] || !is_code(c.options, codes[i])) continue;
    return fail("unpacked", fmt::format("{} again", show_code(c.options, codes[i])),
                show_code(c.options, reply.unpacked[i]), i);
  }
  return pass();
}

}  // namespace assay
