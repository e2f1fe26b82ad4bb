// Nothing but the input counts: not its place, its neighbours, the instruction set or the threads.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"
#include "properties/float_environment.h"

namespace assay {
namespace {

// Codes written over their own input: right, or refused. Not through ask(), whose buffers lie apart.
std::optional<Verdict> quantize_in_place(const Target& target, const Case& whole, const Reply& expected) {
  const Request request{whole.scheme, whole.options, whole.format, whole.shape, whole.given.front().tensor_scale};
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
    return fail("in_place", fmt::format("{}, or a refusal", show_code(whole.options, expected.codes[i])),
                fmt::format("{} when the codes take the place of x", show_code(whole.options, code)), i);
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
        return fail("length", fmt::format("{} as in {} elements", show_code(c.options, expected.codes[i]), n),
                    fmt::format("{} in {} elements", show_code(c.options, got.codes[i]), length), i);
      }
    }
  }
  const Reply reversed = ask(target, quantize_case(c, q, {c.x.rbegin(), c.x.rend()}));
  if (reversed.status != Status::ok) return fail("order_status", "an answer", "none in reverse order");
  for (std::size_t i = 0; i < n; ++i) {
    if (reversed.codes[n - 1 - i] != expected.codes[i]) {
      return fail("order", show_code(c.options, expected.codes[i]),
                  fmt::format("{} in reverse order", show_code(c.options, reversed.codes[n - 1 - i])), i);
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
      return fail("block_codes", fmt::format("{} as alone", show_code(c.options, alone.codes[i])),
                  fmt::format("{} in block {}", show_code(c.options, whole.codes[blocks[b].at(i)]), b),
                  blocks[b].at(i));
    }
  }
  return pass();
}

// The same call on several threads.
std::optional<Verdict> on_threads(const Target& target, const Case& c) {
  if (!target.other_thread_counts) return std::nullopt;
  for (const Path path : {Path::separate, Path::fused}) {
    const Reply mine = ask(target, c, path);
    if (mine.status != Status::ok) continue;
    for (const Target& other : target.other_thread_counts()) {
      auto verdict = difference(c, mine, ask(other, c, path), "threads");
      if (!verdict) continue;
      verdict->got += fmt::format(" with {}", other.name);
      return verdict;
    }
  }
  return std::nullopt;
}

}  // namespace

Verdict position_independent(const Target& target, const Case& c, const Oracle&) {
  if (auto verdict = on_threads(target, c)) return *verdict;
  if (c.op == Operation::dequantize || c.op == Operation::requantize) {
    const Reply expected = ask(target, c);
    if (auto verdict = no_answer(expected)) return *verdict;
    PlainMemory memory(std::byte{0x5a}, 3);
    return difference(c, expected, ask(target, c, Path::separate, memory), "shifted").value_or(pass());
  }
  // Where the scale of the tensor is part of every block's answer, a block alone is another question.
  if (chooses_qparams(c.op) && !scheme_named(c.scheme)->two_levels) {
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

}  // namespace assay
