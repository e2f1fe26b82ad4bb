// Eight codes in eight bytes are one 64-bit lane: three steps, each of which moves half of the fields down to meet the
// other half, make of them 8 * bits bits at the bottom of the lane. The way back is the same in reverse.
#include "pack.h"

#include <algorithm>
#include <cstring>

#include "arguments.h"
#include "shares.h"

#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pack.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quantizer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U64 = hn::ScalableTag<std::uint64_t>;
using V64 = hn::Vec<U64>;

/// `bits` ones at the bottom of every field of `width` bits.
constexpr std::uint64_t fields(int bits, int width) {
  const std::uint64_t one = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  std::uint64_t mask = 0;
  for (int at = 0; at < 64; at += width) mask |= one << at;
  return mask;
}

/// Fields of kBits at the bottom of every kWidth bits: each second one moves down to its neighbour.
template <int kBits, int kWidth>
HWY_INLINE V64 join(V64 v) {
  const U64 u64;
  constexpr std::uint64_t kStay = fields(kBits, 2 * kWidth);
  const V64 moved = hn::ShiftRight<kWidth - kBits>(v);
  return hn::Or(hn::And(v, hn::Set(u64, kStay)), hn::And(moved, hn::Set(u64, kStay << kBits)));
}

/// The way back.
template <int kBits, int kWidth>
HWY_INLINE V64 split(V64 v) {
  const U64 u64;
  constexpr std::uint64_t kStay = fields(kBits, 2 * kWidth);
  const V64 moved = hn::ShiftLeft<kWidth - kBits>(v);
  return hn::Or(hn::And(v, hn::Set(u64, kStay)), hn::And(moved, hn::Set(u64, kStay << kWidth)));
}

template <int kBits>
HWY_INLINE V64 together(V64 v) {
  return join<4 * kBits, 32>(join<2 * kBits, 16>(join<kBits, 8>(v)));
}

template <int kBits>
HWY_INLINE V64 apart(V64 v) {
  return split<kBits, 8>(split<2 * kBits, 16>(split<4 * kBits, 32>(v)));
}

/// Nibbles of every byte change places: what makes 4-bit codes of one bit order those of the other.
HWY_INLINE V64 swap_nibbles(V64 v) {
  const U64 u64;
  const V64 low = hn::Set(u64, fields(4, 8));
  return hn::Or(hn::ShiftLeft<4>(hn::And(v, low)), hn::And(hn::ShiftRight<4>(v), low));
}

/// n is a multiple of 8.
template <int kBits, bool kSwap>
HWY_INLINE void pack_lanes(const std::uint8_t* codes, std::size_t n, std::uint8_t* packed) {
  const U64 u64;
  const std::size_t lanes = hn::Lanes(u64);
  HWY_ALIGN std::uint64_t words[hn::MaxLanes(U64())];
  std::size_t i = 0;
  for (; n - i >= 8 * lanes; i += 8 * lanes) {
    std::memcpy(words, codes + i, 8 * lanes);
    V64 v = together<kBits>(hn::Load(u64, words));
    if constexpr (kSwap) v = swap_nibbles(v);
    hn::Store(v, u64, words);
    std::uint8_t* to = packed + i / 8 * kBits;
    for (std::size_t lane = 0; lane < lanes; ++lane, to += kBits) std::memcpy(to, words + lane, kBits);
  }
  for (; i < n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, codes + i, 8);
    V64 v = together<kBits>(hn::Set(u64, word));
    if constexpr (kSwap) v = swap_nibbles(v);
    const std::uint64_t out = hn::GetLane(v);
    std::memcpy(packed + i / 8 * kBits, &out, kBits);
  }
}

/// A byte with its sign bit set gets 2^8 - 2^bits on top. All bytes together, that is one subtraction: what leaves the
/// top of a byte on one side comes back on the other.
template <int kBits>
HWY_INLINE V64 extended(V64 v, bool is_signed) {
  if (!is_signed) return v;
  const V64 sign = hn::And(v, hn::Set(U64(), fields(1, 8) << (kBits - 1)));
  return hn::Or(v, hn::Sub(hn::ShiftLeft<9 - kBits>(sign), hn::ShiftLeft<1>(sign)));
}

/// n is a multiple of 8.
template <int kBits, bool kSwap>
HWY_INLINE void unpack_lanes(const std::uint8_t* packed, bool is_signed, std::size_t n, std::uint8_t* codes) {
  const U64 u64;
  const std::size_t lanes = hn::Lanes(u64);
  HWY_ALIGN std::uint64_t words[hn::MaxLanes(U64())];
  std::size_t i = 0;
  for (; n - i >= 8 * lanes; i += 8 * lanes) {
    const std::uint8_t* from = packed + i / 8 * kBits;
    for (std::size_t lane = 0; lane < lanes; ++lane, from += kBits) {
      words[lane] = 0;
      std::memcpy(words + lane, from, kBits);
    }
    V64 v = hn::Load(u64, words);
    if constexpr (kSwap) v = swap_nibbles(v);
    hn::Store(extended<kBits>(apart<kBits>(v), is_signed), u64, words);
    std::memcpy(codes + i, words, 8 * lanes);
  }
  for (; i < n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, packed + i / 8 * kBits, kBits);
    V64 v = hn::Set(u64, word);
    if constexpr (kSwap) v = swap_nibbles(v);
    const std::uint64_t out = hn::GetLane(extended<kBits>(apart<kBits>(v), is_signed));
    std::memcpy(codes + i, &out, 8);
  }
}

void pack_eights(int bits, bool swap, const std::uint8_t* codes, std::size_t n, std::uint8_t* packed) {
  switch (bits) {
    case 1:
      return pack_lanes<1, false>(codes, n, packed);
    case 2:
      return pack_lanes<2, false>(codes, n, packed);
    case 3:
      return pack_lanes<3, false>(codes, n, packed);
    case 4:
      return swap ? pack_lanes<4, true>(codes, n, packed) : pack_lanes<4, false>(codes, n, packed);
    case 5:
      return pack_lanes<5, false>(codes, n, packed);
    case 6:
      return pack_lanes<6, false>(codes, n, packed);
    default:
      return pack_lanes<7, false>(codes, n, packed);
  }
}

void unpack_eights(int bits, bool swap, const std::uint8_t* packed, bool is_signed, std::size_t n,
                   std::uint8_t* codes) {
  switch (bits) {
    case 1:
      return unpack_lanes<1, false>(packed, is_signed, n, codes);
    case 2:
      return unpack_lanes<2, false>(packed, is_signed, n, codes);
    case 3:
      return unpack_lanes<3, false>(packed, is_signed, n, codes);
    case 4:
      return swap ? unpack_lanes<4, true>(packed, is_signed, n, codes)
                  : unpack_lanes<4, false>(packed, is_signed, n, codes);
    case 5:
      return unpack_lanes<5, false>(packed, is_signed, n, codes);
    case 6:
      return unpack_lanes<6, false>(packed, is_signed, n, codes);
    default:
      return unpack_lanes<7, false>(packed, is_signed, n, codes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels.h"

namespace quantizer {
namespace {

HWY_EXPORT(pack_eights);
HWY_EXPORT(unpack_eights);

/// The other bit orders, and the codes after the last eight.
class BitWriter {
 public:
  BitWriter(std::uint8_t* to, BitOrder order) : to_(to), order_(order) {}
  void put(unsigned code, int bits) {
    for (int i = 0; i < bits; ++i, ++at_) {
      const unsigned bit = code >> (order_ == BitOrder::lsb_first ? i : bits - 1 - i) & 1;
      if (at_ % 8 == 0) to_[at_ / 8] = 0;
      to_[at_ / 8] =
          static_cast<std::uint8_t>(to_[at_ / 8] | bit << (order_ == BitOrder::lsb_first ? at_ % 8 : 7 - at_ % 8));
    }
  }

 private:
  std::uint8_t* to_;
  BitOrder order_;
  std::size_t at_ = 0;
};

class BitReader {
 public:
  BitReader(const std::uint8_t* from, BitOrder order) : from_(from), order_(order) {}
  unsigned get(int bits) {
    unsigned code = 0;
    for (int i = 0; i < bits; ++i, ++at_) {
      const unsigned bit = from_[at_ / 8] >> (order_ == BitOrder::lsb_first ? at_ % 8 : 7 - at_ % 8) & 1u;
      code |= bit << (order_ == BitOrder::lsb_first ? i : bits - 1 - i);
    }
    return code;
  }

 private:
  const std::uint8_t* from_;
  BitOrder order_;
  std::size_t at_ = 0;
};

Status check(int bits, std::size_t n, Isa isa) {
  if (bits < 1 || bits > 8) return Status::bad_spec;
  std::size_t stream = 0;
  if (!multiply(n, 8, stream)) return Status::bad_layout;
  return is_isa(isa) ? Status::ok : Status::bad_isa;
}

/// Codes that whole lanes take care of.
std::size_t in_eights(int bits, BitOrder order, std::size_t n) {
  const bool lanes = bits < 8 && (order == BitOrder::lsb_first || bits == 4);
  return lanes ? n / 8 * 8 : 0;
}

}  // namespace

std::size_t packed_size(std::size_t n, int bits) { return (n * static_cast<std::size_t>(bits) + 7) / 8; }

Status pack(int bits, BitOrder order, const void* codes, std::size_t n, void* packed, Isa isa,
            const Executor* executor) {
  if (const Status status = check(bits, n, isa); status != Status::ok) return status;
  if (const Status status = check_apart({bytes(codes, n)}, {bytes(packed, packed_size(n, bits))}); status != Status::ok)
    return status;
  const auto kernel = HWY_DISPATCH_TABLE(pack_eights)[dispatch_index(isa)];
  // A share begins at a multiple of 8 codes, which is a whole byte.
  for_each_share(shares_of(n, kRun, n, executor), executor, [&](std::size_t, std::size_t begin, std::size_t end) {
    const auto* const from = static_cast<const std::uint8_t*>(codes) + begin;
    auto* const to = static_cast<std::uint8_t*>(packed) + packed_size(begin, bits);
    if (bits == 8) {
      std::copy(from, from + (end - begin), to);
      return;
    }
    const std::size_t eights = in_eights(bits, order, end - begin);
    kernel(bits, order == BitOrder::msb_first, from, eights, to);
    BitWriter rest(to + packed_size(eights, bits), order);
    for (std::size_t i = eights; i < end - begin; ++i) rest.put(from[i], bits);
  });
  return Status::ok;
}

Status unpack(int bits, bool is_signed, BitOrder order, const void* packed, std::size_t n, void* codes, Isa isa,
              const Executor* executor) {
  if (const Status status = check(bits, n, isa); status != Status::ok) return status;
  if (const Status status = check_apart({bytes(packed, packed_size(n, bits))}, {bytes(codes, n)}); status != Status::ok)
    return status;
  const auto kernel = HWY_DISPATCH_TABLE(unpack_eights)[dispatch_index(isa)];
  const unsigned sign = is_signed ? 1u << (bits - 1) : 0u;
  for_each_share(shares_of(n, kRun, n, executor), executor, [&](std::size_t, std::size_t begin, std::size_t end) {
    const auto* const from = static_cast<const std::uint8_t*>(packed) + packed_size(begin, bits);
    auto* const to = static_cast<std::uint8_t*>(codes) + begin;
    if (bits == 8) {
      std::copy(from, from + (end - begin), to);
      return;
    }
    const std::size_t eights = in_eights(bits, order, end - begin);
    kernel(bits, order == BitOrder::msb_first, from, is_signed, eights, to);
    BitReader rest(from + packed_size(eights, bits), order);
    for (std::size_t i = eights; i < end - begin; ++i) {
      to[i] = static_cast<std::uint8_t>((rest.get(bits) ^ sign) - sign);
    }
  });
  return Status::ok;
}

}  // namespace quantizer
#endif  // HWY_ONCE
