// Scales and zero points that can be used.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
namespace {

template <typename Good>
Verdict each_qparams(const Target& target, const Case& c, Good good) {
  return both_paths(target, choosing(c), [&](const Reply& reply, std::string_view) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < reply.qparams.size(); ++b) {
      if (auto verdict = good(reply.qparams[b], b)) return verdict;
    }
    return std::nullopt;
  });
}

std::string_view illness(Format s, Bits scale) {
  if (is_zero(s, scale)) return "scale_zero";
  if (is_nan(s, scale)) return "scale_nan";
  return is_negative(s, scale) ? "scale_negative" : "scale_infinite";
}

}  // namespace

Verdict scale_positive_finite(const Target& target, const Case& c, const Oracle&) {
  return each_qparams(target, c, [&](const QParams& q, std::size_t b) -> std::optional<Verdict> {
    const Format s = c.options.scale_format;
    if (!scale_is_positive_finite(c.options, q.scale))
      return fail(std::string(illness(s, q.scale)), "a scale > 0 and finite", assay::show(s, q.scale), b);
    if (!tensor_scale_is_right_kind(c, q)) {
      return fail(fmt::format("tensor_{}", illness(Format::f32, q.tensor_scale)), "a tensor scale > 0 and finite",
                  assay::show(Format::f32, q.tensor_scale), b);
    }
    return std::nullopt;
  });
}

Verdict zero_point_in_range(const Target& target, const Case& c, const Oracle&) {
  return each_qparams(target, c, [&](const QParams& q, std::size_t b) -> std::optional<Verdict> {
    if (zero_point_is_code(c.options, q.zero_point)) return std::nullopt;
    const CodeRange codes = code_range(c.options);
    const std::string legal = c.options.code_format ? std::string("0: float codes have no zero point")
                                                    : fmt::format("a code, {}..{}", codes.qmin, codes.qmax);
    return fail("zero_point_outside", legal, fmt::format("{}", q.zero_point), b);
  });
}

// ------------------------------------------------------------------------------------------- the declared format

namespace {

// The scale that the scheme gives for a block when it is stored in another format.
Bits scale_in(Format other, const Case& c, std::span<const Bits> block, const Oracle& oracle) {
  Options options = c.options;
  options.scale_format = other;
  return oracle.choose_qparams(c.scheme, options, c.format, block, 0).scale;
}

// In which way a wrong scale is that of another format: its pattern (or half of it), or its number.
std::optional<std::string> foreign(Format s, Bits got, Format other, Bits in_other) {
  const int missing = info(other).width - info(s).width;
  if (missing == 0 && got == in_other) return fmt::format("the pattern of {}", info(other).name);
  if (missing > 0 && (got == in_other >> missing || got == (in_other & ((Bits{1} << info(s).width) - 1))))
    return fmt::format("half of the pattern of {}", info(other).name);
  if (missing < 0 && got == in_other) return fmt::format("the pattern of {}, widened by zeros", info(other).name);
  if (info(other).precision < info(s).precision && to_double(s, got) == to_double(other, in_other))
    return fmt::format("the number that {} holds", info(other).name);
  return std::nullopt;
}

}  // namespace

// A scale that is wrong, and wrong in just this way, names its cause.
Verdict dtype_preserved(const Target& target, const Case& c, const Oracle& oracle) {
  const SchemeInfo& scheme = *scheme_named(c.scheme);
  const Format s = c.options.scale_format;
  if (scheme.two_levels || s == Format::e8m0) return not_applicable();  // there is no other format to mistake it for
  const std::vector<Block> blocks = cut(c.shape, c.options);
  return both_paths(target, choosing(c), [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::vector<Bits> block = block_of(c, blocks[b]);
      const Bits legal = scale_in(s, c, block, oracle), got = reply.qparams[b].scale;
      if (got == legal) continue;
      for (const Format other : {Format::f32, Format::f16, Format::bf16}) {
        if (other == s) continue;
        const auto words = foreign(s, got, other, scale_in(other, c, block, oracle));
        if (!words) continue;
        return fail(fmt::format("{}scale_of_{}", prefix, info(other).name),
                    fmt::format("scale {}, a number of {}", assay::show(s, legal), info(s).name),
                    fmt::format("{}: {}", assay::show(s, got), *words), b);
      }
    }
    return std::nullopt;
  });
}

// Where no guard of the scheme has anything to do, a quantizer with guards is the plain formula.
Verdict fix_changes_nothing_else(const Target& target, const Case& c, const Oracle& oracle) {
  const std::vector<Block> blocks = cut(c.shape, c.options);
  const Answer legal = legal_answer(oracle, c);
  return both_paths(target, c, [&](const Reply& reply, std::string_view prefix) -> std::optional<Verdict> {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const QParams& expected = legal.qparams[b];
      if (reply.qparams[b] == expected) continue;
      if (!well_conditioned(c.scheme, c.options, c.format, block_of(c, blocks[b]), expected.tensor_scale)) continue;
      return fail(fmt::format("{}ordinary_block", prefix),
                  fmt::format("{}: no guard has anything to do here", show(c.options, expected)),
                  show(c.options, reply.qparams[b]), b);
    }
    return std::nullopt;
  });
}

}  // namespace assay
