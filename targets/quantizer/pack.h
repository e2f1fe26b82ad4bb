// Packed codes: codes of fewer than 8 bits as a dense stream, and back. SIMD functions of their own, for whoever stores
// or ships what quantize() makes.
#pragma once

#include <cstddef>

#include "quantizer.h"

namespace quantizer {

/// Where the stream starts in each byte. Code i takes the bits from i * bits on, its own lowest bit first (lsb_first)
/// or its highest bit first (msb_first). Of 4-bit codes: the low, or the high nibble holds the first of two.
enum class BitOrder : std::uint8_t { lsb_first, msb_first };

/// ceil(n * bits / 8).
std::size_t packed_size(std::size_t n, int bits);

/// codes: n bytes, of which the low `bits` (1..8) count, so that signed and unsigned codes and patterns are one.
/// packed: packed_size(n, bits) bytes; unused bits of the last one become 0.
Status pack(int bits, BitOrder order, const void* codes, std::size_t n, void* packed, Isa isa = {},
            const Executor* executor = nullptr);

/// codes: n bytes, extended from `bits` by sign if is_signed, else by zeros. Unused bits of the last byte are ignored.
Status unpack(int bits, bool is_signed, BitOrder order, const void* packed, std::size_t n, void* codes, Isa isa = {},
              const Executor* executor = nullptr);

}  // namespace quantizer
