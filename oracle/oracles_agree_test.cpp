// The three definitions of the legal answer, held equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "oracle/oracle.h"
#include "properties/draw.h"

namespace assay {
namespace {

constexpr std::array kNarrow = {Format::f32, Format::f16, Format::bf16};

Format any_format(Entropy& e) { return kNarrow[e.below(kNarrow.size())]; }

int between(Entropy& e, int least, int most) {
  return least + static_cast<int>(e.below(static_cast<std::uint64_t>(most - least) + 1));
}

Bits any_finite(Entropy& e, Format f) { return from_ordinal(f, between(e, 0, static_cast<int>(largest_finite(f)))); }

Bits with_sign(Entropy& e, Format f, Bits bits) { return e.one_in(2) ? bits | sign_bit(f) : bits; }

// 2^exponent times a factor in [1, 2) of `significant` bits: few of them make ties frequent.
double near_power(Entropy& e, int exponent, int significant) {
  const auto steps = std::uint64_t{1} << (significant - 1);
  return std::ldexp(1 + static_cast<double>(e.below(steps)) / static_cast<double>(steps), exponent);
}

// Scales of all kinds, positive and finite.
Bits any_scale(Entropy& e, Format s) {
  const FormatInfo& f = info(s);
  switch (e.below(6)) {
    case 0:
      return 1 + e.below(64);
    case 1:
      return 1 + e.below(Bits{1} << (f.precision - 1));
    case 2:
      return largest_finite(s) - e.below(64);
    case 3:
      return round_double(s, near_power(e, between(e, -14, 8), between(e, 1, f.precision)));
    default:
      return 1 + e.below(largest_finite(s));
  }
}

Options any_options(Entropy& e) {
  Options o;
  o.bits = e.one_in(2) ? 8 : between(e, 2, 8);
  o.is_signed = e.one_in(2);
  o.narrow_range = o.is_signed && e.one_in(2);
  o.scale_format = any_format(e);
  o.output_format = any_format(e);
  return o;
}

QParams any_qparams(Entropy& e, const Options& o) {
  const CodeRange codes = code_range(o);
  return {any_scale(e, o.scale_format), between(e, codes.qmin, codes.qmax)};
}

std::string told(const Options& o, Format format, QParams q) {
  std::string text =
      fmt::format(" {} by {} zero point {}", info(format).name, show(o.scale_format, q.scale), q.zero_point);
  for (const auto& [key, value] : option_list(o)) text += fmt::format(" {}={}", key, value);
  return text;
}

// ---------------------------------------------------------------------------------------------------- whole cases

TEST(OraclesAgree, OnDrawnCasesOfAllFormats) {
  DrawSpace space;
  space.formats.assign(kNarrow.begin(), kNarrow.end());
  SeededEntropy entropy(1);
  for (int i = 0; i < 3000; ++i) {
    Case c = draw_case(entropy, space).c;
    c.options.output_format = any_format(entropy);
    const Answer expected = legal_answer(exact_oracle(), c);
    for (const Oracle* oracle : oracles()) {
      const Answer got = legal_answer(*oracle, c);
      ASSERT_EQ(got.qparams, expected.qparams) << oracle->name << " case " << i;
      ASSERT_EQ(got.codes, expected.codes) << oracle->name << " case " << i;
      ASSERT_EQ(got.values, expected.values) << oracle->name << " case " << i;
      ASSERT_EQ(got.counts, expected.counts) << oracle->name << " case " << i;
    }
  }
}

// f64 lies outside the twin's integers: it must hand the question on, whichever of the three formats is f64.
TEST(OraclesAgree, OnDrawnCasesWithF64) {
  DrawSpace space;
  space.formats = {Format::f64, Format::f32};
  space.scale_formats = {Format::f64, Format::f32};
  SeededEntropy entropy(2);
  for (int i = 0; i < 500; ++i) {
    Case c = draw_case(entropy, space).c;
    c.options.output_format = entropy.one_in(2) ? Format::f64 : Format::f32;
    const Answer expected = legal_answer(exact_oracle(), c);
    for (const Oracle* oracle : oracles())
      ASSERT_EQ(legal_answer(*oracle, c), expected) << oracle->name << " case " << i;
  }
}

// ---------------------------------------------------------------------------------------------------- choose_qparams

void fill_all(Entropy& e, Format f, std::vector<Bits>& x, Bits (*draw)(Entropy&, Format)) {
  for (Bits& bits : x) bits = with_sign(e, f, draw(e, f));
}

Bits zero(Entropy&, Format) { return 0; }
Bits subnormal(Entropy& e, Format f) { return e.below(Bits{1} << (info(f).precision - 1)); }
Bits huge(Entropy& e, Format f) { return largest_finite(f) - e.below(16); }
Bits any_pattern(Entropy& e, Format f) { return e.next(info(f).width / 8); }
Bits ordinary(Entropy& e, Format f) { return round_double(f, near_power(e, between(e, -12, 4), 24)); }
// Magnitudes whose step falls around and below the smallest subnormals of f16.
Bits half_underflow(Entropy& e, Format f) { return round_double(f, near_power(e, between(e, -28, -12), 24)); }
// The same for the formats with 8 exponent bits; zeros where f is f16.
Bits float_underflow(Entropy& e, Format f) { return round_double(f, near_power(e, between(e, -149, -120), 24)); }

void fill_single_sign(Entropy& e, Format f, std::vector<Bits>& x) {
  const Bits sign = with_sign(e, f, 0);
  for (Bits& bits : x) bits = ordinary(e, f) | sign;
}

void fill_constant(Entropy& e, Format f, std::vector<Bits>& x) {
  std::fill(x.begin(), x.end(), with_sign(e, f, any_finite(e, f)));
}

// One end far below the other, so that only a sticky bit remembers it.
void fill_lopsided(Entropy& e, Format f, std::vector<Bits>& x) {
  const Bits sign = with_sign(e, f, 0);
  if (!x.empty()) x.front() = any_finite(e, f) | sign;
  if (x.size() > 1) x.back() = (1 + e.below(64)) | (sign ^ sign_bit(f));
}

// The exact step on, or a hair beside, the middle of two neighbouring scales: hi - lo = middle * levels, split between
// the ends at a whole number of steps; products that the input format cannot hold land near enough.
void fill_scale_tie(Entropy& e, const Options& o, Format f, bool symmetric, std::vector<Bits>& x) {
  const CodeRange codes = code_range(o);
  const Bits scale = any_scale(e, o.scale_format);
  const Bits above = next_up(o.scale_format, scale);
  if (x.size() < 2 || !is_finite(o.scale_format, above)) return;
  const double middle = (to_double(o.scale_format, scale) + to_double(o.scale_format, above)) / 2;
  const int levels = codes.qmax - codes.qmin;
  const double steps = o.code_format ? to_double(*o.code_format, static_cast<Bits>(codes.qmax))
                       : symmetric   ? codes.qmax
                                     : between(e, 0, levels);
  x.front() = round_double(f, middle * steps);
  if (o.code_format)
    x.back() = 0;
  else
    x.back() = symmetric ? round_double(f, middle * codes.qmin) : round_double(f, -middle * (levels - steps));
  if (e.one_in(2)) x.back() = 0;
  Bits& moved = e.one_in(2) ? x.front() : x.back();
  switch (e.below(3)) {
    case 0:
      moved = next_up(f, moved);
      break;
    case 1:
      moved = next_down(f, moved);
      break;
    default:
      break;
  }
}

constexpr std::uint64_t kBlockKinds = 12;

std::vector<Bits> any_block(Entropy& e, const Options& o, Format f, bool symmetric) {
  std::vector<Bits> x(e.below(10), 0);
  switch (e.below(kBlockKinds)) {
    case 0:
      fill_all(e, f, x, zero);
      break;
    case 1:
      fill_all(e, f, x, subnormal);
      break;
    case 2:
      fill_all(e, f, x, huge);
      break;
    case 3:
      fill_all(e, f, x, any_pattern);
      break;
    case 4:
      fill_all(e, f, x, ordinary);
      break;
    case 5:
      fill_all(e, f, x, half_underflow);
      break;
    case 6:
      fill_all(e, f, x, float_underflow);
      break;
    case 7:
      fill_single_sign(e, f, x);
      break;
    case 8:
      fill_constant(e, f, x);
      break;
    case 9:
      fill_lopsided(e, f, x);
      break;
    default:
      fill_scale_tie(e, o, f, symmetric, x);
      break;
  }
  const std::array specials = {quiet_nan(f), infinity(f), infinity(f) | sign_bit(f), sign_bit(f)};
  if (!x.empty() && e.one_in(6)) x[e.below(x.size())] = specials[e.below(specials.size())];
  return x;
}

void expect_same_qparams(Entropy& e, std::string_view scheme, const Options& o, Format f) {
  for (int i = 0; i < 300; ++i) {
    const std::vector<Bits> x = any_block(e, o, f, scheme_named(scheme)->symmetric);
    // Of its own values, or some other tensor's.
    const Bits own = exact_oracle().choose_tensor_scale(scheme, f, x);
    const Bits tensor_scale = own != 0 && e.one_in(2) ? any_scale(e, Format::f32) : own;
    const QParams expected = exact_oracle().choose_qparams(scheme, o, f, x, tensor_scale);
    for (const Oracle* oracle : oracles()) {
      ASSERT_EQ(oracle->choose_tensor_scale(scheme, f, x), own) << oracle->name;
      ASSERT_EQ(oracle->choose_qparams(scheme, o, f, x, tensor_scale), expected)
          << oracle->name << " " << scheme << " block " << i << " of " << x.size()
          << ", exact:" << told(o, f, expected);
    }
  }
}

// Every combination of scheme, bits, signedness, narrow range, scale format and input format.
TEST(OraclesAgree, OnQparamsInEveryCombinationOfOptions) {
  SeededEntropy entropy(3);
  for (const SchemeInfo& scheme : schemes()) {
    if (scheme.codes != CodeKind::integer) continue;
    for (int mask = 0; mask < 4 * 7; ++mask) {
      Options o;
      o.bits = 2 + mask / 4;
      o.is_signed = mask % 2 == 0;
      o.narrow_range = mask / 2 % 2 != 0;
      if (!check_scheme_options(scheme, o).empty()) continue;
      for (const Format s : kNarrow) {
        o.scale_format = s;
        for (const Format f : kNarrow) ASSERT_NO_FATAL_FAILURE(expect_same_qparams(entropy, scheme.name, o, f));
      }
    }
  }
}

// The same for float codes: every code format, scale format, way to round a power of two, and input format.
TEST(OraclesAgree, OnQparamsOfFloatCodes) {
  SeededEntropy entropy(11);
  for (const SchemeInfo& scheme : schemes()) {
    if (scheme.codes != CodeKind::floating) continue;
    for (const Format code : {Format::e4m3fn, Format::e5m2, Format::e2m1}) {
      for (const ScaleRounding rounding :
           {ScaleRounding::floor, ScaleRounding::ceil, ScaleRounding::even, ScaleRounding::rceil}) {
        for (const Format s : {Format::f32, Format::f16, Format::bf16, Format::e8m0, Format::e4m3fn}) {
          Options o = scheme.defaults;
          o.code_format = code;
          o.scale_format = s;
          o.scale_rounding = rounding;
          if (!check_scheme_options(scheme, o).empty()) continue;
          for (const Format f : kNarrow) ASSERT_NO_FATAL_FAILURE(expect_same_qparams(entropy, scheme.name, o, f));
        }
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------- quantize

// A scale that is not a power of two and that spreads f16 inputs over the codes: a scale drawn from all of f32 would
// nearly always send every f16 to zero or to an end.
QParams scale_for_halves(Entropy& e, const Options& o) {
  const CodeRange codes = code_range(o);
  const int zero_point = between(e, codes.qmin, codes.qmax);
  while (true) {
    const Bits scale = o.scale_format == Format::f16
                           ? 1 + e.below(largest_finite(Format::f16))
                           : round_double(Format::f32, near_power(e, between(e, -26, 15), 24));
    int exponent = 0;
    if (std::frexp(to_double(o.scale_format, scale), &exponent) != 0.5) return {scale, zero_point};
  }
}

// Every f16 input, for 4 x 50 scales that are not powers of two: the definition against its adversary, input by input.
class EveryHalf : public ::testing::TestWithParam<int> {};

TEST_P(EveryHalf, HasOneCodeForFiftyScales) {
  SeededEntropy entropy(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 50; ++i) {
    Options o = any_options(entropy);
    o.scale_format = i % 2 == 0 ? Format::f16 : Format::f32;
    const QParams q = scale_for_halves(entropy, o);
    for (Bits x = 0; x < 65536; ++x) {
      const int expected = exact_oracle().quantize(o, Format::f16, q, x);
      ASSERT_EQ(search_oracle().quantize(o, Format::f16, q, x), expected)
          << show(Format::f16, x) << told(o, Format::f16, q);
      ASSERT_EQ(fast_oracle().quantize(o, Format::f16, q, x), expected)
          << show(Format::f16, x) << told(o, Format::f16, q);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EveryHalf, ::testing::Range(1, 5));

// Every f16 and every bf16 input, for every code format under scales of one level and of two.
class EveryNarrowInput : public ::testing::TestWithParam<int> {};

TEST_P(EveryNarrowInput, HasOneFloatCode) {
  SeededEntropy entropy(static_cast<std::uint64_t>(GetParam()));
  constexpr std::array kCodes = {Format::e4m3fn, Format::e5m2, Format::e2m1};
  constexpr std::array kScales = {Format::f32, Format::f16, Format::bf16, Format::e8m0, Format::e4m3fn};
  for (int i = 0; i < 15; ++i) {
    Options o;
    o.code_format = kCodes[static_cast<std::size_t>(i) % 3];
    o.scale_format = kScales[static_cast<std::size_t>(i) / 3];
    const Format f = entropy.one_in(2) ? Format::f16 : Format::bf16;
    const bool small = o.scale_format != Format::e4m3fn && entropy.one_in(2);
    const Bits scale = small ? any_scale(entropy, o.scale_format)
                             : round_double(o.scale_format, near_power(entropy, between(entropy, -6, 8), 24));
    const Bits tensor_scale = o.scale_format == Format::e4m3fn
                                  ? round_double(Format::f32, near_power(entropy, between(entropy, -12, 4), 24))
                                  : 0;
    const QParams q{scale, 0, tensor_scale};
    for (Bits x = 0; x < 65536; ++x) {
      const int expected = exact_oracle().quantize(o, f, q, x);
      ASSERT_EQ(search_oracle().quantize(o, f, q, x), expected) << show(f, x) << told(o, f, q);
      ASSERT_EQ(fast_oracle().quantize(o, f, q, x), expected) << show(f, x) << told(o, f, q);
      ASSERT_EQ(fast_oracle().saturated(o, f, q, x), exact_oracle().saturated(o, f, q, x))
          << show(f, x) << told(o, f, q);
    }
    for (int code = 0; code < 1 << code_width(o); ++code) {
      if (!is_code(o, code)) continue;
      for (const Format out : kNarrow) {
        o.output_format = out;
        const Bits expected = exact_oracle().dequantize(o, q, code);
        for (const Oracle* oracle : oracles())
          ASSERT_EQ(oracle->dequantize(o, q, code), expected) << code << told(o, f, q);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EveryNarrowInput, ::testing::Range(1, 3));

// The three inputs around (k + 1/2) * scale, each asked of the exact oracle itself: 5 x 2,000,000 of them. The scale
// and k are drawn anew for every three, because a wrong quotient shows at few mantissas.
class Straddle : public ::testing::TestWithParam<int> {};

TEST_P(Straddle, TwoMillionInputsAtBreakpoints) {
  SeededEntropy entropy(static_cast<std::uint64_t>(GetParam()));
  int asked = 0;
  while (asked < 2'000'000) {
    const Options o = any_options(entropy);
    const QParams q = any_qparams(entropy, o);
    const CodeRange codes = code_range(o);
    const Format format = any_format(entropy);
    // Half a step past both ends as well: there the clamp takes over.
    const int k = between(entropy, codes.qmin - q.zero_point - 1, codes.qmax - q.zero_point);
    const Bits middle = round_double(format, (k + 0.5) * to_double(o.scale_format, q.scale));
    if (!is_finite(format, middle)) continue;
    for (const Bits x : {next_down(format, middle), middle, next_up(format, middle)}) {
      ASSERT_EQ(fast_oracle().quantize(o, format, q, x), exact_oracle().quantize(o, format, q, x))
          << show(format, x) << told(o, format, q);
      ++asked;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, Straddle, ::testing::Range(1, 6));

// breakpoints() is a second road to the same thresholds; what it lists must be where the codes change, and nowhere
// else.
TEST(OraclesAgree, OnEveryListedBreakpoint) {
  SeededEntropy entropy(7);
  for (int i = 0; i < 2000; ++i) {
    const Options o = any_options(entropy);
    const QParams q = any_qparams(entropy, o);
    const Format format = any_format(entropy);
    int before = fast_oracle().quantize(o, format, q, largest_finite(format) | sign_bit(format));
    for (const Breakpoint& b : breakpoints(o, format, q)) {
      const bool first_input = b.x == (largest_finite(format) | sign_bit(format));
      for (const Oracle* oracle : oracles()) {
        if (!first_input) {
          ASSERT_EQ(oracle->quantize(o, format, q, next_down(format, b.x)), before)
              << oracle->name << " below " << show(format, b.x) << told(o, format, q);
        }
        ASSERT_EQ(oracle->quantize(o, format, q, b.x), b.code)
            << oracle->name << " " << show(format, b.x) << told(o, format, q);
      }
      before = b.code;
    }
    ASSERT_EQ(exact_oracle().quantize(o, format, q, largest_finite(format)), before) << told(o, format, q);
  }
}

// The same of float codes, whose two zeros share a place on the number line.
TEST(OraclesAgree, OnEveryListedBreakpointOfFloatCodes) {
  SeededEntropy entropy(8);
  for (int i = 0; i < 600; ++i) {
    Options o;
    o.code_format = std::array{Format::e4m3fn, Format::e5m2, Format::e2m1}[entropy.below(3)];
    o.scale_format = any_format(entropy);
    const QParams q{any_scale(entropy, o.scale_format), 0, 0};
    const Format format = any_format(entropy);
    const auto place = [&](const Oracle* oracle, Bits x) { return code_ordinal(o, oracle->quantize(o, format, q, x)); };
    std::int64_t before = place(&fast_oracle(), largest_finite(format) | sign_bit(format));
    for (const Breakpoint& b : breakpoints(o, format, q)) {
      for (const Oracle* oracle : oracles()) {
        if (b.x != (largest_finite(format) | sign_bit(format))) {
          ASSERT_EQ(place(oracle, next_down(format, b.x)), before) << show(format, b.x) << told(o, format, q);
        }
        ASSERT_EQ(place(oracle, b.x), code_ordinal(o, b.code)) << show(format, b.x) << told(o, format, q);
      }
      before = code_ordinal(o, b.code);
    }
    ASSERT_EQ(place(&exact_oracle(), largest_finite(format)), before) << told(o, format, q);
  }
}

// ---------------------------------------------------------------------------------------------------- requantize

TEST(OraclesAgree, OnAccumulators) {
  DrawSpace space;
  space.operations = {Operation::requantize};
  SeededEntropy entropy(9);
  std::map<std::string, int> asked;
  for (int i = 0; i < 4000; ++i) {
    const Case c = draw_case(entropy, space).c;
    ASSERT_EQ(check_scheme_case(*scheme_named(c.scheme), c), "");
    const Answer expected = legal_answer(exact_oracle(), c);
    for (const Oracle* oracle : oracles()) {
      const Answer got = legal_answer(*oracle, c);
      for (std::size_t j = 0; j < expected.codes.size(); ++j) {
        ASSERT_EQ(got.codes[j], expected.codes[j]) << oracle->name << " " << c.scheme << " " << c.accumulators[j];
      }
    }
    asked[c.scheme] += static_cast<int>(c.accumulators.size());
  }
  EXPECT_EQ(asked.size(), 4u);
}

// ---------------------------------------------------------------------------------------------------- dequantize

// Half the scales are such that code * scale lies around the ends of the output format's range, or has few bits and so
// ties often; the rest are of all kinds.
Bits scale_for_output(Entropy& e, const Options& o) {
  const FormatInfo& out = info(o.output_format);
  const int significant = between(e, 1, out.precision + 1);
  double scale = 0;
  switch (e.below(4)) {
    case 0:
      scale = near_power(e, out.max_exponent - between(e, 0, 9), significant);
      break;
    case 1:
      scale = near_power(e, out.min_exponent - out.precision - between(e, -9, 9), significant);
      break;
    default:
      return any_scale(e, o.scale_format);
  }
  const Bits bits = round_double(o.scale_format, scale);
  return scale_is_positive_finite(o, bits) ? bits : any_scale(e, o.scale_format);
}

void expect_same_value(const Options& o, QParams q, int code) {
  const Bits expected = exact_oracle().dequantize(o, q, code);
  for (const Oracle* oracle : oracles()) {
    ASSERT_EQ(oracle->dequantize(o, q, code), expected) << oracle->name << " code " << code << told(o, Format::f32, q);
  }
}

TEST(OraclesAgree, OnTheValueOfEveryCode) {
  SeededEntropy entropy(4);
  for (int i = 0; i < 1800; ++i) {
    Options o = any_options(entropy);
    o.scale_format = kNarrow[static_cast<std::size_t>(i) % 3];
    o.output_format = kNarrow[static_cast<std::size_t>(i) / 3 % 3];
    const CodeRange codes = code_range(o);
    const QParams q{scale_for_output(entropy, o), between(entropy, codes.qmin, codes.qmax)};
    for (int code = codes.qmin; code <= codes.qmax; ++code) ASSERT_NO_FATAL_FAILURE(expect_same_value(o, q, code));
  }
}

TEST(OraclesAgree, OnTheValueOfCodesOutOfRange) {
  SeededEntropy entropy(5);
  for (int i = 0; i < 60'000; ++i) {
    const Options o = any_options(entropy);
    const QParams q{scale_for_output(entropy, o), 0};
    ASSERT_NO_FATAL_FAILURE(expect_same_value(o, q, between(entropy, -32768, 32767)));
  }
}

// ---------------------------------------------------------------------------------------------------- saturated

// The three inputs around both limits, (end + 1/2) * scale. The limit has 10 + 24 bits at most and an exponent far
// inside double's, so that the comparison here is exact, and a fourth opinion.
TEST(OraclesAgree, OnSaturationAtBothLimits) {
  SeededEntropy entropy(6);
  for (int i = 0; i < 30'000; ++i) {
    const Options o = any_options(entropy);
    const QParams q = any_qparams(entropy, o);
    const CodeRange codes = code_range(o);
    const Format format = any_format(entropy);
    const double scale = to_double(o.scale_format, q.scale);
    const double low = (codes.qmin - q.zero_point - 0.5) * scale, high = (codes.qmax - q.zero_point + 0.5) * scale;
    const Bits limit = round_double(format, entropy.one_in(2) ? low : high);
    for (const Bits x : {next_down(format, limit), limit, next_up(format, limit)}) {
      const double value = to_double(format, x);
      const bool expected = is_finite(format, x) && (value < low || value > high);
      for (const Oracle* oracle : oracles()) {
        ASSERT_EQ(oracle->saturated(o, format, q, x), expected)
            << oracle->name << " " << show(format, x) << told(o, format, q);
      }
    }
  }
}

TEST(OraclesAgree, NothingThatIsNotFiniteIsSaturated) {
  const QParams q{smallest_positive(Format::f32), 0};
  for (const Oracle* oracle : oracles()) {
    for (const Format f : kNarrow) {
      for (const Bits x : {infinity(f), infinity(f) | sign_bit(f), quiet_nan(f)}) {
        EXPECT_FALSE(oracle->saturated(Options{}, f, q, x)) << oracle->name << " " << show(f, x);
      }
    }
  }
}

}  // namespace
}  // namespace assay
