// Codes of a float format.
//
// Why they are exact. x has at most 24 significant bits, the scale d (of the block times that of the tensor) at most
// 28, and their exponents lie far inside those of double. Let m be a number of the code format or the middle between
// two: it has at most 5 bits. If x/d = m, then the division in double is exact. Else x and m*d are different multiples
// of a quantum that is at least 2^-33 of x, so x/d and m differ by more than 2^-34 of m, and a rounding that is right
// to 2^-53 leaves them on the same side of each other. So one rounding, half to even, of the quotient in double gives
// what one rounding of the exact quotient gives. The value F(code)*d has at most 4 + 28 bits: exact in double, then
// rounded once.
#include "float_codes.h"

#include <cstring>

#include "quantizer.h"

#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "float_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Plain loops, which the compiler vectorizes for each instruction set. No inline function of the standard library here:
// see kernels.cpp.
HWY_BEFORE_NAMESPACE();
namespace quantizer {
namespace HWY_NAMESPACE {

HWY_INLINE std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
HWY_INLINE double double_of(std::uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// The pattern of |value| <= largest, rounded half to even. Adding a power of two whose last bit is worth one unit in
/// the last place makes the adder round, and the difference of the two patterns counts the units.
HWY_INLINE std::uint64_t rounded(const Rounding& to, double magnitude) {
  const std::uint64_t least = static_cast<std::uint64_t>(to.min_exponent + 1023);
  const std::uint64_t own = bits_of(magnitude) >> 52;
  const std::uint64_t exponent = own < least ? least : own;
  const std::uint64_t adder = (exponent + static_cast<std::uint64_t>(53 - to.precision)) << 52;
  const std::uint64_t units = bits_of(magnitude + double_of(adder)) - adder;
  return ((exponent - least) << (to.precision - 1)) + units;
}

HWY_INLINE std::uint64_t saturated(const Rounding& to, double value) {
  const std::uint64_t sign = bits_of(value) >> 63;
  const double magnitude = double_of(bits_of(value) & ~(std::uint64_t{1} << 63));
  const double bounded = magnitude < to.largest ? magnitude : to.largest;
  return rounded(to, bounded) | sign << to.sign_place;
}

void quantize(const float* x, std::size_t n, const Rounding& to, double scale, double reach, std::uint8_t* codes,
              Counts& counts) {
  std::size_t nan = 0, inf = 0, beyond = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t pattern;
    __builtin_memcpy(&pattern, x + i, sizeof pattern);
    const std::uint32_t magnitude = pattern & 0x7FFFFFFFu;
    const bool is_nan = magnitude > 0x7F800000u, is_inf = magnitude == 0x7F800000u;
    // As a number, NaN is harmless: it is the code of zero.
    const std::uint32_t harmless = is_nan ? 0 : pattern;
    float number;
    __builtin_memcpy(&number, &harmless, sizeof number);
    const double wide = static_cast<double>(number);
    codes[i] = static_cast<std::uint8_t>(saturated(to, wide / scale));
    nan += is_nan ? 1 : 0;
    inf += is_inf ? 1 : 0;
    beyond += (wide > reach || wide < -reach) && !is_inf ? 1 : 0;
  }
  counts.nan += nan;
  counts.inf += inf;
  counts.saturated += beyond;
}

/// `numbers` has one for every byte.
template <class Pattern>
HWY_INLINE void dequantize_as(const std::uint8_t* codes, std::size_t n, const double* numbers, double scale,
                              const Rounding& to, Pattern infinity, Pattern* values) {
  for (std::size_t i = 0; i < n; ++i) {
    const double number = numbers[codes[i]];
    const std::uint64_t magnitude = bits_of(number) & ~(std::uint64_t{1} << 63);
    const auto sign = static_cast<Pattern>(bits_of(number) >> 63 << to.sign_place);
    const bool is_number = magnitude < std::uint64_t{0x7FF} << 52;
    const bool is_nan = magnitude > std::uint64_t{0x7FF} << 52;
    const double product = is_number ? number * scale : 0.0;
    const auto special = static_cast<Pattern>((infinity | (is_nan ? infinity >> 1 : 0)) | sign);
    values[i] = is_number ? static_cast<Pattern>(saturated(to, product)) : special;
  }
}

void dequantize(const std::uint8_t* codes, std::size_t n, const double* numbers, double scale, const Rounding& to,
                FloatFormat output, void* values) {
  if (output == FloatFormat::f32) {
    dequantize_as(codes, n, numbers, scale, to, std::uint32_t{0x7F800000}, static_cast<std::uint32_t*>(values));
  } else {
    const auto infinity = static_cast<std::uint16_t>(output == FloatFormat::f16 ? 0x7C00 : 0x7F80);
    dequantize_as(codes, n, numbers, scale, to, infinity, static_cast<std::uint16_t*>(values));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>
#include <bit>

namespace quantizer {
namespace {

HWY_EXPORT(quantize);
HWY_EXPORT(dequantize);

constexpr double kInfinity = std::bit_cast<double>(std::uint64_t{0x7FF} << 52);
constexpr double kNan = std::bit_cast<double>(std::uint64_t{0x7FF8} << 48);

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

using Numbers = std::array<double, 256>;

/// The number of every byte; of e2m1 the upper four bits do not count.
constexpr Numbers numbers_of(int precision, int min_exponent, int width, unsigned first_special) {
  Numbers numbers = {};
  const unsigned sign = 1u << (width - 1), hidden = 1u << (precision - 1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned magnitude = byte & (sign - 1), field = magnitude / hidden;
    const unsigned significand = field == 0 ? magnitude : magnitude % hidden + hidden;
    const int exponent = min_exponent - (precision - 1) + static_cast<int>(field == 0 ? 0 : field - 1);
    double number = significand * power_of_two(exponent);
    if (magnitude >= first_special) number = magnitude == first_special && precision == 3 ? kInfinity : kNan;
    numbers[byte] = (byte & sign) != 0 ? -number : number;
  }
  return numbers;
}

constexpr Numbers kE4m3fn = numbers_of(4, -6, 8, 0x7F);
constexpr Numbers kE5m2 = numbers_of(3, -14, 8, 0x7C);
constexpr Numbers kE2m1 = numbers_of(2, 0, 4, 8);

const Numbers& numbers_of(CodeFormat format) {
  switch (format) {
    case CodeFormat::e5m2:
      return kE5m2;
    case CodeFormat::e2m1:
      return kE2m1;
    default:
      return kE4m3fn;
  }
}

/// Half a gap beyond the largest number.
double reach_of(CodeFormat format) {
  switch (format) {
    case CodeFormat::e5m2:
      return 61440;
    case CodeFormat::e2m1:
      return 7;
    default:
      return 464;
  }
}

}  // namespace

Rounding rounding_of(CodeFormat format) {
  switch (format) {
    case CodeFormat::e5m2:
      return {3, -14, 57344, 7};
    case CodeFormat::e2m1:
      return {2, 0, 6, 3};
    default:
      return {4, -6, 448, 7};
  }
}

Rounding rounding_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::f16:
      return {11, -14, 65504, 15};
    case FloatFormat::bf16:
      return {8, -126, 0x1.FEp127, 15};
    default:
      return {24, -126, 0x1.FFFFFEp127, 31};
  }
}

void quantize_to_floats(Isa isa, const float* x, std::size_t n, const FloatBlock& block, std::uint8_t* codes,
                        Counts& counts) {
  HWY_DISPATCH_TABLE(quantize)
  [dispatch_index(isa)](x, n, rounding_of(block.format), block.scale, reach_of(block.format) * block.scale, codes,
                        counts);
}

void dequantize_floats(Isa isa, const std::uint8_t* codes, std::size_t n, const FloatBlock& block, FloatFormat output,
                       void* values) {
  HWY_DISPATCH_TABLE(dequantize)
  [dispatch_index(isa)](codes, n, numbers_of(block.format).data(), block.scale, rounding_of(output), output, values);
}

}  // namespace quantizer
#endif  // HWY_ONCE
