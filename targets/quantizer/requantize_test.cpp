// Requantization against whole-number arithmetic of 128 bits that is written as the definitions read.
#include "requantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace quantizer {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::array kKinds = {Requantization::exact, Requantization::fixed_single_rounding,
                               Requantization::fixed_double_rounding, Requantization::float_multiplier};

Wide floor_divide(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
Wide half_up(Wide a, Wide b) { return floor_divide(2 * a + b, 2 * b); }
Wide half_away(Wide a, Wide b) { return a < 0 ? -half_up(-a, b) : half_up(a, b); }
Wide half_even(Wide a, Wide b) {
  const Wide up = half_up(a, b);
  return 2 * a + b == 2 * b * up && up % 2 != 0 ? up - 1 : up;
}
Wide int32(Wide v) { return std::clamp<Wide>(v, INT32_MIN, INT32_MAX); }

Wide rescaled(Requantization kind, Wide v, const Rescale& r) {
  switch (kind) {
    case Requantization::exact:
      return half_even(v * r.multiplier, r.divisor);
    case Requantization::fixed_single_rounding:
      return half_up(v * r.multiplier, Wide{1} << (31 - r.shift));
    case Requantization::fixed_double_rounding:
      return half_away(half_up(int32(v * (Wide{1} << std::max(r.shift, 0))) * r.multiplier, Wide{1} << 31),
                       Wide{1} << std::max(-r.shift, 0));
    case Requantization::float_multiplier: {
      const float product = static_cast<float>(static_cast<std::int32_t>(v)) * r.scale;
      return static_cast<Wide>(std::nearbyint(std::clamp(static_cast<double>(product), -1e6, 1e6)));
    }
  }
  return 0;
}

int reference(const RequantizeSpec& spec, std::int32_t accumulator, const Rescale& r) {
  const Wide least = spec.bits == 16 ? -32768 : spec.is_signed ? -128 : 0;
  const Wide most = spec.bits == 16 ? 32767 : spec.is_signed ? 127 : 255;
  const Wide v = int32(Wide{accumulator} + r.bias);
  return static_cast<int>(std::clamp(rescaled(spec.requantization, v, r) + r.zero_point, least, most));
}

int code_at(const RequantizeSpec& spec, const std::vector<std::uint8_t>& codes, std::size_t i) {
  if (spec.bits == 16) return static_cast<std::int16_t>(codes[2 * i] | codes[2 * i + 1] << 8);
  return spec.is_signed ? static_cast<std::int8_t>(codes[i]) : codes[i];
}

void expect_codes(const RequantizeSpec& spec, const Layout& layout, const std::vector<std::int32_t>& accumulators,
                  const std::vector<Rescale>& rescales) {
  for (int isa = 0; isas()[isa] != nullptr; ++isa) {
    std::vector<std::uint8_t> codes(accumulators.size() * static_cast<std::size_t>(spec.bits) / 8);
    ASSERT_EQ(requantize(spec, layout, accumulators.data(), rescales.data(), codes.data(), {isa}), Status::ok);
    for (std::size_t i = 0; i < accumulators.size(); ++i) {
      const Rescale& r = rescales[i / layout.inner % layout.channels];
      ASSERT_EQ(code_at(spec, codes, i), reference(spec, accumulators[i], r))
          << isas()[isa] << " kind " << static_cast<int>(spec.requantization) << " accumulator " << accumulators[i]
          << " bias " << r.bias << " multiplier " << r.multiplier << " divisor " << r.divisor << " shift " << r.shift
          << " scale " << r.scale;
    }
  }
}

std::int32_t any_int32(std::mt19937_64& random) { return static_cast<std::int32_t>(random()) >> random() % 32; }

Rescale any_rescale(std::mt19937_64& random, const RequantizeSpec& spec) {
  Rescale r;
  if (random() % 2 == 0) r.bias = random() % 8 == 0 ? (random() % 2 == 0 ? INT32_MAX : INT32_MIN) : any_int32(random);
  r.zero_point =
      spec.is_signed ? static_cast<std::int32_t>(random() % 256) - 128 : static_cast<std::int32_t>(random() % 256);
  if (spec.requantization == Requantization::exact) {
    r.multiplier = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    r.divisor = std::max<std::int64_t>(1, static_cast<std::int64_t>(random() >> (1 + random() % 63)));
    if (random() % 2 == 0) r.divisor = std::int64_t{1} << random() % 62;
  } else {
    r.multiplier = static_cast<std::int64_t>(random() >> 33 >> (random() % 4 == 0 ? random() % 31 : 0));
    if (random() % 4 == 0) r.multiplier = std::int64_t{1} << random() % 31;
    r.shift = static_cast<std::int32_t>(random() % 62) - 31;
  }
  r.scale = std::bit_cast<float>(static_cast<std::uint32_t>(1 + random() % 0x7F7FFFFF));
  if (random() % 2 == 0)
    r.scale = std::ldexp(1.0f + static_cast<float>(random() % 1024) / 1024, -static_cast<int>(random() % 24));
  return r;
}

TEST(Requantize, EveryKindAndFormatOfCodes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 4000; ++i) {
    const int format = static_cast<int>(random() % 3);
    const RequantizeSpec spec{kKinds[random() % 4], format == 2 ? 16 : 8, format != 1};
    const Layout layout = random() % 2 == 0 ? per_tensor(1 + random() % 70)
                                            : per_channel(1 + random() % 3, 1 + random() % 4, 1 + random() % 20);
    std::vector<Rescale> rescales;
    for (std::size_t c = 0; c < layout.channels; ++c) rescales.push_back(any_rescale(random, spec));
    std::vector<std::int32_t> accumulators(element_count(layout));
    for (std::int32_t& a : accumulators)
      a = random() % 16 == 0 ? (random() % 2 == 0 ? INT32_MAX : INT32_MIN) : any_int32(random);
    ASSERT_NO_FATAL_FAILURE(expect_codes(spec, layout, accumulators, rescales));
  }
}

// Accumulators whose product is a whole number and a half.
TEST(Requantize, Ties) {
  std::vector<std::int32_t> accumulators;
  for (std::int32_t a = -300; a <= 300; ++a) accumulators.push_back(a);
  for (const Requantization kind : kKinds) {
    for (int shift = 0; shift >= -6; --shift) {
      Rescale r;
      r.multiplier = kind == Requantization::exact ? 1 : 1 << 30;
      r.divisor = std::int64_t{2} << -shift;
      r.shift = shift;
      r.scale = std::ldexp(0.5f, shift);
      ASSERT_NO_FATAL_FAILURE(expect_codes({kind, 8, true}, per_tensor(accumulators.size()), accumulators, {r}));
    }
  }
}

TEST(Requantize, RefusesWhatItCannotDo) {
  const std::int32_t accumulator = 1;
  std::array<std::uint8_t, 4> code = {7, 7, 7, 7};
  const auto status = [&](const RequantizeSpec& spec, const Rescale& r, const Layout& layout = per_tensor(1)) {
    return requantize(spec, layout, &accumulator, &r, code.data());
  };
  EXPECT_EQ(status({}, {}), Status::ok);
  code.fill(7);
  EXPECT_EQ(status({Requantization::exact, 4, true}, {}), Status::bad_spec);
  EXPECT_EQ(status({Requantization::exact, 16, false}, {}), Status::bad_spec);
  EXPECT_EQ(status({}, {.multiplier = -1}), Status::bad_multiplier);
  EXPECT_EQ(status({}, {.divisor = 0}), Status::bad_multiplier);
  EXPECT_EQ(status({Requantization::fixed_single_rounding}, {.multiplier = std::int64_t{1} << 31}),
            Status::bad_multiplier);
  EXPECT_EQ(status({Requantization::fixed_double_rounding}, {.shift = 31}), Status::bad_multiplier);
  EXPECT_EQ(status({Requantization::fixed_double_rounding}, {.shift = -32}), Status::bad_multiplier);
  for (const float scale : {0.0f, -1.0f, INFINITY, NAN})
    EXPECT_EQ(status({Requantization::float_multiplier}, {.scale = scale}), Status::bad_multiplier);
  EXPECT_EQ(status({}, {.zero_point = 128}), Status::bad_zero_point);
  EXPECT_EQ(status({}, {}, per_block(1, 1, 1)), Status::bad_layout);
  EXPECT_EQ(code, (std::array<std::uint8_t, 4>{7, 7, 7, 7}));
}

}  // namespace
}  // namespace quantizer
