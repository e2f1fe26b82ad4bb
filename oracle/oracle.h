// What is legal. Three definitions of the same answer, each a row of functions behind one type:
//   exact_oracle   the formula as it reads, in rational arithmetic: the definition
//   search_oracle  its adversary: the nearest reconstruction found by search over codes and scales, without division
//   fast_oracle    its twin in 128-bit integers, for sweeps and fuzzers
// Tests hold the three equal; a finding is always confirmed by exact_oracle before anyone sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/spec.h"

namespace assay {

/// The one legal answer for one block. The scheme must be known (see scheme_named) and suit the call; given scales are
/// positive and finite.
struct Oracle {
  std::string_view name;
  /// The f32 pattern of the scale of a whole tensor; 0 for schemes of one level.
  Bits (*choose_tensor_scale)(std::string_view scheme, Format format, std::span<const Bits> x);
  /// `tensor_scale` as chosen or given for the tensor that the block is part of.
  QParams (*choose_qparams)(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                            Bits tensor_scale);
  int (*quantize)(const Options& options, Format format, QParams qparams, Bits x);
  /// `code - zero_point` may be any value that fits 16 bits: an integer code need not be in range to have a value.
  Bits (*dequantize)(const Options& options, QParams qparams, int code);
  /// x is finite and lies more than half a scale (float codes: half the last gap) outside what the codes reach.
  bool (*saturated)(const Options& options, Format format, QParams qparams, Bits x);
  int (*requantize)(std::string_view scheme, const Options& options, const Rescale& rescale, std::int32_t accumulator);
};
const Oracle& exact_oracle();
const Oracle& search_oracle();
const Oracle& fast_oracle();
std::span<const Oracle* const> oracles();

enum class CodeKind : std::uint8_t {
  integer,     ///< integer codes of real numbers
  floating,    ///< patterns of Options::code_format
  requantized  ///< integer codes of int32 accumulators
};

/// A row of the scheme table, as listed by `assay list schemes`.
struct SchemeInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view source;           ///< who says so
  std::string_view rounding_points;  ///< every place where an exact real is rounded
  CodeKind codes = CodeKind::integer;
  bool symmetric = false;   ///< zero is in the middle of the codes: the zero point is 0
  bool two_levels = false;  ///< block scales under the scale of the tensor
  Options defaults;         ///< what options mean where they are not given
};
std::span<const SchemeInfo> schemes();
const SchemeInfo* scheme_named(std::string_view name);
/// A sentence that says why the scheme refuses these options, or an empty string.
std::string check_scheme_options(const SchemeInfo& scheme, const Options& options);
/// A sentence that says what of the case does not suit its scheme, or an empty string. For cases that pass check_case.
std::string check_scheme_case(const SchemeInfo& scheme, const Case& c);

/// A positive, finite scale of the scale format: what a legal scale must at least be.
bool scale_is_positive_finite(const Options& options, Bits scale);

/// Adds what a quantizer must report of one element.
void count_element(Counts& counts, const Oracle& oracle, const Options& options, Format format, QParams qparams,
                   Bits x);

/// The legal answer to a whole case, block by block in the order of cut(); parts that the operation does not ask for
/// stay empty. `counts` covers all of x.
struct Answer {
  std::vector<QParams> qparams;
  std::vector<std::int32_t> codes;
  std::vector<Bits> values;  ///< patterns of options.output_format
  Counts counts;
  bool operator==(const Answer&) const = default;
};
Answer legal_answer(const Oracle& oracle, const Case& c);

/// One rounding, half to even, of an exact double; for drawing inputs and for printing.
Bits round_double(Format format, double value);

/// The least input of `format` whose code differs from its predecessor's, with the exact real threshold behind it.
struct Breakpoint {
  Bits x;                 ///< first input with the new code
  int code;               ///< its code
  std::string threshold;  ///< the last exact boundary at or below x, the middle between two values, as a fraction
};
/// All breakpoints among the finite inputs, ascending: at most one less than there are codes. The two zeros of a float
/// format are one code here, named -0 as seen from below.
std::vector<Breakpoint> breakpoints(const Options& options, Format format, QParams qparams);

/// How one code stands to its finite input, judged exactly.
struct RoundTrip {
  bool nearest;           ///< `code` is a code, and no other reconstructs closer to x
  bool within_half_step;  ///< x lies no farther from the value of `code` than half the gap to the next code on its side
};
RoundTrip judge_round_trip(const Options& options, Format format, QParams qparams, Bits x, int code);
/// |x - value of code| / scale, exact before its one rounding; for printing.
double error_in_steps(const Options& options, Format format, QParams qparams, Bits x, int code);

/// The legal qparams themselves leave an end of the block out of reach: the exact step is above the largest finite
/// scale, or the scheme rounds scales down. Only then may elements be lost.
bool range_too_large(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                     Bits tensor_scale);

/// No guard of the scheme has anything to do on this block: the step is neither 0 nor beyond the normal numbers of the
/// scale format, and once rounded it leaves both ends within reach.
bool well_conditioned(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x,
                      Bits tensor_scale);

/// The codes as they lie in memory, by the definition of Packing: bit by bit. Not for Packing::none. Unused bits of the
/// last byte are 0.
std::vector<std::uint8_t> pack(const Options& options, std::span<const std::int32_t> codes);
std::vector<std::int32_t> unpack(const Options& options, std::span<const std::uint8_t> packed, std::size_t n);

}  // namespace assay
