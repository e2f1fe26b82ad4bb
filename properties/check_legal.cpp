// Equal to the oracle.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
Verdict legal_counts(const Target& target, const Case& c, const Oracle& oracle) {
  if (!target.counts_special) return unsupported();
  return both_paths(target, c, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    Counts legal;
    const std::vector<Block> blocks = cut(c.shape, c.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (!usable(c, reply.qparams[b])) return std::nullopt;
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
  const Case choose = choosing(c);
  const Answer legal = legal_answer(oracle, choose);
  return both_paths(target, choose, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < legal.qparams.size(); ++b) {
      if (reply.qparams[b] == legal.qparams[b]) continue;
      const std::string_view part = reply.qparams[b].tensor_scale != legal.qparams[b].tensor_scale ? "tensor_scale"
                                    : reply.qparams[b].scale != legal.qparams[b].scale             ? "scale"
                                                                                                   : "zero_point";
      return fail(fmt::format("{}{}", prefix, part), show(c.options, legal.qparams[b]),
                  show(c.options, reply.qparams[b]), b);
    }
    return std::nullopt;
  });
}

Verdict legal_codes(const Target& target, const Case& c, const Oracle& oracle) {
  return both_paths(target, c, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    const std::vector<Block> blocks = cut(c.shape, c.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const QParams q = reply.qparams[b];
      if (!usable(c, q)) continue;
      for (std::size_t i = 0; i < blocks[b].size(); ++i) {
        const std::size_t at = blocks[b].at(i);
        const int legal = oracle.quantize(c.options, c.format, q, c.x[at]);
        if (reply.codes[at] == legal) continue;
        return fail(fmt::format("{}code", prefix),
                    fmt::format("{} for x = {} under {}", show_code(c.options, legal), assay::show(c.format, c.x[at]),
                                show(c.options, q)),
                    show_code(c.options, reply.codes[at]), at);
      }
    }
    return std::nullopt;
  });
}

Verdict legal_values(const Target& target, const Case& c, const Oracle& oracle) {
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  if (reply.values.empty()) return unsupported();
  const std::vector<std::int32_t>& codes = c.op == Operation::dequantize ? c.codes : reply.codes;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const QParams q = reply.qparams[b];
    if (!usable(c, q)) continue;
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      // A pattern that is no number is the concern of nan_free.
      if (c.options.code_format && !is_code(c.options, codes[at])) continue;
      const Bits legal = oracle.dequantize(c.options, q, codes[at]);
      if (same_bits(c.options.output_format, legal, reply.values[at])) continue;
      return fail("value",
                  fmt::format("{} for {} under {}", assay::show(c.options.output_format, legal),
                              show_code(c.options, codes[at]), show(c.options, q)),
                  assay::show(c.options.output_format, reply.values[at]), at);
    }
  }
  return pass();
}

namespace {

std::string show(const Case& c, const Rescale& r) {
  if (r.scale != 0) return fmt::format("multiplier {}", assay::show(Format::f32, r.scale));
  if (c.scheme == "fixed_point.exact") return fmt::format("multiplier {}/{}", r.multiplier, r.divisor);
  return fmt::format("multiplier {} shift {}", r.multiplier, r.shift);
}

}  // namespace

Verdict requantize_exact(const Target& target, const Case& c, const Oracle& oracle) {
  const Reply reply = ask(target, c);
  if (auto verdict = no_answer(reply)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Rescale& r = c.rescales[b];
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      const int legal = oracle.requantize(c.scheme, c.options, r, c.accumulators[at]);
      if (reply.codes[at] == legal) continue;
      return fail("code",
                  fmt::format("code {} for {} + {}, {}, zero point {}", legal, c.accumulators[at], r.bias, show(c, r),
                              r.zero_point),
                  fmt::format("code {}", reply.codes[at]), at);
    }
  }
  return pass();
}

}  // namespace assay
