// What comes back from codes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
namespace {

// Every finite element of one-block case `c` within half a step of its exact reconstruction, under the target's
// qparams.
Verdict every_element_survives(const Target& target, const Case& c, std::string_view kind) {
  const Reply reply = ask(target, c, usual_path(target, c));
  if (auto verdict = no_answer(reply)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const QParams q = reply.qparams[b];
    if (!usable(c, q)) continue;
    const bool may_lose = range_too_large(c.scheme, c.options, c.format, block_of(c, blocks[b]), q.tensor_scale);
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      if (!is_finite(c.format, c.x[at])) continue;
      const RoundTrip judged = judge_round_trip(c.options, c.format, q, c.x[at], reply.codes[at]);
      if (judged.nearest && (judged.within_half_step || may_lose)) continue;
      return fail(judged.within_half_step || may_lose ? "not_nearest" : std::string(kind),
                  fmt::format("x = {} within half a step of its reconstruction", assay::show(c.format, c.x[at])),
                  fmt::format("{} under {}: {:.6g} steps away", show_code(c.options, reply.codes[at]),
                              show(c.options, q), error_in_steps(c.options, c.format, q, c.x[at], reply.codes[at])),
                  at);
    }
  }
  return pass();
}

}  // namespace

Verdict constant_block(const Target& target, const Case& c, const Oracle&) {
  const auto first = std::find_if(c.x.begin(), c.x.end(), [&](Bits x) { return is_finite(c.format, x); });
  if (first == c.x.end()) return not_applicable();
  return every_element_survives(target, with_block(c, std::vector<Bits>(c.x.size(), *first)), "constant_lost");
}

Verdict range_includes_zero(const Target& target, const Case& c, const Oracle&) {
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
  const Reply reply = ask(target, c);
  if (auto verdict = no_answer(reply)) return *verdict;
  const std::vector<Block> blocks = cut(c.shape, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      const std::size_t at = blocks[b].at(i);
      if (!is_finite(c.format, c.x[at])) continue;
      if (judge_round_trip(c.options, c.format, c.given[b], c.x[at], reply.codes[at]).nearest) continue;
      return fail("not_nearest", fmt::format("the code nearest to x = {}", assay::show(c.format, c.x[at])),
                  fmt::format("{} under {}", show_code(c.options, reply.codes[at]), show(c.options, c.given[b])), at);
    }
  }
  return pass();
}

namespace {

// The first finite element of `c` with this code.
std::optional<std::size_t> reached(const Case& c, const std::vector<std::int32_t>& codes, int code) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == code && is_finite(c.format, c.x[i])) return i;
  }
  return std::nullopt;
}

}  // namespace

Verdict full_range(const Target& target, const Case& c, const Oracle& oracle) {
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
                  fmt::format("{} for x = {}", show_code(c.options, end), assay::show(c.format, alone.x[*at])),
                  show_code(c.options, reply.codes[*at]), block.at(*at));
    }
  }
  return judged ? pass() : not_applicable();
}

Verdict requantize_stable(const Target& target, const Case& c, const Oracle& oracle) {
  if (c.format != c.options.output_format) return not_applicable();
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
                fmt::format("{} again, from its own value {}", show_code(c.options, first.codes[i]),
                            assay::show(c.format, again.x[i])),
                show_code(c.options, reply.codes[i]), i);
  }
  return pass();
}

}  // namespace assay
