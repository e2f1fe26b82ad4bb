// The vocabulary every room shares: number formats, scheme options, how a tensor is cut into blocks, and the Case.
// Plain values only; nothing here computes with real numbers, so a target may include it without seeing the oracle.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Raw bit pattern of a number in some Format, right-aligned in 64 bits.
using Bits = std::uint64_t;

// ---------------------------------------------------------------------------------------------------- formats

enum class Format : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  // OCP 8-bit floating point (OFP8) and microscaling (MX) formats.
  e4m3fn,
  e5m2,
  e2m1,
  e8m0,
  e2m3,
  e3m2,
  // Others in use: IEEE layouts, and the "fnuz" formats of some accelerators.
  e4m3,
  e3m4,
  e4m3fnuz,
  e5m2fnuz,
  e4m3b11fnuz,
};

/// What a format has besides finite numbers. All but `unsigned_power` have a sign bit, gradual underflow and zeros.
enum class Specials : std::uint8_t {
  ieee,            ///< infinities and NaN share the top exponent
  nan_all_ones,    ///< no infinity; the all-ones magnitude is NaN
  nan_minus_zero,  ///< no infinity and no -0; the pattern of -0 is the NaN
  none,            ///< finite numbers only
  unsigned_power   ///< e8m0: 2^(pattern - 127); no sign, no zero, no infinity; the all-ones pattern is NaN
};

/// A binary floating-point format: sign, exponent, fraction, from the highest bit down.
struct FormatInfo {
  Format format;
  std::string_view name;
  int width;         ///< bits of the whole pattern
  int precision;     ///< significand bits, hidden bit included
  int min_exponent;  ///< 2^min_exponent is the smallest normal number
  int max_exponent;  ///< 2^max_exponent is the largest power of two that is finite
  Specials specials;
};

std::span<const FormatInfo> formats();
const FormatInfo& info(Format format);
std::optional<Format> format_named(std::string_view name);

Bits sign_bit(Format format);  ///< 0 if the format has none
bool has_infinity(Format format);
bool has_nan(Format format);
Bits infinity(Format format);   ///< +infinity; only where has_infinity
Bits quiet_nan(Format format);  ///< only where has_nan
Bits largest_finite(Format format);
Bits smallest_positive(Format format);  ///< the smallest subnormal

bool is_nan(Format format, Bits bits);
bool is_inf(Format format, Bits bits);
bool is_finite(Format format, Bits bits);
bool is_zero(Format format, Bits bits);
bool is_negative(Format format, Bits bits);  ///< the sign bit, so true for -0
bool is_subnormal(Format format, Bits bits);

/// Neighbours on the number line, up to infinity or, where there is none, the largest finite number, and down likewise;
/// -0 and +0 count as one number. Not for NaN.
Bits next_up(Format format, Bits bits);
Bits next_down(Format format, Bits bits);

/// Position on the number line: x < y exactly if ordinal(x) < ordinal(y); both zeros are 0. Not for NaN.
std::int64_t ordinal(Format format, Bits bits);
Bits from_ordinal(Format format, std::int64_t ordinal);

/// THE equality of this suite: any NaN equals any NaN, and +0 is not -0.
bool same_bits(Format format, Bits a, Bits b);

/// Exact for every format here (NaN stays NaN); a view for printing and for drawing inputs, never for judging.
double to_double(Format format, Bits bits);

/// Fixed-width lower-case hex of the pattern ("3f800000"), the form in which bits travel in JSON.
std::string to_hex(Format format, Bits bits);
/// Empty unless `text` has exactly the width of the format and only hex digits (either case).
std::optional<Bits> from_hex(Format format, std::string_view text);
/// "0x1.8p+1 [40400000]": the way a float is printed for people, value and bits together.
std::string show(Format format, Bits bits);

// ---------------------------------------------------------------------------------------------------- schemes

enum class Granularity : std::uint8_t { per_tensor, per_axis, per_block, per_tile };
std::string_view to_string(Granularity granularity);

/// How an MX scale, a power of two, is made from the greatest magnitude of its block.
enum class ScaleRounding : std::uint8_t { floor, ceil, even, rceil };
std::string_view to_string(ScaleRounding rounding);

/// How codes lie in memory: a byte (16-bit codes: two) each, or as a dense stream that starts at the lowest or at the
/// highest bit of each byte. For 4-bit codes: low nibble first, high nibble first.
enum class Packing : std::uint8_t { none, lsb_first, msb_first };
std::string_view to_string(Packing packing);

/// The options of a scheme. Together with the scheme's name they leave no freedom in the result.
struct Options {
  int bits = 8;  ///< width of an integer code: 2..8, or 16 where accumulators are requantized
  bool is_signed = true;
  bool narrow_range = false;  ///< drop the lowest signed code, so that qmin == -qmax
  std::optional<Format> code_format =
      std::nullopt;  ///< codes are patterns of this format, and the three fields above do not count
  Format scale_format = Format::f32;
  ScaleRounding scale_rounding = ScaleRounding::floor;  ///< of assay.mx
  Format output_format = Format::f32;
  Packing packing = Packing::none;
  Granularity granularity = Granularity::per_tensor;
  std::int64_t block =
      32;  ///< per_block, per_tile: elements of the last axis that share qparams; the last may be fewer
  std::int64_t block_rows = 1;  ///< per_tile: likewise along the last axis but one
  int axis = 0;                 ///< per_axis: the axis whose index selects the qparams
  auto operator<=>(const Options&) const = default;
};

/// Bits of one code.
int code_width(const Options& options);

/// The codes of the least and of the greatest value. Codes of a float format are patterns, from 0 up: is_code and
/// code_ordinal tell which are codes and how they are ordered.
struct CodeRange {
  int qmin, qmax;
};
CodeRange code_range(const Options& options);
/// An integer in the range, or a finite pattern of the code format.
bool is_code(const Options& options, int code);
/// Grows with the code's value; both zeros are 0. Only for codes.
std::int64_t code_ordinal(const Options& options, int code);
/// "code -3", or "code 0x1.8p+1 [3e]" for a pattern; any number will do.
std::string show_code(const Options& options, int code);

/// Sets one option from its `--set key=value` text. Returns a sentence that says what is wrong, or an empty string.
std::string set_option(Options& options, std::string_view key, std::string_view value);
/// All options, in a fixed order, as (key, value) text: the inverse of set_option.
std::vector<std::pair<std::string, std::string>> option_list(const Options& options);

/// One block's quantization parameters.
struct QParams {
  Bits scale = 0;               ///< pattern of Options::scale_format
  std::int32_t zero_point = 0;  ///< 0 for codes of a float format
  Bits tensor_scale = 0;        ///< f32 pattern that multiplies the scale of every block; 0 in schemes of one level
  auto operator<=>(const QParams&) const = default;
};

/// How the accumulators of one block become codes. Which fields count depends on the scheme.
struct Rescale {
  std::int32_t bias = 0;
  std::int32_t zero_point = 0;
  std::int64_t multiplier = 1;  ///< numerator, or the Q31 significand of a fixed-point multiplier
  std::int64_t divisor = 1;     ///< denominator of an exact multiplier
  std::int32_t shift = 0;       ///< fixed point: to the left if positive
  Bits scale = 0;               ///< f32 pattern of a float multiplier
  auto operator<=>(const Rescale&) const = default;
};

/// Elements that a quantizer must report, because their code alone does not show what they were.
struct Counts {
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t saturated = 0;  ///< finite, and more than half a scale outside what the codes reach
  auto operator<=>(const Counts&) const = default;
};

// ---------------------------------------------------------------------------------------------------- blocks

/// The elements that share one QParams: `outer` runs of `inner` consecutive elements, `stride` apart.
struct Block {
  std::size_t start, outer, stride, inner;
  std::size_t size() const { return outer * inner; }
  /// Row-major position in the tensor of the block's i-th element.
  std::size_t at(std::size_t i) const { return start + i / inner * stride + i % inner; }
};

using Shape = std::vector<std::int64_t>;
std::size_t element_count(const Shape& shape);
/// A sentence that says which option is out of bounds, or an empty string; for options built by hand.
std::string check_options(const Options& options);
/// How `options` cuts a row-major tensor into blocks. The shape must fit the options (see check_shape).
std::vector<Block> cut(const Shape& shape, const Options& options);
/// A sentence that says why the shape cannot be cut that way (or what is wrong with the options), or an empty string.
std::string check_shape(const Shape& shape, const Options& options);

// ---------------------------------------------------------------------------------------------------- case

enum class Operation : std::uint8_t { choose_qparams, quantize, dequantize, round_trip, requantize };
std::string_view to_string(Operation operation);
std::optional<Operation> operation_named(std::string_view name);
/// quantize and dequantize are handed their qparams.
bool takes_qparams(Operation operation);
/// choose_qparams and round_trip choose them.
bool chooses_qparams(Operation operation);

/// One question to a quantizer, complete without the build that asked it. The waist of the hourglass: engines make
/// cases, properties judge them, JSON files hold them.
struct Case {
  Operation op = Operation::round_trip;
  std::string scheme = "assay.symmetric";
  Options options;
  Format format = Format::f32;             ///< of x
  Shape shape;                             ///< row-major
  std::vector<Bits> x;                     ///< the input; empty for dequantize and requantize
  std::vector<std::int32_t> codes;         ///< dequantize only
  std::vector<std::int32_t> accumulators;  ///< requantize only
  std::vector<QParams> given;              ///< one per block where takes_qparams(op), else empty
  std::vector<Rescale> rescales;           ///< one per block for requantize, else empty
  std::string source;                      ///< where it comes from
  std::string why;                         ///< one line: what it is there to show
  bool operator==(const Case&) const = default;
};

/// A one-dimensional case over `x`, the shape filled in.
Case make_case(Operation op, std::string scheme, const Options& options, Format format, std::vector<Bits> x);
/// Elements of the case's input, whichever kind it is.
std::size_t input_size(const Case& c);
/// A sentence that says what is inconsistent about the case, or an empty string. Scheme names are not checked here.
std::string check_case(const Case& c);

}  // namespace assay
