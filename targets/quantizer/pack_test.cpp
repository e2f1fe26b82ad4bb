// Packing against a stream that is written bit by bit, for every width, order, length and instruction set.
#include "pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace quantizer {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes reference_pack(int bits, BitOrder order, const Bytes& codes) {
  const bool lsb = order == BitOrder::lsb_first;
  Bytes packed(packed_size(codes.size(), bits), 0);
  std::size_t at = 0;
  for (const std::uint8_t code : codes) {
    for (int i = 0; i < bits; ++i, ++at) {
      const int bit = code >> (lsb ? i : bits - 1 - i) & 1;
      packed[at / 8] = static_cast<std::uint8_t>(packed[at / 8] | bit << (lsb ? at % 8 : 7 - at % 8));
    }
  }
  return packed;
}

std::uint8_t extended(std::uint8_t code, int bits, bool is_signed) {
  const int low = code & ((1 << bits) - 1);
  return static_cast<std::uint8_t>(is_signed && low >> (bits - 1) != 0 ? low - (1 << bits) : low);
}

// Heap memory of exactly this size, so that AddressSanitizer sees one byte too many.
std::unique_ptr<std::uint8_t[]> exactly(std::size_t n) { return std::make_unique<std::uint8_t[]>(n); }

void expect_round_trip(int bits, BitOrder order, const Bytes& codes, Isa isa) {
  const std::size_t size = packed_size(codes.size(), bits);
  const auto input = exactly(codes.size()), packed = exactly(size), back = exactly(codes.size());
  std::copy(codes.begin(), codes.end(), input.get());
  std::fill_n(packed.get(), size, std::uint8_t{0xFF});
  ASSERT_EQ(pack(bits, order, input.get(), codes.size(), packed.get(), isa), Status::ok);
  ASSERT_EQ(Bytes(packed.get(), packed.get() + size), reference_pack(bits, order, codes))
      << bits << " bits, " << codes.size() << " codes";
  for (const bool is_signed : {false, true}) {
    ASSERT_EQ(unpack(bits, is_signed, order, packed.get(), codes.size(), back.get(), isa), Status::ok);
    for (std::size_t i = 0; i < codes.size(); ++i) ASSERT_EQ(back[i], extended(codes[i], bits, is_signed)) << bits;
  }
}

TEST(Pack, EveryWidthOrderAndLength) {
  std::mt19937 random(1);
  for (int isa = 0; isas()[isa] != nullptr; ++isa) {
    for (int bits = 1; bits <= 8; ++bits) {
      for (const BitOrder order : {BitOrder::lsb_first, BitOrder::msb_first}) {
        for (std::size_t n = 0; n <= 200; ++n) {
          Bytes codes(n);
          for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
          ASSERT_NO_FATAL_FAILURE(expect_round_trip(bits, order, codes, {isa}));
        }
      }
    }
  }
}

// All tuples of codes that can lie in three neighbouring bytes or fewer.
TEST(Pack, EveryTupleThatSharesBytes) {
  for (const auto& [bits, count] : {std::pair{2, 4}, std::pair{3, 5}, std::pair{4, 4}, std::pair{6, 3}}) {
    Bytes codes;
    const std::uint32_t tuples = 1u << (bits * count);
    for (std::uint32_t tuple = 0; tuple < tuples; ++tuple) {
      for (int i = 0; i < count; ++i)
        codes.push_back(static_cast<std::uint8_t>(tuple >> (bits * i) & ((1u << bits) - 1)));
      if (codes.size() < 60000) continue;
      ASSERT_NO_FATAL_FAILURE(expect_round_trip(bits, BitOrder::lsb_first, codes, {}));
      ASSERT_NO_FATAL_FAILURE(expect_round_trip(bits, BitOrder::msb_first, codes, {}));
      codes.clear();
    }
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(bits, BitOrder::lsb_first, codes, {}));
  }
}

TEST(Pack, UnusedBitsAreNotRead) {
  const Bytes clean = {0x21, 0x03}, dirty = {0x21, 0xF3};
  for (const Bytes& packed : {clean, dirty}) {
    Bytes codes(3);
    ASSERT_EQ(unpack(4, true, BitOrder::lsb_first, packed.data(), 3, codes.data()), Status::ok);
    EXPECT_EQ(codes, (Bytes{1, 2, 3}));
  }
}

TEST(Pack, RefusesWhatItCannotDo) {
  Bytes buffer(16);
  EXPECT_EQ(pack(0, BitOrder::lsb_first, buffer.data(), 4, buffer.data() + 8), Status::bad_spec);
  EXPECT_EQ(pack(9, BitOrder::lsb_first, buffer.data(), 4, buffer.data() + 8), Status::bad_spec);
  EXPECT_EQ(pack(4, BitOrder::lsb_first, buffer.data(), 4, buffer.data() + 3), Status::bad_overlap);
  EXPECT_EQ(unpack(4, true, BitOrder::lsb_first, buffer.data(), 4, buffer.data()), Status::bad_overlap);
  EXPECT_EQ(pack(4, BitOrder::lsb_first, buffer.data(), 4, buffer.data() + 8, {99}), Status::bad_isa);
  EXPECT_EQ(pack(4, BitOrder::lsb_first, nullptr, 0, nullptr), Status::ok);
}

}  // namespace
}  // namespace quantizer
