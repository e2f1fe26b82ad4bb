// Exact reals and the one rounding, against patterns worked out by hand and against the processor's own division.
#include "oracle/real.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace assay {
namespace {

const Real kInf = Real::infinity(false);
const Real kMinusInf = Real::infinity(true);
const Real kMinusZero = -Real(0);

Real power(int exponent) {
  Real result = 1;
  for (int e = 0; e < std::abs(exponent); ++e) result = result * 2;
  return exponent < 0 ? 1 / result : result;
}

Real half_of(const Real& a) { return a / 2; }

// The landmarks of each format, from its definition: sign, biased exponent, fraction.
struct Landmarks {
  Format format;
  Bits one;              // bias << fraction bits
  int precision;         // significand bits
  Bits smallest_normal;  // biased exponent 1, fraction 0
  int smallest;          // the least subnormal is 2^smallest
  Bits largest;          // all ones but the lowest exponent bit
  int top;               // every finite value is below 2^top
};

constexpr Landmarks kLandmarks[] = {
    {Format::f32, 0x3f800000, 24, 0x00800000, -149, 0x7f7fffff, 128},
    {Format::f16, 0x3c00, 11, 0x0400, -24, 0x7bff, 16},
    {Format::bf16, 0x3f80, 8, 0x0080, -133, 0x7f7f, 128},
    {Format::f64, 0x3ff0000000000000, 53, 0x0010000000000000, -1074, 0x7fefffffffffffff, 1024},
};

class AtLandmarks : public ::testing::TestWithParam<Landmarks> {
 protected:
  const Landmarks& at = GetParam();
  Bits round(const Real& value) const { return rn(at.format, value); }
  Bits negative(Bits bits) const { return bits | sign_bit(at.format); }
};

TEST_P(AtLandmarks, TiesGoToTheEvenNeighbour) {
  const Real half_ulp = power(-at.precision);  // the values above 1 are 2^-(p-1) apart
  // 1 + 1/2 ulp: between 1 (even) and 1 + ulp (odd).
  EXPECT_EQ(round(1 + half_ulp), at.one);
  EXPECT_EQ(round(-(1 + half_ulp)), negative(at.one));
  // 1 + 3/2 ulp: between 1 + ulp (odd) and 1 + 2 ulp (even).
  EXPECT_EQ(round(1 + 3 * half_ulp), at.one + 2);
  // The least excess over a tie decides it: 1 + 1/2 ulp + 2^-2000 is nearer to 1 + ulp.
  EXPECT_EQ(round(1 + half_ulp + power(-2000)), at.one + 1);
  EXPECT_EQ(round(1 + 3 * half_ulp - power(-2000)), at.one + 1);
  // Below 1 they are half as far apart: 1 - 1/4 ulp is between 1 - ulp/2 (odd: all ones) and 1 (even).
  EXPECT_EQ(round(1 - half_of(half_ulp)), at.one);
}

TEST_P(AtLandmarks, UnderflowIsGradual) {
  const Real unit = power(at.smallest);
  EXPECT_EQ(round(unit), Bits{1});
  EXPECT_EQ(round(half_of(unit)), Bits{0});                    // tie between 0 (even) and 1 (odd)
  EXPECT_EQ(round(half_of(unit) + power(-2000)), Bits{1});     // just above the tie
  EXPECT_EQ(round(Real::ratio(3, 2) * unit), Bits{2});         // tie between 1 (odd) and 2 (even)
  EXPECT_EQ(round(Real::ratio(5, 2) * unit), Bits{2});         // tie between 2 (even) and 3 (odd)
  EXPECT_EQ(round(Real::ratio(9, 4) * unit), Bits{2});         // 2.25
  EXPECT_EQ(round(-(Real::ratio(3, 4) * unit)), negative(1));  // -0.75 is nearer to -1 than to 0
}

TEST_P(AtLandmarks, SubnormalsCarryIntoTheNormals) {
  const Real unit = power(at.smallest), normal = power(at.smallest + at.precision - 1);
  EXPECT_EQ(round(normal), at.smallest_normal);
  EXPECT_EQ(round(normal - unit), at.smallest_normal - 1);
  // Half a unit below: a tie between all ones (odd) and the smallest normal (even).
  EXPECT_EQ(round(normal - half_of(unit)), at.smallest_normal);
  EXPECT_EQ(round(normal - half_of(unit) - power(-2000)), at.smallest_normal - 1);
}

TEST_P(AtLandmarks, OverflowBeginsHalfAnUlpAboveTheLargest) {
  const Real half_ulp = power(at.top - at.precision - 1);  // the top binade is 2^(top - p) apart
  EXPECT_EQ(round(power(at.top) - 2 * half_ulp), at.largest);
  // The tie between the largest (all ones: odd) and 2^top (even): to infinity.
  EXPECT_EQ(round(power(at.top) - half_ulp), at.largest + 1);
  EXPECT_EQ(round(power(at.top) - half_ulp - power(-100)), at.largest);
  EXPECT_EQ(round(-(power(at.top) - half_ulp)), negative(at.largest + 1));
  EXPECT_EQ(round(-(power(at.top) - half_ulp) + power(-100)), negative(at.largest));
  EXPECT_EQ(round(power(5000)), at.largest + 1);
}

TEST_P(AtLandmarks, KeepsTheSignOfWhatBecomesZero) {
  EXPECT_EQ(round(Real(0)), Bits{0});
  EXPECT_EQ(round(kMinusZero), negative(0));
  EXPECT_EQ(round(power(-3000)), Bits{0});
  EXPECT_EQ(round(-power(-3000)), negative(0));
  EXPECT_EQ(round(-half_of(power(at.smallest))), negative(0));
}

TEST_P(AtLandmarks, KeepsInfinitiesAndNan) {
  EXPECT_EQ(round(kInf), at.largest + 1);
  EXPECT_EQ(round(kMinusInf), negative(at.largest + 1));
  EXPECT_TRUE(is_nan(at.format, round(Real::nan())));
  EXPECT_TRUE(Real(at.format, negative(quiet_nan(at.format))).is_nan());
  EXPECT_TRUE(Real(at.format, at.largest + 1) == kInf);
}

INSTANTIATE_TEST_SUITE_P(Formats, AtLandmarks, ::testing::ValuesIn(kLandmarks),
                         [](const auto& p) { return std::string(assay::info(p.param.format).name); });

TEST(Rounding, OfAThirdAndATenth) {
  // 1/3 = 1.0101...b * 2^-2. f32 keeps ...0101010|1010: up. f16 keeps 0101010101|0101: down. bf16 0101010|1010: up.
  const Real third = Real::ratio(1, 3), tenth = Real::ratio(1, 10);
  EXPECT_EQ(rn(Format::f32, third), Bits{0x3eaaaaab});
  EXPECT_EQ(rn(Format::f16, third), Bits{0x3555});
  EXPECT_EQ(rn(Format::bf16, third), Bits{0x3eab});
  EXPECT_EQ(rn(Format::f64, third), Bits{0x3fd5555555555555});
  // 1/10 = 1.10011001...b * 2^-4. bf16 keeps 1001100|1100: up; f16 1001100110|0110: down.
  EXPECT_EQ(rn(Format::f32, tenth), Bits{0x3dcccccd});
  EXPECT_EQ(rn(Format::f16, tenth), Bits{0x2e66});
  EXPECT_EQ(rn(Format::bf16, tenth), Bits{0x3dcd});
  EXPECT_EQ(rn(Format::f64, tenth), Bits{0x3fb999999999999a});
}

TEST(Rounding, OfF16InDecimal) {
  EXPECT_EQ(rn(Format::f16, Real(65504)), Bits{0x7bff});
  EXPECT_EQ(rn(Format::f16, Real(65519)), Bits{0x7bff});  // halfway to 65536 is 65520
  EXPECT_EQ(rn(Format::f16, Real(65520)), Bits{0x7c00});
  EXPECT_EQ(rn(Format::f16, Real(2049)), Bits{0x6800});  // above 2048 they are 2 apart: tie between 2048 and 2050
  EXPECT_EQ(rn(Format::f16, Real(2051)), Bits{0x6802});  // tie between 2050 (odd) and 2052 (even)
}

class EveryPattern : public ::testing::TestWithParam<Format> {};

TEST_P(EveryPattern, IsItsOwnRounding) {
  for (Bits bits = 0; bits < 0x10000; ++bits) {
    if (is_nan(GetParam(), bits)) continue;
    ASSERT_EQ(rn(GetParam(), Real(GetParam(), bits)), bits) << to_hex(GetParam(), bits);
  }
}

TEST_P(EveryPattern, WinsTheTieWithItsNeighboursIfItIsEven) {
  const Format f = GetParam();
  for (Bits bits = 0; bits < largest_finite(f); ++bits) {
    const Real middle = half_of(Real(f, bits) + Real(f, bits + 1));
    const Bits even = bits + bits % 2;
    ASSERT_EQ(rn(f, middle), even) << to_hex(f, bits);
    ASSERT_EQ(rn(f, -middle), even | sign_bit(f)) << to_hex(f, bits);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryPattern, ::testing::Values(Format::f16, Format::bf16),
                         [](const auto& p) { return std::string(assay::info(p.param).name); });

// IEEE 754 demands correctly rounded arithmetic of the processor, zeros, infinities and subnormals included.
TEST(Rounding, EqualsTheProcessors) {
  const std::vector<Bits> edges = {0,          1,          0x7fffff,   0x800000,   0x3f7fffff, 0x3f800000,
                                   0x3f800001, 0x7f7fffff, 0x7f800000, 0x4b7fffff, 0x3eaaaaab, 0x80000000,
                                   0x80000001, 0xbf800000, 0xff7fffff, 0xff800000};
  std::mt19937_64 random(1);
  const auto draw = [&] { return random() % 2 == 0 ? edges[random() % edges.size()] : random() & 0xffffffff; };
  for (int i = 0; i < 100000; ++i) {
    const Bits a = draw(), b = draw();
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(a));
    const float y = std::bit_cast<float>(static_cast<std::uint32_t>(b));
    const auto same = [&](const Real& exact, float got) {
      return same_bits(Format::f32, rn(Format::f32, exact), std::bit_cast<std::uint32_t>(got));
    };
    const Real p(Format::f32, a), q(Format::f32, b);
    ASSERT_TRUE(same(p + q, x + y)) << show(Format::f32, a) << " + " << show(Format::f32, b);
    ASSERT_TRUE(same(p - q, x - y)) << show(Format::f32, a) << " - " << show(Format::f32, b);
    ASSERT_TRUE(same(p * q, x * y)) << show(Format::f32, a) << " * " << show(Format::f32, b);
    ASSERT_TRUE(same(p / q, x / y)) << show(Format::f32, a) << " / " << show(Format::f32, b);
    ASSERT_EQ(p < q, x < y) << show(Format::f32, a) << " < " << show(Format::f32, b);
    ASSERT_EQ(p == q, x == y) << show(Format::f32, a) << " == " << show(Format::f32, b);
  }
}

TEST(WholeNumbers, TiesGoToTheEvenOne) {
  const auto rounded = [](long long n, long long d) { return rne(Real::ratio(n, d)); };
  EXPECT_TRUE(rounded(1, 2) == 0);
  EXPECT_TRUE(rounded(3, 2) == 2);
  EXPECT_TRUE(rounded(5, 2) == 2);
  EXPECT_TRUE(rounded(7, 2) == 4);
  EXPECT_TRUE(rounded(-1, 2) == 0);
  EXPECT_TRUE(rounded(-3, 2) == -2);
  EXPECT_TRUE(rounded(-5, 2) == -2);
  EXPECT_TRUE(rounded(5, 3) == 2);  // 1.67
  EXPECT_TRUE(rounded(4, 3) == 1);  // 1.33
  EXPECT_TRUE(rounded(-5, 3) == -2);
  EXPECT_TRUE(rne(Real::ratio(1, 2) + power(-500)) == 1);  // the least excess over a tie decides
  EXPECT_TRUE(rne(power(70) + Real::ratio(1, 2)) == power(70));
  EXPECT_TRUE(rne(power(70) + Real::ratio(3, 2)) == power(70) + 2);
}

TEST(WholeNumbers, LeaveWhatIsNoFraction) {
  EXPECT_TRUE(rne(kInf) == kInf);
  EXPECT_TRUE(rne(kMinusInf) == kMinusInf);
  EXPECT_TRUE(rne(Real::nan()).is_nan());
  EXPECT_EQ(rne(kMinusZero).fraction(), "-0");
  EXPECT_TRUE(rne(Real(-7)) == -7);
}

TEST(Arithmetic, OfInfinities) {
  EXPECT_TRUE((kInf - kInf).is_nan());
  EXPECT_TRUE((kInf + kMinusInf).is_nan());
  EXPECT_TRUE(kInf + kInf == kInf);
  EXPECT_TRUE(kInf - 1 == kInf);
  EXPECT_TRUE(1 - kInf == kMinusInf);
  EXPECT_TRUE((kInf * 0).is_nan());
  EXPECT_TRUE(kInf * -2 == kMinusInf);
  EXPECT_TRUE((kInf / kInf).is_nan());
  EXPECT_TRUE(kMinusInf / -3 == kInf);
  EXPECT_EQ((1 / kMinusInf).fraction(), "-0");
  EXPECT_EQ((-1 / kMinusInf).fraction(), "0");
}

TEST(Arithmetic, OfZeros) {
  EXPECT_EQ((Real(1) - 1).fraction(), "0");
  EXPECT_EQ((kMinusZero + kMinusZero).fraction(), "-0");
  EXPECT_EQ((kMinusZero + 0).fraction(), "0");
  EXPECT_EQ((kMinusZero - 0).fraction(), "-0");  // (-0) + (-0)
  EXPECT_EQ((Real(0) - 0).fraction(), "0");
  EXPECT_EQ((kMinusZero * 3).fraction(), "-0");
  EXPECT_EQ((kMinusZero * -3).fraction(), "0");
  EXPECT_EQ((kMinusZero / -3).fraction(), "0");
  EXPECT_EQ((5 + kMinusZero).fraction(), "5");
  EXPECT_TRUE((Real(0) / 0).is_nan());
  EXPECT_TRUE(1 / Real(0) == kInf);
  EXPECT_TRUE(1 / kMinusZero == kMinusInf);
}

TEST(Arithmetic, OfNan) {
  const Real nan = Real::nan();
  for (const Real& r : {nan + 1, 1 - nan, nan * 0, 0 / nan, kInf + nan, -nan}) EXPECT_TRUE(r.is_nan());
  EXPECT_FALSE(nan == nan || nan < 1 || nan > 1 || nan <= 1 || nan >= 1 || nan < kInf || kMinusInf < nan);
}

TEST(Arithmetic, IsExact) {
  // 1/3 + 1/6 = 1/2; (2^-149)^2 * 2^298 = 1: nothing underflows on the way.
  EXPECT_EQ((Real::ratio(1, 3) + Real::ratio(1, 6)).fraction(), "1/2");
  EXPECT_EQ((power(-149) * power(-149) * power(298)).fraction(), "1");
  EXPECT_EQ((power(1000) + 1 - power(1000)).fraction(), "1");
  EXPECT_EQ((Real(3) / -8).fraction(), "-3/8");
}

TEST(Order, PutsInfinitiesAtTheEnds) {
  const Real ordered[] = {kMinusInf, -power(200), Real(-1), Real(0), power(-200), Real(1), kInf};
  for (std::size_t i = 0; i < std::size(ordered); ++i) {
    for (std::size_t j = 0; j < std::size(ordered); ++j) {
      EXPECT_EQ(ordered[i] < ordered[j], i < j) << i << ' ' << j;
      EXPECT_EQ(ordered[i] <= ordered[j], i <= j) << i << ' ' << j;
      EXPECT_EQ(ordered[i] == ordered[j], i == j) << i << ' ' << j;
    }
  }
  EXPECT_TRUE(kMinusZero == 0);
  EXPECT_FALSE(kMinusZero < 0);
}

TEST(Order, OfMinMaxClampAbs) {
  EXPECT_TRUE(min(Real(2), -3) == -3);
  EXPECT_TRUE(max(Real(2), -3) == 2);
  EXPECT_TRUE(clamp(kInf, -8, 7) == 7);
  EXPECT_TRUE(clamp(kMinusInf, -8, 7) == -8);
  EXPECT_TRUE(clamp(3, -8, 7) == 3);
  EXPECT_TRUE(abs(Real(-5)) == 5);
  EXPECT_EQ(abs(kMinusZero).fraction(), "0");
  EXPECT_EQ(to_int(Real(-128)), -128);
  EXPECT_EQ(to_int(kMinusZero), 0);
}

TEST(Views, ShowTheExactNumber) {
  EXPECT_EQ(Real(Format::f16, 0x0001).fraction(), "1/16777216");  // 2^-24
  EXPECT_EQ(Real(Format::f16, 0x03ff).fraction(), "1023/16777216");
  EXPECT_EQ(Real(Format::f16, 0x7bff).fraction(), "65504");
  EXPECT_EQ(Real(Format::f16, 0xc100).fraction(), "-5/2");      // -1.25 * 2
  EXPECT_EQ(Real(Format::bf16, 0x3f81).fraction(), "129/128");  // 1 + 2^-7
  EXPECT_EQ(Real(Format::f32, 0x80000000).fraction(), "-0");
  EXPECT_EQ(kInf.fraction(), "inf");
  EXPECT_EQ(kMinusInf.fraction(), "-inf");
  EXPECT_EQ(Real::nan().fraction(), "nan");
  EXPECT_EQ(Real::ratio(1, 3).approximate(), 1.0 / 3.0);
  EXPECT_TRUE(std::isnan(Real::nan().approximate()));
  EXPECT_TRUE(std::signbit(kMinusZero.approximate()));
}

}  // namespace
}  // namespace assay
