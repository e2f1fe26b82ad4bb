// What mirrored and scaled input must give.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"

namespace assay {
namespace {

Case negated(const Case& c) {
  Case other = c;
  for (Bits& x : other.x) x ^= sign_bit(c.format);
  return other;
}

// The code of -x, given that of x.
std::int32_t mirrored(const Options& options, std::int32_t code) {
  return options.code_format ? code ^ static_cast<std::int32_t>(sign_bit(*options.code_format)) : -code;
}

}  // namespace

Verdict sign_symmetric(const Target& target, const Case& c, const Oracle&) {
  if (!scheme_named(c.scheme)->symmetric || (!c.options.code_format && !c.options.narrow_range))
    return not_applicable();
  // Whoever hands a zero point to a symmetric scheme moves its centre.
  if (std::any_of(c.given.begin(), c.given.end(), [](const QParams& q) { return q.zero_point != 0; }))
    return not_applicable();
  const Path path = usual_path(target, c);
  const Reply plain = ask(target, c, path), other = ask(target, negated(c), path);
  if (auto verdict = no_answer(plain)) return *verdict;
  if (auto verdict = no_answer(other)) return *verdict;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    // NaN has the code of +0, whatever its sign bit.
    const std::int32_t expected = is_nan(c.format, c.x[i]) ? plain.codes[i] : mirrored(c.options, plain.codes[i]);
    if (other.codes[i] == expected) continue;
    return fail("not_odd",
                fmt::format("{}, since {} has {}", show_code(c.options, expected), assay::show(c.format, c.x[i]),
                            show_code(c.options, plain.codes[i])),
                fmt::format("{} for its negative", show_code(c.options, other.codes[i])), i);
  }
  return pass();
}

namespace {

// The pattern of 2^k times a normal number; nothing if that is not normal.
std::optional<Bits> scaled(Format format, Bits bits, int k) {
  if (format == Format::e8m0) {
    const std::int64_t power = static_cast<std::int64_t>(bits) + k;
    if (power < 0 || power > static_cast<std::int64_t>(largest_finite(format))) return std::nullopt;
    return static_cast<Bits>(power);
  }
  if (is_zero(format, bits) || !is_finite(format, bits)) return bits;
  const int fraction_bits = info(format).precision - 1;
  const std::int64_t exponents = static_cast<std::int64_t>(infinity(format) >> fraction_bits);
  const std::int64_t exponent = static_cast<std::int64_t>((bits & ~sign_bit(format)) >> fraction_bits);
  if (exponent == 0 || exponent + k <= 0 || exponent + k >= exponents) return std::nullopt;
  return bits + (static_cast<Bits>(std::int64_t{k}) << fraction_bits);
}

// Of two levels, it is the scale of the tensor that follows.
std::optional<QParams> scaled(const Options& options, QParams q, int k) {
  Bits& moves = q.tensor_scale != 0 ? q.tensor_scale : q.scale;
  const auto bits = scaled(q.tensor_scale != 0 ? Format::f32 : options.scale_format, moves, k);
  if (!bits) return std::nullopt;
  moves = *bits;
  return q;
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
    const auto larger = scaled(c.options, q, k);
    if (!larger) return std::nullopt;
    q = *larger;
  }
  return other;
}

// Whether the scheme itself keeps qparams and codes: a block of zeros has the scale 1 at any size, and a scale at the
// limits of its format cannot follow.
bool scheme_follows(const Case& c, const Case& other, int k, const Oracle& oracle) {
  const Answer legal = legal_answer(oracle, c), legal_other = legal_answer(oracle, other);
  for (std::size_t b = 0; b < legal.qparams.size(); ++b) {
    const auto expected = scaled(c.options, legal.qparams[b], k);
    if (!expected || expected->scale != legal_other.qparams[b].scale ||
        expected->tensor_scale != legal_other.qparams[b].tensor_scale)
      return false;
  }
  return legal.codes == legal_other.codes;
}

}  // namespace

Verdict scale_equivariant(const Target& target, const Case& c, const Oracle& oracle) {
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
      const auto follows = scaled(c.options, q, k);
      if (!follows || !usable(c, q)) return not_applicable();
      q = *follows;
    }
    auto verdict = difference(c, expected, larger, "scaled");
    if (verdict) verdict->legal += fmt::format(", since everything is 2^{} times as large", k);
    return verdict.value_or(pass());
  }
  return not_applicable();
}

}  // namespace assay
