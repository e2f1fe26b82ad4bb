// Requantization of accumulators and packing of codes.
#include <gtest/gtest.h>

#include <random>

#include "oracle/oracle.h"

namespace assay {
namespace {

Options eight_bits() { return {}; }
Options sixteen_bits() { return {.bits = 16}; }

int code(std::string_view scheme, const Options& o, const Rescale& r, std::int32_t accumulator) {
  const int expected = exact_oracle().requantize(scheme, o, r, accumulator);
  for (const Oracle* oracle : oracles())
    EXPECT_EQ(oracle->requantize(scheme, o, r, accumulator), expected) << oracle->name;
  return expected;
}

constexpr std::string_view kExact = "fixed_point.exact", kSingle = "fixed_point.single_rounding",
                           kDouble = "fixed_point.double_rounding", kFloat = "fixed_point.float_multiplier";

TEST(Requantize, OneQuarterIsOneOnlyWhenRoundedTwice) {  // ruy #227
  const Rescale quarter{.multiplier = 1 << 30, .shift = -1};
  EXPECT_EQ(code(kSingle, eight_bits(), quarter, 1), 0);
  EXPECT_EQ(code(kDouble, eight_bits(), quarter, 1), 1);
  EXPECT_EQ(code(kExact, eight_bits(), {.multiplier = 1, .divisor = 4}, 1), 0);
}

TEST(Requantize, TiesGoWhereEachSchemeSendsThem) {
  const Rescale half{.multiplier = 1 << 30, .shift = 0};
  for (const auto& [v, even, up, away] :
       {std::tuple{1, 0, 1, 1}, std::tuple{3, 2, 2, 2}, std::tuple{5, 2, 3, 3}, std::tuple{-1, 0, 0, 0},
        std::tuple{-3, -2, -1, -1}, std::tuple{-5, -2, -2, -2}}) {
    EXPECT_EQ(code(kExact, eight_bits(), {.multiplier = 1, .divisor = 2}, v), even) << v;
    EXPECT_EQ(code(kSingle, eight_bits(), half, v), up) << v;
    // The doubling high multiplication sends its ties up; only the shift after it sends them away from zero.
    EXPECT_EQ(code(kDouble, eight_bits(), half, v), away) << v;
    EXPECT_EQ(code(kFloat, eight_bits(), {.scale = 0x3f000000}, v), even) << v;
  }
  // 4 * (2^30/2^31) = 2 exactly, then 2 / 4 = 1/2 goes away from zero on both sides.
  const Rescale eighth{.multiplier = 1 << 30, .shift = -2};
  EXPECT_EQ(code(kDouble, eight_bits(), eighth, 4), 1);
  EXPECT_EQ(code(kDouble, eight_bits(), eighth, -4), -1);
  EXPECT_EQ(code(kSingle, eight_bits(), eighth, -4), 0);
}

TEST(Requantize, TheLargestAccumulatorsNeitherWrapNorOverflow) {  // CMSIS-NN #220
  for (const std::string_view scheme : {kSingle, kDouble}) {
    const Rescale almost_one{.multiplier = INT32_MAX};
    EXPECT_EQ(code(scheme, sixteen_bits(), almost_one, INT32_MAX), 32767);
    EXPECT_EQ(code(scheme, sixteen_bits(), almost_one, INT32_MIN), -32768);
    const Rescale left{.bias = INT32_MAX, .multiplier = INT32_MAX, .shift = 30};
    EXPECT_EQ(code(scheme, eight_bits(), left, INT32_MAX), 127);
    const Rescale down{.bias = INT32_MIN, .multiplier = INT32_MAX, .shift = 30};
    EXPECT_EQ(code(scheme, eight_bits(), down, INT32_MIN), -128);
  }
  EXPECT_EQ(code(kExact, eight_bits(), {.multiplier = INT64_MAX, .divisor = 1}, INT32_MIN), -128);
  EXPECT_EQ(code(kFloat, eight_bits(), {.scale = 0x7f7fffff}, INT32_MIN), -128);
  EXPECT_EQ(code(kFloat, eight_bits(), {.scale = 0x00000001}, INT32_MIN), 0);
}

// TensorFlow #103028: 585 * 3d58ede4 * 3cc56051 / 3deb32f4 is 6.50000047; with the multiplier in f32 it is 6.5.
TEST(Requantize, AFloatMultiplierCanTieWhereTheExactOneDoesNot) {
  const Rescale exact{.zero_point = -126, .multiplier = 45974061003081, .divisor = 4137665192525824};
  EXPECT_EQ(code(kExact, eight_bits(), exact, 585), -119);
  EXPECT_EQ(code(kFloat, eight_bits(), {.zero_point = -126, .scale = 0x3c360b61}, 585), -120);
}

TEST(Requantize, MultipliersOfOneAndMoreAreMultipliers) {  // PyTorch #33466
  EXPECT_EQ(code(kFloat, {.is_signed = false}, {.scale = 0x40000000}, 10), 20);
  EXPECT_EQ(code(kExact, {.is_signed = false}, {.multiplier = 2}, 10), 20);
  EXPECT_EQ(code(kSingle, {.is_signed = false}, {.multiplier = 1 << 30, .shift = 2}, 10), 20);
  EXPECT_EQ(code(kDouble, {.is_signed = false}, {.multiplier = 1 << 30, .shift = 2}, 10), 20);
}

// ------------------------------------------------------------------------------------------- packing

Options packed_codes(int bits, Packing packing, bool is_signed = true) {
  return {.bits = bits, .is_signed = is_signed, .packing = packing};
}

using Codes = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

TEST(Packing, NibbleOrders) {
  const Codes codes = {-1, 3, -4, 5, 7};
  EXPECT_EQ(pack(packed_codes(4, Packing::lsb_first), codes), (Bytes{0x3f, 0x5c, 0x07}));
  EXPECT_EQ(pack(packed_codes(4, Packing::msb_first), codes), (Bytes{0xf3, 0xc5, 0x70}));
}

TEST(Packing, DenseStreamsStartAtTheLowestBit) {
  EXPECT_EQ(pack(packed_codes(2, Packing::lsb_first, false), Codes{1, 2, 3, 0, 2}), (Bytes{0b00111001, 0b10}));
  // 3 bits: 5 = 101, 2 = 010, 7 = 111 -> 11 010 101, then 1.
  EXPECT_EQ(pack(packed_codes(3, Packing::lsb_first, false), Codes{5, 2, 7}), (Bytes{0b11010101, 0b1}));
  EXPECT_EQ(pack(packed_codes(6, Packing::lsb_first, false), Codes{63, 0, 21, 42}),
            (Bytes{0b00111111, 0b01010000, 0b10101001}));
}

TEST(Packing, UnpackingGivesTheCodesBack) {
  std::mt19937_64 random(1);
  for (const Packing packing : {Packing::lsb_first, Packing::msb_first}) {
    for (int bits = 2; bits <= 8; ++bits) {
      for (const bool is_signed : {true, false}) {
        const Options o = packed_codes(bits, packing, is_signed);
        const CodeRange range = code_range(o);
        for (std::size_t n = 1; n < 40; ++n) {
          Codes codes(n);
          for (std::int32_t& c : codes)
            c = range.qmin + static_cast<int>(random() % static_cast<unsigned>(range.qmax - range.qmin + 1));
          ASSERT_EQ(unpack(o, pack(o, codes), n), codes) << bits;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
