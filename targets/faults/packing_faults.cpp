// Packed codes, wrong as real systems had them.
#include <array>

#include "targets/faults/parts.h"

namespace assay {
namespace {

// The bytes, or the unpacked codes, after the right kernel.
using SpoilPacked = void (*)(const Request&, std::uint8_t* packed, std::size_t size);
using SpoilUnpacked = void (*)(const Request&, std::uint8_t* codes, std::size_t n);

template <SpoilPacked Spoil>
Target packed_fault() {
  Target t = base();
  t.pack = [right = t.pack](const Request& r, const void* codes, void* packed) {
    const Status status = right(r, codes, packed);
    if (status == Status::ok)
      Spoil(r, static_cast<std::uint8_t*>(packed), packed_bytes(r.options, element_count(r.shape)));
    return status;
  };
  return t;
}

template <SpoilUnpacked Spoil>
Target unpacked_fault() {
  Target t = base();
  t.unpack = [right = t.unpack](const Request& r, const void* packed, void* codes) {
    const Status status = right(r, packed, codes);
    if (status == Status::ok) Spoil(r, static_cast<std::uint8_t*>(codes), element_count(r.shape));
    return status;
  };
  return t;
}

void swaps_nibbles(const Request& r, std::uint8_t* packed, std::size_t size) {
  if (code_width(r.options) != 4) return;
  for (std::size_t i = 0; i < size; ++i) packed[i] = static_cast<std::uint8_t>(packed[i] << 4 | packed[i] >> 4);
}
void drops_last_code(const Request& r, std::uint8_t* packed, std::size_t size) {
  if (element_count(r.shape) % 2 != 0 && code_width(r.options) == 4) packed[size - 1] = 0;
}
void leaves_padding(const Request& r, std::uint8_t* packed, std::size_t size) {
  const std::size_t used = element_count(r.shape) * static_cast<std::size_t>(code_width(r.options)) % 8;
  if (used == 0) return;
  const bool lsb = r.options.packing == Packing::lsb_first;
  packed[size - 1] = static_cast<std::uint8_t>(packed[size - 1] | (lsb ? 0xff << used : 0xff >> used));
}

bool is_signed(const Request& r) { return r.options.is_signed && !r.options.code_format; }

void no_sign_extension(const Request& r, std::uint8_t* codes, std::size_t n) {
  for (std::size_t i = 0; is_signed(r) && i < n; ++i)
    codes[i] = static_cast<std::uint8_t>(codes[i] & ((1 << code_width(r.options)) - 1));
}
// The bias of a bit trick: nibble - 7 instead of the nibble's two's complement.
void wrong_bias(const Request& r, std::uint8_t* codes, std::size_t n) {
  for (std::size_t i = 0; is_signed(r) && r.options.bits == 4 && i < n; ++i)
    codes[i] = static_cast<std::uint8_t>((codes[i] & 15) - 7);
}
// One subtraction of 32 bits for four bytes: a negative code borrows from the next.
void borrows_from_neighbour(const Request& r, std::uint8_t* codes, std::size_t n) {
  for (std::size_t i = 0; is_signed(r) && i + 1 < n; i += 2) {
    if (codes[i] >= 0x80) --codes[i + 1];
  }
}

constexpr std::array kFaults = {
    Fault{"swaps_nibbles", "imp #722: nibbles in the other order", "pack_round_trip", packed_fault<swaps_nibbles>},
    Fault{"packs_pairs_only", "public bugs: odd number of 4-bit codes", "pack_round_trip",
          packed_fault<drops_last_code>},
    Fault{"leaves_padding_bits", "public bugs: nonzero padding", "pack_round_trip", packed_fault<leaves_padding>},
    Fault{"unpacks_without_sign", "public bugs: sign extension", "pack_round_trip", unpacked_fault<no_sign_extension>},
    Fault{"unpacks_with_wrong_bias", "tilelang #2477: nibble - 7", "pack_round_trip", unpacked_fault<wrong_bias>},
    Fault{"unpacking_borrows", "sparkinfer #761: borrow across byte lanes", "pack_round_trip",
          unpacked_fault<borrows_from_neighbour>},
};

}  // namespace

std::span<const Fault> packing_faults() { return kFaults; }

}  // namespace assay
