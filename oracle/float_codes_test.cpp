// assay.float, assay.mx and assay.nvfp4: what they promise, on numbers that were worked out by hand.
#include <gtest/gtest.h>

#include <random>

#include "oracle/oracle.h"

namespace assay {
namespace {

constexpr Format kF32 = Format::f32;

Bits f32(double value) { return round_double(kF32, value); }

std::vector<Bits> floats(std::initializer_list<double> values) {
  std::vector<Bits> x;
  for (const double v : values) x.push_back(f32(v));
  return x;
}

Options options_of(std::string_view scheme) { return scheme_named(scheme)->defaults; }

// The answer to a round trip of one block, the same from every oracle.
Answer answer(std::string_view scheme, Options o, const std::vector<Bits>& x, Format format = kF32) {
  o.granularity = Granularity::per_tensor;
  const Case c = make_case(Operation::round_trip, std::string(scheme), o, format, x);
  EXPECT_EQ(check_case(c), "");
  EXPECT_EQ(check_scheme_case(*scheme_named(scheme), c), "");
  const Answer exact = legal_answer(exact_oracle(), c);
  for (const Oracle* oracle : oracles()) EXPECT_EQ(legal_answer(*oracle, c), exact) << oracle->name;
  return exact;
}

double scale(const Options& o, const Answer& a) { return to_double(o.scale_format, a.qparams[0].scale); }

TEST(FloatCodes, TheGreatestMagnitudeTakesTheLargestNumber) {
  for (const auto& [format, top, pattern] :
       {std::tuple{Format::e4m3fn, 448.0, 0x7e}, std::tuple{Format::e5m2, 57344.0, 0x7b},
        std::tuple{Format::e2m1, 6.0, 0x7}}) {
    Options o = options_of("assay.float");
    o.code_format = format;
    const Answer a = answer("assay.float", o, floats({top * 0.375, -top * 0.375 / 2, 0}));
    EXPECT_EQ(scale(o, a), 0.375);
    EXPECT_EQ(a.codes[0], pattern);
    EXPECT_EQ(a.values[0], f32(top * 0.375));
    EXPECT_EQ(a.codes[2], 0);
  }
}

TEST(FloatCodes, TiesGoToTheEvenPatternAndSignsOfZeroStay) {
  Options o = options_of("assay.float");
  o.code_format = Format::e2m1;
  // Scale 1: the middles between 0, .5, 1, 1.5, 2, 3, 4 and 6.
  const Answer a = answer("assay.float", o, floats({6, .25, .75, 1.25, 1.75, 2.5, 3.5, 5, -.25, -0.0, -5}));
  EXPECT_EQ(scale(o, a), 1);
  EXPECT_EQ(a.codes, (std::vector<std::int32_t>{7, 0, 2, 2, 4, 4, 6, 6, 8, 8, 14}));
  EXPECT_EQ(a.values[8], f32(-0.0));
}

TEST(FloatCodes, NoInputIsAnError) {
  for (const std::string_view scheme : {"assay.float", "assay.mx", "assay.nvfp4"}) {
    const Options o = options_of(scheme);
    const Answer zeros = answer(scheme, o, floats({0, -0.0, 0}));
    EXPECT_EQ(scale(o, zeros), 1) << scheme;
    EXPECT_EQ(zeros.codes[0], 0);
    EXPECT_EQ(zeros.values[0], 0u);
    const Answer nothing = answer(scheme, o, {quiet_nan(kF32), infinity(kF32), infinity(kF32) | sign_bit(kF32)});
    EXPECT_EQ(scale(o, nothing), 1) << scheme;
    EXPECT_EQ(nothing.codes[0], 0);
    EXPECT_EQ(nothing.codes[1], code_range(o).qmax);
    EXPECT_EQ(nothing.codes[2], code_range(o).qmin);
    EXPECT_EQ(nothing.counts, (Counts{1, 2, 0}));
    const Answer tiny = answer(scheme, o, {1, 2, 3});  // the smallest subnormals
    EXPECT_TRUE(scale_is_positive_finite(o, tiny.qparams[0].scale)) << scheme;
    const Answer huge = answer(scheme, o, {largest_finite(kF32), largest_finite(kF32) | sign_bit(kF32)});
    for (const Bits value : huge.values) EXPECT_TRUE(is_finite(kF32, value)) << scheme;
  }
}

// In f16 the step of 448 * 1.4 * 2^-24 rounds down to 2^-24, which would leave the block a third out of reach.
TEST(FloatCodes, AScaleThatLosesTheGreatestMagnitudeMovesUp) {
  Options o = options_of("assay.float");
  o.scale_format = Format::f16;
  const Answer a = answer("assay.float", o, floats({448 * 1.4 * 0x1p-24}));
  EXPECT_EQ(a.qparams[0].scale, 2u);
  EXPECT_EQ(a.counts.saturated, 0u);
}

// amax, code format, and the exponents by floor, ceil, even and rceil, worked out from the definitions.
struct Power {
  double amax;
  Format code;
  int floor, ceil, even, rceil;
};
constexpr Power kPowers[] = {
    {1.0, Format::e4m3fn, -8, -8, -8, -8},     {1.75, Format::e4m3fn, -8, -7, -8, -8},
    {1.76, Format::e4m3fn, -8, -7, -8, -7},    {1.9375, Format::e4m3fn, -8, -7, -7, -7},
    {1.93749, Format::e4m3fn, -8, -7, -8, -7}, {6.0, Format::e2m1, 0, 1, 0, 0},
    {6.01, Format::e2m1, 0, 1, 0, 1},          {7.0, Format::e2m1, 0, 1, 1, 1},
    {6.999, Format::e2m1, 0, 1, 0, 1},         {57344.0, Format::e5m2, 0, 1, 0, 0},
    {61440.0, Format::e5m2, 0, 1, 1, 1},       {61439.0, Format::e5m2, 0, 1, 0, 1},
};

TEST(Mx, PowersByAllFourRoundings) {
  for (const Power& p : kPowers) {
    for (const auto& [rounding, exponent] :
         {std::pair{ScaleRounding::floor, p.floor}, std::pair{ScaleRounding::ceil, p.ceil},
          std::pair{ScaleRounding::even, p.even}, std::pair{ScaleRounding::rceil, p.rceil}}) {
      Options o = options_of("assay.mx");
      o.code_format = p.code;
      o.scale_rounding = rounding;
      const Answer a = answer("assay.mx", o, floats({p.amax, 0.01}));
      EXPECT_EQ(scale(o, a), std::ldexp(1.0, exponent)) << p.amax << " " << to_string(rounding);
    }
  }
}

TEST(Mx, ScalesStayWithinE8m0) {
  for (const ScaleRounding rounding :
       {ScaleRounding::floor, ScaleRounding::ceil, ScaleRounding::even, ScaleRounding::rceil}) {
    Options o = options_of("assay.mx");
    o.scale_rounding = rounding;
    EXPECT_EQ(answer("assay.mx", o, {1}).qparams[0].scale, 0u);  // 2^-149 would need 2^-157
    o.code_format = Format::e2m1;
    const bool up = rounding != ScaleRounding::floor;
    EXPECT_EQ(answer("assay.mx", o, {largest_finite(kF32)}).qparams[0].scale, up ? 0xfdu : 0xfcu);
  }
}

// Only floor and even leave anything out of reach, and then the oracle says so.
TEST(Mx, RoundingUpLosesNothing) {
  std::mt19937_64 random(1);
  int lost = 0;
  for (int i = 0; i < 4000; ++i) {
    Options o = options_of("assay.mx");
    o.code_format = std::array{Format::e4m3fn, Format::e5m2, Format::e2m1}[random() % 3];
    o.scale_rounding = static_cast<ScaleRounding>(random() % 4);
    const std::vector<Bits> x = {random() % infinity(kF32), random() % infinity(kF32)};
    const Answer a = answer("assay.mx", o, x);
    const bool declared = range_too_large("assay.mx", o, kF32, x, 0);
    const bool down = o.scale_rounding == ScaleRounding::floor || o.scale_rounding == ScaleRounding::even;
    EXPECT_EQ(a.counts.saturated > 0, declared);
    EXPECT_TRUE(down || !declared) << show(kF32, x[0]) << show(kF32, x[1]);
    lost += declared;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const RoundTrip judged = judge_round_trip(o, kF32, a.qparams[0], x[j], a.codes[j]);
      EXPECT_TRUE(judged.nearest);
      EXPECT_TRUE(judged.within_half_step || declared);
    }
  }
  EXPECT_GT(lost, 100);
}

TEST(Nvfp4, ScalesOfBothLevels) {
  Options o = options_of("assay.nvfp4");
  // 2688 = 6 * 448: tensor scale 1, block scale 448.
  const Answer a = answer("assay.nvfp4", o, floats({2688, -1344, 448}));
  EXPECT_EQ(a.qparams[0].tensor_scale, f32(1));
  EXPECT_EQ(scale(o, a), 448);
  EXPECT_EQ(a.codes, (std::vector<std::int32_t>{7, 13, 2}));
  EXPECT_EQ(a.values[0], f32(2688));
}

// A block that is tiny beside the rest of its tensor: the e4m3 scale underflows, and is the smallest instead of 0.
TEST(Nvfp4, ATinyBlockKeepsAPositiveScale) {
  Case c;
  c.scheme = "assay.nvfp4";
  c.options = options_of(c.scheme);
  c.shape = {32};
  c.x.assign(32, f32(1e-30));
  c.x[0] = f32(2688);
  for (std::size_t i = 17; i < 32; ++i) c.x[i] = 0;
  for (const Oracle* oracle : oracles()) {
    const Answer a = legal_answer(*oracle, c);
    EXPECT_EQ(a.qparams[1].scale, 1u) << oracle->name;
    EXPECT_EQ(a.qparams[1].tensor_scale, a.qparams[0].tensor_scale);
    EXPECT_EQ(a.counts.saturated, 0u);
  }
}

// The same promise as for integers: every finite element is nearest, and within half a gap unless declared.
TEST(Bound, HoldsForFloatAndNvfp4) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 6000; ++i) {
    const std::string_view scheme = i % 2 == 0 ? "assay.float" : "assay.nvfp4";
    Options o = options_of(scheme);
    if (i % 2 == 0) {
      o.code_format = std::array{Format::e4m3fn, Format::e5m2, Format::e2m1}[random() % 3];
      o.scale_format = std::array{Format::f32, Format::f16, Format::bf16}[random() % 3];
    }
    std::vector<Bits> x;
    const Bits around = random() % infinity(kF32);
    for (int j = 0; j < 4; ++j)
      x.push_back(std::min(around + random() % 0x1000000, largest_finite(kF32)) | (random() % 2) << 31);
    const Answer a = answer(scheme, o, x);
    const bool declared = range_too_large(scheme, o, kF32, x, a.qparams[0].tensor_scale);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const RoundTrip judged = judge_round_trip(o, kF32, a.qparams[0], x[j], a.codes[j]);
      ASSERT_TRUE(judged.nearest && (judged.within_half_step || declared)) << scheme << " " << show(kF32, x[j]);
    }
    ASSERT_FALSE(declared && scheme == "assay.nvfp4") << show(kF32, x[0]);
  }
}

TEST(SchemeOptions, FloatSchemesSayWhatTheyNeed) {
  const auto refusal = [](std::string_view scheme, std::string_view key, std::string_view value) {
    Options o = options_of(scheme);
    EXPECT_EQ(set_option(o, key, value), "");
    return check_scheme_options(*scheme_named(scheme), o);
  };
  EXPECT_EQ(refusal("assay.symmetric", "code_format", "e5m2"),
            "assay.symmetric has integer codes: code_format must be int");
  EXPECT_EQ(refusal("assay.float", "code_format", "int"),
            "assay.float has float codes: code_format must be e4m3fn, e5m2 or e2m1");
  EXPECT_EQ(refusal("assay.float", "scale_format", "e8m0"),
            "assay.float stores scales as f32, f16, bf16 or f64, not e8m0");
  EXPECT_EQ(refusal("assay.mx", "scale_format", "f16"), "assay.mx stores scales as e8m0");
  EXPECT_EQ(refusal("assay.nvfp4", "code_format", "e4m3fn"), "assay.nvfp4 has codes of e2m1");
  EXPECT_EQ(refusal("assay.mx", "code_format", "e2m1"), "");
  EXPECT_EQ(refusal("fixed_point.exact", "bits", "4"), "fixed_point.exact has codes of 8 or 16 bits");
  EXPECT_EQ(refusal("assay.asymmetric", "bits", "16"), "assay.asymmetric has codes of 2 to 8 bits");
}

}  // namespace
}  // namespace assay
