// The canonical schemes against answers worked out by hand; the working stands beside each. All three oracles must give
// them, so that a shared mistake of the three would still have to agree with a person.
#include "oracle/oracle.h"

#include <gtest/gtest.h>

#include <limits>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "oracle/real.h"
#include "oracle/schemes.h"

namespace assay {
namespace {

constexpr std::string_view kSymmetric = "assay.symmetric", kAsymmetric = "assay.asymmetric";
constexpr Format kF32 = Format::f32;
constexpr Bits kF16One = 0x3c00, kF32One = 0x3f800000;

Bits f32(double value) { return round_double(kF32, value); }
Bits minus(Bits bits) { return bits | sign_bit(kF32); }

std::vector<Bits> floats(const std::vector<double>& values) {
  std::vector<Bits> x;
  for (const double v : values) x.push_back(f32(v));
  return x;
}

Options unsigned_codes() { return {.is_signed = false}; }
Options scales_in(Format s) { return {.scale_format = s}; }
Options four_bits() { return {.bits = 4}; }

// The one answer that all oracles give.
QParams chosen(std::string_view scheme, const Options& o, const std::vector<Bits>& x, Format format = kF32) {
  const QParams q = exact_oracle().choose_qparams(scheme, o, format, x, 0);
  for (const Oracle* oracle : oracles()) EXPECT_EQ(oracle->choose_qparams(scheme, o, format, x, 0), q) << oracle->name;
  return q;
}

int code(const Options& o, QParams q, Bits x, Format format = kF32) {
  const int code = exact_oracle().quantize(o, format, q, x);
  for (const Oracle* oracle : oracles()) EXPECT_EQ(oracle->quantize(o, format, q, x), code) << oracle->name;
  return code;
}

Bits value(const Options& o, QParams q, int code) {
  const Bits value = exact_oracle().dequantize(o, q, code);
  for (const Oracle* oracle : oracles()) EXPECT_EQ(oracle->dequantize(o, q, code), value) << oracle->name;
  return value;
}

bool too_large(std::string_view scheme, const Options& o, const std::vector<Bits>& x) {
  return range_too_large(scheme, o, kF32, x, 0);
}

bool saturated(const Options& o, QParams q, Bits x, Format format = kF32) {
  const bool result = exact_oracle().saturated(o, format, q, x);
  for (const Oracle* oracle : oracles()) EXPECT_EQ(oracle->saturated(o, format, q, x), result) << oracle->name;
  return result;
}

std::vector<int> codes(const Options& o, QParams q, const std::vector<Bits>& x) {
  std::vector<int> result;
  for (const Bits bits : x) result.push_back(code(o, q, bits));
  return result;
}

Answer round_trip(std::string_view scheme, const Options& o, std::vector<Bits> x) {
  const Case c = make_case(Operation::round_trip, std::string(scheme), o, kF32, std::move(x));
  const Answer answer = legal_answer(exact_oracle(), c);
  for (const Oracle* oracle : oracles()) EXPECT_TRUE(legal_answer(*oracle, c) == answer) << oracle->name;
  return answer;
}

using Codes = std::vector<int>;

// ---------------------------------------------------------------------------------------------------- codes

TEST(CodeOf, TiesGoToTheEvenMultiple) {
  // s = 1: x/s = x. -2.5 -> -2, -1.5 -> -2, -0.5 -> 0, 0.5 -> 0, 1.5 -> 2, 2.5 -> 2.
  const auto x = floats({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5});
  EXPECT_EQ(codes(Options{}, {kF32One, 0}, x), (Codes{-2, -2, 0, 0, 2, 2}));
  // The zero point is added afterwards: an odd one makes the codes of ties odd.
  EXPECT_EQ(codes(Options{}, {kF32One, 3}, x), (Codes{1, 1, 3, 3, 5, 5}));
}

TEST(CodeOf, TheNeighboursOfATieAreNotTies) {
  // 0x1.4p+1 = 2.5 at s = 1; one float up is nearer to 3, one down nearer to 2.
  EXPECT_EQ(code({}, {kF32One, 0}, next_up(kF32, f32(2.5))), 3);
  EXPECT_EQ(code({}, {kF32One, 0}, next_down(kF32, f32(2.5))), 2);
  EXPECT_EQ(code({}, {kF32One, 0}, next_down(kF32, f32(1.5))), 1);
}

TEST(CodeOf, DoesNotRoundTheQuotient) {
  // s = 1 + 2^-23, x = 1.5 s exactly = 1.5 + 1.5 * 2^-23, which no float holds; 1.5 + 2^-23 < 1.5 s is code 1, though
  // the float quotient (1.5 + 2^-23)/s = 1.5 - 2^-24 + ... rounds to the tie 1.5 and from there to 2.
  const Bits s = kF32One + 1, x = f32(1.5 + 0x1p-23);
  EXPECT_EQ(code({}, {s, 0}, x), 1);
  EXPECT_EQ(code({}, {s, 0}, f32(1.5 + 0x1p-22)), 2);  // above 1.5 s
}

TEST(CodeOf, WhatIsNoOrdinaryNumber) {
  const QParams q = {kF32One, 3};
  EXPECT_EQ(code(four_bits(), q, quiet_nan(kF32)), 3);
  EXPECT_EQ(code(four_bits(), q, minus(quiet_nan(kF32)) | 1), 3);
  EXPECT_EQ(code(four_bits(), q, infinity(kF32)), 7);
  EXPECT_EQ(code(four_bits(), q, minus(infinity(kF32))), -8);
  EXPECT_EQ(code(four_bits(), q, 0), 3);
  EXPECT_EQ(code(four_bits(), q, minus(0)), 3);
  EXPECT_EQ(code(four_bits(), q, largest_finite(kF32)), 7);  // about 2^128 steps up: clamped, never wrapped
  EXPECT_EQ(code(four_bits(), {1, 3}, minus(largest_finite(kF32))), -8);  // about 2^277 steps down
}

TEST(ValueOf, RoundsOnceAndSaturates) {
  EXPECT_EQ(value({}, {f32(0.5), 3}, 10), f32(3.5));  // (10 - 3)/2
  EXPECT_EQ(value({}, {f32(0.5), 3}, 3), Bits{0});    // +0, though 3 - 3 could be either
  // 3 * (1 + 2^-23) = 3 + 3 * 2^-23; floats from 2 on are 2^-22 apart: 1.5 of them, a tie to the even 2: 3 + 2^-21.
  EXPECT_EQ(value({}, {kF32One + 1, 0}, 3), f32(3 + 0x1p-21));
  EXPECT_EQ(value({}, {largest_finite(kF32), 0}, 2), largest_finite(kF32));
  EXPECT_EQ(value({}, {largest_finite(kF32), 0}, -2), minus(largest_finite(kF32)));
  // f16 out: 7 * 10000 = 70000 > 65520 -> 65504; 6 * 10000 = 60000, spacing 32: 60000 = 1875 * 32 exactly.
  const Options f16_out = {.output_format = Format::f16};
  EXPECT_EQ(value(f16_out, {f32(10000), 0}, 7), Bits{0x7bff});
  EXPECT_EQ(value(f16_out, {f32(10000), 0}, 6), round_double(Format::f16, 60000));
  // 2^-26 is below half the least f16, 2^-25, and rounds to zero; a negative value keeps its sign.
  EXPECT_EQ(value(f16_out, {f32(0x1p-26), 0}, 1), Bits{0});
  EXPECT_EQ(value(f16_out, {f32(0x1p-26), 0}, -1), Bits{0x8000});
}

// ---------------------------------------------------------------------------------------------------- scales

TEST(Scale, OfAZeroRangeIsOne) {
  const std::pair<Format, Bits> ones[] = {
      {kF32, kF32One}, {Format::f16, kF16One}, {Format::bf16, 0x3f80}, {Format::f64, 0x3ff0000000000000}};
  const std::vector<Bits> zeros[] = {
      {0, 0}, {minus(0)}, {quiet_nan(kF32)}, {infinity(kF32), minus(infinity(kF32))}, {}};
  for (const auto& [format, one] : ones) {
    for (const auto& x : zeros) {
      EXPECT_EQ(chosen(kSymmetric, scales_in(format), x), (QParams{one, 0}));
      // qmin - 0/1 = qmin.
      EXPECT_EQ(chosen(kAsymmetric, scales_in(format), x), (QParams{one, -128}));
    }
  }
  EXPECT_EQ(chosen(kAsymmetric, unsigned_codes(), {0}), (QParams{kF32One, 0}));
}

TEST(Scale, OfBlocksOfCodesIsOne) {
  std::vector<double> eight, four;
  for (int c = -128; c <= 127; ++c) eight.push_back(c);
  for (int c = -8; c <= 7; ++c) four.push_back(c);
  // Symmetric: max(127/127, -128/-128) = 1. Asymmetric: (127 + 128)/255 = 1, zero point -128 + 128 = 0.
  for (const auto scheme : {kSymmetric, kAsymmetric}) {
    const QParams q = chosen(scheme, {}, floats(eight));
    EXPECT_EQ(q, (QParams{kF32One, 0}));
    EXPECT_EQ(codes({}, q, floats(eight)), Codes(eight.begin(), eight.end()));
    const QParams q4 = chosen(scheme, four_bits(), floats(four));
    EXPECT_EQ(q4, (QParams{kF32One, 0}));
    EXPECT_EQ(codes(four_bits(), q4, floats(four)), Codes(four.begin(), four.end()));
  }
}

TEST(Scale, CoversBothEndsOfASymmetricRange) {
  EXPECT_EQ(chosen(kSymmetric, {}, floats({127, -1})).scale, kF32One);                   // 127/127 > 1/128
  EXPECT_EQ(chosen(kSymmetric, {}, floats({1, -128})).scale, kF32One);                   // 128/128 > 1/127
  EXPECT_EQ(chosen(kSymmetric, {.narrow_range = true}, floats({-127})).scale, kF32One);  // qmin = -127
  EXPECT_EQ(chosen(kSymmetric, four_bits(), floats({-4})).scale, f32(0.5));              // 4/8
  EXPECT_EQ(chosen(kSymmetric, {.bits = 2}, floats({3, -4})).scale, f32(3));             // 3/1 > 4/2
}

TEST(Scale, UnderflowsToTheLeastF16) {
  const Options o = scales_in(Format::f16);
  const double u = 0x1p-24;  // the least f16
  // amax/127 = 3/4 u, between u/2 and u: rounds up to u; 127 * 3/4 = 95.25 -> 95.
  EXPECT_EQ(chosen(kSymmetric, o, floats({127 * 0.75 * u})), (QParams{1, 0}));
  EXPECT_EQ(code(o, {1, 0}, f32(127 * 0.75 * u)), 95);
  // amax/127 = u/8 rounds to zero, whose place u takes; 127/8 = 15.875 -> 16.
  EXPECT_EQ(chosen(kSymmetric, o, floats({127 * u / 8})), (QParams{1, 0}));
  EXPECT_EQ(code(o, {1, 0}, f32(127 * u / 8)), 16);
  // amax/127 = u/2: a tie to the even zero, so u again; 63.5 -> 64.
  EXPECT_EQ(chosen(kSymmetric, o, floats({127 * u / 2})), (QParams{1, 0}));
  EXPECT_EQ(code(o, {1, 0}, f32(127 * u / 2)), 64);
  // The least float of all, 2^-149: its scale is still u, its code 0.
  EXPECT_EQ(chosen(kSymmetric, o, {1}), (QParams{1, 0}));
  EXPECT_EQ(code(o, {1, 0}, 1), 0);
}

TEST(Scale, MovesUpWhereASubnormalOneWouldClip) {
  const Options o = scales_in(Format::f16);
  const double u = 0x1p-24;
  // 127 * 11/8 u = 174.625 u: the step 1.375 u rounds to u, which reaches 127.5 u only. So 2 u: 87.3125 -> 87.
  EXPECT_EQ(chosen(kSymmetric, o, floats({174.625 * u})), (QParams{2, 0}));
  EXPECT_EQ(code(o, {2, 0}, f32(174.625 * u)), 87);
  // 127.5 u is exactly half a step beyond the last code of u: in reach, so nothing moves; 127.5 -> 128 -> 127.
  EXPECT_EQ(chosen(kSymmetric, o, floats({127.5 * u})), (QParams{1, 0}));
  EXPECT_EQ(code(o, {1, 0}, f32(127.5 * u)), 127);
  EXPECT_EQ(chosen(kSymmetric, o, {next_up(kF32, f32(127.5 * u))}), (QParams{2, 0}));
  // The same below: -128.5 u is in reach of u, the next float is not.
  EXPECT_EQ(chosen(kSymmetric, o, floats({-128.5 * u})), (QParams{1, 0}));
  EXPECT_EQ(chosen(kSymmetric, o, {next_down(kF32, f32(-128.5 * u))}), (QParams{2, 0}));
}

TEST(Scale, OverflowsToTheLargestF16) {
  const Options o = scales_in(Format::f16);
  // 127 * 65504 = 8319008: the step is the largest f16 itself.
  EXPECT_EQ(chosen(kSymmetric, o, floats({8319008})), (QParams{0x7bff, 0}));
  EXPECT_FALSE(too_large(kSymmetric, o, floats({8319008})));
  // One more: the step is above 65504 but rounds to it, and half a step of slack still reaches the range.
  EXPECT_EQ(chosen(kSymmetric, o, floats({8319009})), (QParams{0x7bff, 0}));
  EXPECT_FALSE(too_large(kSymmetric, o, floats({8319009})));
  EXPECT_TRUE(too_large(kSymmetric, o, {next_up(kF32, f32(8351760))}));
  EXPECT_FALSE(saturated(o, {0x7bff, 0}, f32(8319009)));
  // 127.5 * 65504 = 8351760 is the end of the reach.
  EXPECT_FALSE(saturated(o, {0x7bff, 0}, f32(8351760)));
  EXPECT_TRUE(saturated(o, {0x7bff, 0}, next_up(kF32, f32(8351760))));
  // 2^127/127 rounds to infinity, whose place 65504 takes: the element saturates and is counted.
  const Answer huge = round_trip(kSymmetric, o, floats({0x1p127, 65504}));
  EXPECT_EQ(huge.qparams, (std::vector<QParams>{{0x7bff, 0}}));
  EXPECT_EQ(huge.codes, (std::vector<std::int32_t>{127, 1}));
  EXPECT_EQ(huge.values, floats({8319008, 65504}));
  EXPECT_EQ(huge.counts, (Counts{0, 0, 1}));
}

TEST(Scale, OfTheLargestFloatsDoesNotOverflow) {
  // M = (2^24 - 1) * 2^104 and 2^24 - 1 = 255 * 65793, so the step 2M/255 is 65793 * 2^105 exactly.
  // 65793 = 2^16 + 2^8 + 1 = 1.0000000100000001b * 2^16: exponent 121 + 127 = 248, fraction 0x0101 << 7 = 0x8080.
  const std::vector<Bits> x = {largest_finite(kF32), minus(largest_finite(kF32))};
  // M/s = 127.5, so the zero point is rne(-128 + 127.5) = rne(-0.5) = 0.
  EXPECT_EQ(chosen(kAsymmetric, {}, x), (QParams{0x7c008080, 0}));
  // 127.5 -> 128 -> 127 and -127.5 -> -128. -128 s = -65793 * 2^112 = M * -256/255 overflows and saturates.
  const Answer a = round_trip(kAsymmetric, {}, x);
  EXPECT_EQ(a.codes, (std::vector<std::int32_t>{127, -128}));
  EXPECT_EQ(a.values, (std::vector<Bits>{f32(127 * 65793 * 0x1p105), minus(largest_finite(kF32))}));
  EXPECT_EQ(a.counts, Counts{});
  // Unsigned: rne(0 + 127.5) = 128; 128 + 128 = 256 -> 255; -128 + 128 = 0.
  EXPECT_EQ(chosen(kAsymmetric, unsigned_codes(), x), (QParams{0x7c008080, 128}));
  EXPECT_EQ(codes(unsigned_codes(), {0x7c008080, 128}, x), (Codes{255, 0}));
}

TEST(Scale, MovesUpInBf16WithEightBits) {
  // 255.75/255 = 1.0029; bf16 steps by 2^-7 = 0.0078 above 1, so the step rounds down to 1, which reaches 255.5 only.
  // Hence 1 + 2^-7 = 129/128: 255.75 * 128/129 = 253.77 -> 254.
  Options o = scales_in(Format::bf16);
  o.is_signed = false;
  const auto x = floats({0, 255.75});
  EXPECT_EQ(chosen(kAsymmetric, o, x), (QParams{0x3f81, 0}));
  EXPECT_EQ(code(o, {0x3f81, 0}, x[1]), 254);
  // 255.5 is half a step beyond: still in reach of 1; 255.5 -> 256 -> 255.
  EXPECT_EQ(chosen(kAsymmetric, o, floats({0, 255.5})), (QParams{0x3f80, 0}));
  EXPECT_EQ(code(o, {0x3f80, 0}, f32(255.5)), 255);
}

TEST(Scale, MovesUpWithItsZeroPoint) {
  // -3..7 in 15 steps: 2/3; f16 holds 1365/2048 < 2/3 with zero point rne(-8 + 4.5011) = -3, and 7 is 10.5026 steps up
  // with room for 10.5. Under 683/1024 (0x3956) the zero point is rne(-8 + 4.4978) = -4: eleven steps above.
  Options o = scales_in(Format::f16);
  o.bits = 4;
  EXPECT_EQ(chosen(kAsymmetric, o, floats({-3, 7})), (QParams{0x3956, -4}));
  EXPECT_EQ(codes(o, {0x3956, -4}, floats({-3, 7})), (Codes{-8, 6}));  // -4.498 -> -4; 10.495 -> 10
}

TEST(Scale, CountsOnlyFiniteElements) {
  // 127 alone sets the range: scale 1.
  const Answer a = round_trip(kSymmetric, {}, {quiet_nan(kF32), infinity(kF32), minus(infinity(kF32)), f32(127)});
  EXPECT_EQ(a.qparams, (std::vector<QParams>{{kF32One, 0}}));
  EXPECT_EQ(a.codes, (std::vector<std::int32_t>{0, 127, -128, 127}));
  EXPECT_EQ(a.values, floats({0, 127, -128, 127}));
  EXPECT_EQ(a.counts, (Counts{1, 2, 0}));
  // (200 + 55)/255 = 1, zero point 0 + 55.
  const Answer b =
      round_trip(kAsymmetric, unsigned_codes(), {quiet_nan(kF32), infinity(kF32), f32(-55), f32(200), minus(0)});
  EXPECT_EQ(b.qparams, (std::vector<QParams>{{kF32One, 55}}));
  EXPECT_EQ(b.codes, (std::vector<std::int32_t>{55, 255, 0, 255, 55}));
  EXPECT_EQ(b.values, floats({0, 200, -55, 200, 0}));
  EXPECT_EQ(b.counts, (Counts{1, 1, 0}));
}

TEST(Scale, OfABlockOfNanIsOneAndItsValuesAreZero) {
  const Answer a = round_trip(kAsymmetric, {}, {quiet_nan(kF32), quiet_nan(kF32)});
  EXPECT_EQ(a.qparams, (std::vector<QParams>{{kF32One, -128}}));
  EXPECT_EQ(a.codes, (std::vector<std::int32_t>{-128, -128}));
  EXPECT_EQ(a.values, (std::vector<Bits>{0, 0}));
  EXPECT_EQ(a.counts, (Counts{2, 0, 0}));
}

// ---------------------------------------------------------------------------------------------------- zero points

TEST(ZeroPoint, OfRangesOfOneSign) {
  // The range is widened to include zero: 10..255 becomes 0..255, so scale 1 and zero at the lowest code.
  EXPECT_EQ(chosen(kAsymmetric, unsigned_codes(), floats({10, 255})), (QParams{kF32One, 0}));
  EXPECT_EQ(chosen(kAsymmetric, {}, floats({10, 255})), (QParams{kF32One, -128}));
  // -255..-10 becomes -255..0: zero at the highest code.
  EXPECT_EQ(chosen(kAsymmetric, unsigned_codes(), floats({-255, -10})), (QParams{kF32One, 255}));
  EXPECT_EQ(chosen(kAsymmetric, {}, floats({-255, -10})), (QParams{kF32One, 127}));
  // A constant block: 255 in every element.
  EXPECT_EQ(codes({}, {kF32One, -128}, floats({255, 10})), (Codes{127, -118}));
}

TEST(ZeroPoint, TieIsTakenAfterAddingAnOddLowestCode) {
  const Options narrow = {.narrow_range = true};
  // -126.5..127.5 in 254 steps: 1. rne(-127 + 126.5) = rne(-0.5) = 0; rounding 126.5 first would give -127 + 126 = -1.
  EXPECT_EQ(chosen(kAsymmetric, narrow, floats({-126.5, 127.5})), (QParams{kF32One, 0}));
  EXPECT_EQ(codes(narrow, {kF32One, 0}, floats({-126.5, 127.5})), (Codes{-126, 127}));  // 127.5 -> 128 -> 127
  // -125.5..128.5: rne(-127 + 125.5) = rne(-1.5) = -2; the other way it would be -127 + 126 = -1.
  EXPECT_EQ(chosen(kAsymmetric, narrow, floats({-125.5, 128.5})), (QParams{kF32One, -2}));
}

TEST(ZeroPoint, UsesTheStoredScale) {
  // 16 codes over -5..3: step 8/15; f16: 8/15 = 1.0666 / 2 -> 1092.27/2048 -> 1092/2048 = 273/512.
  // -8 + 5 * 512/273 = -8 + 9.3773 = 1.3773 -> 1.
  Options o = scales_in(Format::f16);
  o.bits = 4;
  EXPECT_EQ(chosen(kAsymmetric, o, floats({-5, 3})), (QParams{round_double(Format::f16, 273.0 / 512), 1}));
  // A subnormal scale: -9 u/2..0 in 15 steps is 0.3 u -> 0 -> u; -8 + 4.5 = -3.5, a tie to -4. With the exact step, it
  // would be -8 + 15 = 7.
  EXPECT_EQ(chosen(kAsymmetric, o, floats({-4.5 * 0x1p-24})), (QParams{1, -4}));
}

// ---------------------------------------------------------------------------------------------------- counts

TEST(Saturated, IsStrictlyMoreThanHalfAStepOutside) {
  const QParams q = {kF32One, 0};  // codes -8..7
  EXPECT_FALSE(saturated(four_bits(), q, f32(7.5)));
  EXPECT_TRUE(saturated(four_bits(), q, next_up(kF32, f32(7.5))));
  EXPECT_FALSE(saturated(four_bits(), q, f32(-8.5)));
  EXPECT_TRUE(saturated(four_bits(), q, next_down(kF32, f32(-8.5))));
  // Zero point 3: values reach from -11 to 4.
  EXPECT_FALSE(saturated(four_bits(), {kF32One, 3}, f32(4.5)));
  EXPECT_TRUE(saturated(four_bits(), {kF32One, 3}, f32(4.75)));
  EXPECT_FALSE(saturated(four_bits(), {kF32One, 3}, f32(-11.5)));
  EXPECT_TRUE(saturated(four_bits(), {kF32One, 3}, f32(-11.75)));
  for (const Bits x : {infinity(kF32), minus(infinity(kF32)), quiet_nan(kF32)}) {
    EXPECT_FALSE(saturated(four_bits(), q, x));
  }
}

TEST(Counts, AddUpOverTheBlocksOfACase) {
  Case c = make_case(Operation::quantize, "assay.symmetric", four_bits(), kF32,
                     {f32(100), f32(7.5), quiet_nan(kF32), f32(-9), infinity(kF32), f32(9)});
  c.options.granularity = Granularity::per_block;
  c.options.block = 4;
  c.given = {{kF32One, 0}, {f32(2), 1}};  // the second reaches 12: 9 is 4.5 -> 4 steps
  for (const Oracle* oracle : oracles()) {
    const Answer a = legal_answer(*oracle, c);
    EXPECT_EQ(a.codes, (std::vector<std::int32_t>{7, 7, 0, -8, 7, 5})) << oracle->name;
    EXPECT_EQ(a.counts, (Counts{1, 1, 2})) << oracle->name;
    EXPECT_TRUE(a.values.empty()) << oracle->name;
    EXPECT_EQ(a.qparams, c.given) << oracle->name;
  }
}

TEST(LegalAnswer, HoldsOnlyWhatWasAsked) {
  Case c = make_case(Operation::choose_qparams, "assay.symmetric", four_bits(), kF32, floats({7, 14}));
  c.options.granularity = Granularity::per_axis;
  Answer a = legal_answer(exact_oracle(), c);
  EXPECT_EQ(a.qparams, (std::vector<QParams>{{kF32One, 0}, {f32(2), 0}}));
  EXPECT_TRUE(a.codes.empty() && a.values.empty());
  c.op = Operation::dequantize;
  c.x.clear();
  c.codes = {3, -3};
  c.given = {{kF32One, 0}, {f32(2), 1}};
  a = legal_answer(exact_oracle(), c);
  EXPECT_EQ(a.values, floats({3, -8}));  // (-3 - 1) * 2
  EXPECT_TRUE(a.codes.empty());
}

// ---------------------------------------------------------------------------------------------------- breakpoints

TEST(Breakpoints, TakeTheSideOfTheTie) {
  const auto points = breakpoints(four_bits(), kF32, {kF32One, 0});
  ASSERT_EQ(points.size(), 15u);  // qmax - qmin
  for (const Breakpoint& p : points) {
    // Code k begins at k - 1/2: there, if k is even and so takes the tie; else one float above.
    const Bits threshold = f32(p.code - 0.5);
    EXPECT_EQ(p.x, p.code % 2 == 0 ? threshold : next_up(kF32, threshold)) << p.code;
    EXPECT_EQ(p.threshold, std::to_string(2 * p.code - 1) + "/2");
  }
  EXPECT_EQ(points.front().code, -7);
  EXPECT_EQ(points.back().code, 7);
}

TEST(Breakpoints, CountTiesFromTheZeroPoint) {
  // Zero point 3, s = 2: code 4 is k = 1, threshold 1, odd: above it; code 5 is k = 2, threshold 3, even: there.
  const auto points = breakpoints(four_bits(), kF32, {f32(2), 3});
  ASSERT_EQ(points.size(), 15u);
  EXPECT_EQ(points[11].code, 4);
  EXPECT_EQ(points[11].x, next_up(kF32, f32(1)));
  EXPECT_EQ(points[11].threshold, "1");
  EXPECT_EQ(points[12].x, f32(3));
}

TEST(Breakpoints, CollapseWhereTheScaleIsFinerThanTheInput) {
  // s = 2^-149 and bf16 inputs 2^-133 = 65536 s apart: everything positive is beyond 126.5 s, everything negative below
  // -127.5 s. So -128 up to the last negative input, 0 at zero (from -0.5 s), 127 from the first positive one.
  const auto points = breakpoints({}, Format::bf16, {1, 0});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_TRUE(is_zero(Format::bf16, points[0].x));
  EXPECT_EQ(points[0].code, 0);
  EXPECT_EQ(points[0].threshold, "-1/1427247692705959881058285969449495136382746624");  // 2^150
  EXPECT_EQ(points[1].x, Bits{1});
  EXPECT_EQ(points[1].code, 127);
  EXPECT_EQ(points[1].threshold, "253/1427247692705959881058285969449495136382746624");
}

TEST(Breakpoints, LeaveOutWhatNoInputReaches) {
  // s = 2^15 and f16 inputs up to 65504 = 1.999 s. Thresholds in reach: +-0.5 s = +-16384 and +-1.5 s = +-49152. Codes
  // below -2 belong to -infinity alone, so that the lowest finite input begins code -2 (from -2.5 s).
  const auto points = breakpoints({}, Format::f16, {f32(0x1p15), 0});
  ASSERT_EQ(points.size(), 5u);
  const std::pair<Bits, int> wanted[] = {{0xfbff, -2}, {0xf9ff, -1}, {0xf400, 0}, {0x7401, 1}, {0x7a00, 2}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].x, wanted[i].first) << i;
    EXPECT_EQ(points[i].code, wanted[i].second) << i;
  }
  EXPECT_EQ(points[0].threshold, "-81920");
  EXPECT_EQ(points[4].threshold, "49152");
}

TEST(Breakpoints, AreWhereEveryF16InputChangesItsCode) {
  for (const double s : {1.0, 0x1p-24, 0.1, 3000.0, 0x1p-20 / 3}) {
    for (const int zero_point : {-8, 3, 7}) {
      const QParams q = {f32(s), zero_point};
      const auto points = breakpoints(four_bits(), Format::f16, q);
      std::size_t next = 0;
      int last = exact_oracle().quantize(four_bits(), Format::f16, q, 0xfc00);  // of -infinity
      for (std::int64_t at = -0x7bff; at <= 0x7bff; ++at) {
        const int now = exact_oracle().quantize(four_bits(), Format::f16, q, from_ordinal(Format::f16, at));
        if (now == last) continue;
        ASSERT_LT(next, points.size());
        ASSERT_EQ(ordinal(Format::f16, points[next].x), at);
        ASSERT_EQ(points[next++].code, now);
        last = now;
      }
      ASSERT_EQ(next, points.size());
    }
  }
}

// ---------------------------------------------------------------------------------------------------- judging

TEST(JudgeRoundTrip, AllowsEitherSideOfATieAndTheLastCode) {
  const auto judged = [](Format scale_format, double x, int code) {
    Options o = four_bits();
    o.scale_format = scale_format;
    const RoundTrip r = judge_round_trip(o, kF32, {round_double(scale_format, 1), 0}, f32(x), code);
    return std::pair(r.nearest, r.within_half_step);
  };
  for (const Format s : {kF32, Format::f16, Format::bf16, Format::f64}) {  // f64 takes the slow way
    EXPECT_EQ(judged(s, 2.5, 2), std::pair(true, true));
    EXPECT_EQ(judged(s, 2.5, 3), std::pair(true, true));  // as near; legal_codes is what tells them apart
    EXPECT_EQ(judged(s, 2.5, 4), std::pair(false, false));
    EXPECT_EQ(judged(s, 2.25, 3), std::pair(false, false));
    EXPECT_EQ(judged(s, 7.5, 7), std::pair(true, true));
    EXPECT_EQ(judged(s, 100, 7), std::pair(true, false));  // nothing is nearer, yet it is far
    EXPECT_EQ(judged(s, 100, 6), std::pair(false, false));
    EXPECT_EQ(judged(s, -8.75, -8), std::pair(true, false));
  }
}

TEST(ErrorInSteps, IsRelativeToTheScale) {
  EXPECT_EQ(error_in_steps(four_bits(), kF32, {f32(2), 0}, f32(3), 1), 0.5);      // |3 - 2|/2
  EXPECT_EQ(error_in_steps(four_bits(), kF32, {f32(2), 1}, f32(3), 1), 1.5);      // |3 - 0|/2
  EXPECT_EQ(error_in_steps(four_bits(), kF32, {kF32One, 0}, f32(100), 7), 93.0);  // |100 - 7|
}

TEST(RangeTooLarge, SaysWhetherAnEndIsOutOfReach) {
  // 4 bits asymmetric: (hi - lo)/15 against FLT_MAX never; symmetric f16 see above; bf16's largest is 255 * 2^120.
  EXPECT_FALSE(too_large(kAsymmetric, four_bits(), {largest_finite(kF32), minus(largest_finite(kF32))}));
  EXPECT_FALSE(too_large(kSymmetric, {}, {infinity(kF32), quiet_nan(kF32)}));
  // 2 bits, qmax = 1: the step of FLT_MAX is FLT_MAX itself, above bf16's largest, which all the same reaches half a
  // step farther.
  const Options two = {.bits = 2};
  EXPECT_FALSE(too_large(kSymmetric, two, {largest_finite(kF32)}));
  Options two_bf16 = two;
  two_bf16.scale_format = Format::bf16;
  EXPECT_FALSE(too_large(kSymmetric, two_bf16, {largest_finite(kF32)}));
  // FLT_MAX then rounds to bf16's infinity, replaced by its largest; 1.5 of them still reach FLT_MAX.
  EXPECT_EQ(chosen(kSymmetric, two_bf16, {largest_finite(kF32)}), (QParams{0x7f7f, 0}));
}

// ---------------------------------------------------------------------------------------------------- schemes

TEST(Schemes, RefuseWhatTheyCannotDo) {
  ASSERT_EQ(schemes().size(), 9u);
  const SchemeInfo& symmetric = *scheme_named(kSymmetric);
  const SchemeInfo& asymmetric = *scheme_named(kAsymmetric);
  EXPECT_EQ(scheme_named("assay.unknown"), nullptr);
  EXPECT_EQ(check_scheme_options(symmetric, {}), "");
  EXPECT_EQ(check_scheme_options(asymmetric, unsigned_codes()), "");
  EXPECT_NE(check_scheme_options(symmetric, unsigned_codes()), "");
  EXPECT_NE(check_scheme_options(asymmetric, {.is_signed = false, .narrow_range = true}), "");
}

TEST(Schemes, KnowALegalScale) {
  EXPECT_TRUE(scale_is_positive_finite({}, 1));
  EXPECT_TRUE(scale_is_positive_finite({}, largest_finite(kF32)));
  for (const Bits scale : {Bits{0}, minus(0), minus(kF32One), infinity(kF32), quiet_nan(kF32)}) {
    EXPECT_FALSE(scale_is_positive_finite({}, scale));
  }
}

// ---------------------------------------------------------------------------------------------------- the bound

// Blocks of neighbouring magnitudes anywhere in the format, now and then with something special among them.
std::vector<Bits> random_block(std::mt19937_64& random, Format format) {
  const Bits limit = infinity(format), around = random() % limit, spread = Bits{1} << random() % info(format).width;
  std::vector<Bits> x(1 + random() % 6);
  for (Bits& bits : x) {
    const Bits magnitude = std::min(around + random() % spread, limit - 1);
    bits = magnitude | (random() % 2 == 0 ? sign_bit(format) : 0);
    if (random() % 16 == 0) bits = random() % 2 == 0 ? 0 : infinity(format);
  }
  return x;
}

Options random_options(std::mt19937_64& random, bool symmetric) {
  const Format narrow[] = {Format::f32, Format::f16, Format::bf16};
  Options o;
  o.bits = 2 + static_cast<int>(random() % 7);
  o.is_signed = symmetric || random() % 2 == 0;
  o.narrow_range = o.is_signed && random() % 2 == 0;
  o.scale_format = narrow[random() % 3];
  return o;
}

// The promise of the canonical schemes, and the argument that one move of the scale is enough to keep it.
TEST(RoundTripBound, HoldsForEveryFiniteElement) {
  std::mt19937_64 random(2);
  int moved = 0, too_large = 0;
  for (int i = 0; i < 30000; ++i) {
    const Format format = random() % 2 == 0 ? Format::f32 : random() % 2 == 0 ? Format::f16 : Format::bf16;
    const Scheme& scheme = scheme_table()[random() % 2];
    const Options o = random_options(random, scheme.info.symmetric);
    const std::vector<Bits> x = random_block(random, format);
    const QParams q = chosen(scheme.info.name, o, x, format);
    ASSERT_TRUE(scale_is_positive_finite(o, q.scale));
    const Real step = scheme.step(range_of(format, x), o, Real(1));
    const Bits nearest = std::clamp(rn(o.scale_format, step), Bits{1}, largest_finite(o.scale_format));
    if (!step.is_zero()) {
      ASSERT_TRUE(q.scale == nearest || q.scale == nearest + 1) << i;
      moved += q.scale != nearest;
    }
    if (range_too_large(scheme.info.name, o, format, x, 0)) {
      ++too_large;
      continue;
    }
    const Real s(o.scale_format, q.scale);
    for (const Bits bits : x) {
      if (!is_finite(format, bits)) continue;
      const int c = code(o, q, bits, format);
      const Real distance = abs(Real(format, bits) - Real(c - q.zero_point) * s);
      ASSERT_TRUE(distance * 2 <= s) << i << ": " << show(format, bits) << " has code " << c;
      ASSERT_FALSE(saturated(o, q, bits, format)) << i;
      const RoundTrip judged = judge_round_trip(o, format, q, bits, c);
      ASSERT_TRUE(judged.nearest && judged.within_half_step) << i;
    }
  }
  // The draw must meet both special cases often, or the loop above shows little.
  EXPECT_GT(moved, 100);
  EXPECT_GT(too_large, 100);
}

// What is no code is never the nearest code, however far out, and judging it does not overflow.
TEST(JudgeRoundTrip, RefusesWhatIsNoCode) {
  for (const int code : {128, -129, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    for (const int zero_point : {-128, 0, 127}) {
      EXPECT_FALSE(judge_round_trip({}, Format::f32, {0x3f800000, zero_point}, 0x3f800000, code).nearest) << code;
    }
  }
  // 1 - (2^31 - 1 + 128) * 1 is 2147483774 steps away.
  EXPECT_EQ(error_in_steps({}, Format::f32, {0x3f800000, -128}, 0x3f800000, std::numeric_limits<int>::max()),
            2147483774.0);
}

}  // namespace
}  // namespace assay
