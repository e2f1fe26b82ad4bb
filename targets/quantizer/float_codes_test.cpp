// Float codes, MX and NVFP4 against a reference that finds the nearest number by comparing exact products in long
// double (64 significant bits hold a middle of 5 bits times scales of 28), on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quantizer.h"

namespace quantizer {
namespace {

using Real = long double;

constexpr std::array kCodes = {CodeFormat::e4m3fn, CodeFormat::e5m2, CodeFormat::e2m1};

struct Numbers {
  int precision, min_exponent, width, last;  // pattern of the largest
};
Numbers numbers_of(CodeFormat format) {
  switch (format) {
    case CodeFormat::e5m2:
      return {3, -14, 8, 0x7B};
    case CodeFormat::e2m1:
      return {2, 0, 4, 7};
    default:
      return {4, -6, 8, 0x7E};
  }
}

Real number(CodeFormat format, int magnitude) {
  const Numbers n = numbers_of(format);
  const int hidden = 1 << (n.precision - 1), field = magnitude / hidden;
  const int significand = field == 0 ? magnitude : magnitude % hidden + hidden;
  return std::ldexp(static_cast<Real>(significand), n.min_exponent - (n.precision - 1) + std::max(field - 1, 0));
}

Real reach(CodeFormat format) {
  const int last = numbers_of(format).last;
  return (3 * number(format, last) - number(format, last - 1)) / 2;
}

int reference_code(CodeFormat format, float x, Real scale) {
  const Numbers n = numbers_of(format);
  if (std::isnan(x)) return 0;
  const int sign = std::signbit(x) ? 1 << (n.width - 1) : 0;
  const Real magnitude = std::fabs(static_cast<Real>(x));
  int code = 0;
  while (code < n.last) {
    const Real middle = (number(format, code) + number(format, code + 1)) / 2 * scale;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
    ++code;
  }
  return sign | code;
}

std::vector<Isa> all_isas() {
  std::vector<Isa> all;
  for (int i = 0; isas()[i] != nullptr; ++i) all.push_back({i});
  return all;
}

float any_float(std::mt19937_64& random) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); }

float any_scale(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return std::bit_cast<float>(static_cast<std::uint32_t>(1 + random() % 0x7F7FFFFF));
    case 1:
      return std::bit_cast<float>(static_cast<std::uint32_t>(1 + random() % 100));
    case 2:
      return std::bit_cast<float>(static_cast<std::uint32_t>(0x7F7FFFFF - random() % 100));
    default:
      return std::ldexp(1 + static_cast<float>(random() % 0x800000) * 0x1p-23f, static_cast<int>(random() % 30) - 20);
  }
}

// Both sides of every middle, and the middle itself where a float can be it.
std::vector<float> inputs_at_middles(CodeFormat format, Real scale) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::max(),
                          0x1p-149f};
  for (int code = 0; code < numbers_of(format).last; ++code) {
    const auto near = static_cast<float>((number(format, code) + number(format, code + 1)) / 2 * scale);
    for (const float one : {std::nextafter(near, 0.0f), near, std::nextafter(near, INFINITY)})
      x.insert(x.end(), {one, -one});
  }
  const auto end = static_cast<float>(reach(format) * scale);
  for (const float one : {std::nextafter(end, 0.0f), end, std::nextafter(end, INFINITY)})
    x.insert(x.end(), {one, -one});
  return x;
}

Spec spec_of(CodeFormat format) {
  Spec spec;
  spec.scheme = Scheme::floating;
  spec.code_format = format;
  return spec;
}

void expect_codes(const Spec& spec, const std::vector<float>& x, const void* scale, Real full) {
  const std::int32_t zero = 0;
  for (const Isa isa : all_isas()) {
    std::vector<std::uint8_t> codes(x.size());
    Counts counts;
    ASSERT_EQ(quantize(spec, per_tensor(x.size()), x.data(), scale, &zero, codes.data(), &counts, isa), Status::ok);
    Counts expected;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(codes[i], reference_code(spec.code_format, x[i], full)) << x[i] << " by " << full;
      expected.nan += std::isnan(x[i]);
      expected.inf += std::isinf(x[i]);
      expected.saturated += std::isfinite(x[i]) && std::fabs(static_cast<Real>(x[i])) > reach(spec.code_format) * full;
    }
    ASSERT_EQ(counts.nan, expected.nan);
    ASSERT_EQ(counts.inf, expected.inf);
    ASSERT_EQ(counts.saturated, expected.saturated) << full;
  }
}

TEST(FloatCodes, AreNearestAtEveryMiddle) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    for (const CodeFormat format : kCodes) {
      const float scale = any_scale(random);
      std::vector<float> x = inputs_at_middles(format, scale);
      for (int j = 0; j < 40; ++j) x.push_back(any_float(random));
      ASSERT_NO_FATAL_FAILURE(expect_codes(spec_of(format), x, &scale, scale));
    }
  }
}

TEST(FloatCodes, OfPowersOfTwoAndOfTwoLevels) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200; ++i) {
    Spec mx = spec_of(kCodes[static_cast<std::size_t>(i) % 3]);
    mx.scheme = Scheme::mx;
    mx.scale_format = FloatFormat::e8m0;
    const auto power = static_cast<std::uint8_t>(random() % 255);
    const Real scale = std::ldexp(Real{1}, power - 127);
    ASSERT_NO_FATAL_FAILURE(expect_codes(mx, inputs_at_middles(mx.code_format, scale), &power, scale));
    Spec two = spec_of(CodeFormat::e2m1);
    two.scheme = Scheme::nvfp4;
    two.scale_format = FloatFormat::e4m3fn;
    two.tensor_scale = any_scale(random);
    const auto block = static_cast<std::uint8_t>(1 + random() % 0x7E);
    const Real full = number(CodeFormat::e4m3fn, block) * static_cast<Real>(two.tensor_scale);
    ASSERT_NO_FATAL_FAILURE(expect_codes(two, inputs_at_middles(two.code_format, full), &block, full));
  }
}

TEST(FloatCodes, EveryLengthAndPlaceGivesTheSame) {
  std::mt19937_64 random(3);
  const float scale = 0.37f;
  const std::int32_t zero = 0;
  std::vector<float> x(200);
  for (float& one : x) one = static_cast<float>(static_cast<int>(random() % 4000) - 2000) * 0.1f;
  for (const Isa isa : all_isas()) {
    for (std::size_t n = 0; n <= 70; ++n) {
      for (std::size_t shift = 0; shift < 4; ++shift) {
        std::vector<std::uint8_t> codes(n + 8, 0xEE);
        ASSERT_EQ(quantize(spec_of(CodeFormat::e4m3fn), per_tensor(n), x.data() + shift, &scale, &zero,
                           codes.data() + shift, nullptr, isa),
                  Status::ok);
        for (std::size_t i = 0; i < n; ++i)
          ASSERT_EQ(codes[shift + i], reference_code(CodeFormat::e4m3fn, x[shift + i], scale));
        ASSERT_EQ(codes[shift + n], 0xEE);
      }
    }
  }
}

// The product of code and scales is exact in long double; one cast rounds it once.
TEST(FloatCodes, ValuesAreRoundedOnce) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 500; ++i) {
    const CodeFormat format = kCodes[static_cast<std::size_t>(i) % 3];
    const float scale = any_scale(random);
    const std::int32_t zero = 0;
    const Numbers n = numbers_of(format);
    std::vector<std::uint8_t> codes;
    for (int code = 0; code <= n.last; ++code) {
      codes.push_back(static_cast<std::uint8_t>(code));
      codes.push_back(static_cast<std::uint8_t>(code | 1 << (n.width - 1)));
    }
    for (const Isa isa : all_isas()) {
      std::vector<float> values(codes.size());
      ASSERT_EQ(dequantize(spec_of(format), per_tensor(codes.size()), codes.data(), &scale, &zero, values.data(), isa),
                Status::ok);
      for (std::size_t j = 0; j < codes.size(); ++j) {
        const int magnitude = codes[j] & ((1 << (n.width - 1)) - 1);
        const Real exact = number(format, magnitude) * static_cast<Real>(scale);
        const auto rounded = static_cast<float>(exact);
        const float expected = std::min(rounded, std::numeric_limits<float>::max());
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[j]),
                  std::bit_cast<std::uint32_t>(j % 2 == 0 ? expected : -expected));
      }
    }
  }
}

TEST(FloatCodes, PatternsThatAreNoNumberStayWhatTheyAre) {
  const std::array<std::uint8_t, 4> codes = {0x7F, 0xFF, 0x7C, 0xFC};
  const float scale = 2;
  const std::int32_t zero = 0;
  for (const Isa isa : all_isas()) {
    std::array<float, 4> values = {};
    ASSERT_EQ(dequantize(spec_of(CodeFormat::e4m3fn), per_tensor(2), codes.data(), &scale, &zero, values.data(), isa),
              Status::ok);
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
    ASSERT_EQ(dequantize(spec_of(CodeFormat::e5m2), per_tensor(4), codes.data(), &scale, &zero, values.data(), isa),
              Status::ok);
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
    EXPECT_EQ(values[2], INFINITY);
    EXPECT_EQ(values[3], -INFINITY);
  }
}

TEST(FloatCodes, SpecsThatDoNotGoTogetherAreRefused) {
  const auto status = [](const Spec& spec) {
    const float x = 1;
    float scale = 0;
    std::int32_t zero_point = 0;
    return choose_qparams(spec, per_tensor(1), &x, &scale, &zero_point);
  };
  EXPECT_EQ(status(spec_of(CodeFormat::e4m3fn)), Status::ok);
  EXPECT_EQ(status(spec_of(CodeFormat::integer)), Status::bad_spec);
  Spec mx = spec_of(CodeFormat::e4m3fn);
  mx.scheme = Scheme::mx;
  EXPECT_EQ(status(mx), Status::bad_spec);
  Spec two = spec_of(CodeFormat::e4m3fn);
  two.scheme = Scheme::nvfp4;
  two.scale_format = FloatFormat::e4m3fn;
  EXPECT_EQ(status(two), Status::bad_spec);
  two.code_format = CodeFormat::e2m1;
  EXPECT_EQ(status(two), Status::ok);
  two.tensor_scale = 0;
  EXPECT_EQ(status(two), Status::bad_spec);
  Spec integers;
  integers.scale_format = FloatFormat::e8m0;
  EXPECT_EQ(status(integers), Status::bad_spec);
}

}  // namespace
}  // namespace quantizer
