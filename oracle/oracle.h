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

/// The one legal answer for one block. The scheme must be known (see scheme_named) and given scales positive and
/// finite.
struct Oracle {
  std::string_view name;
  QParams (*choose_qparams)(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x);
  int (*quantize)(const Options& options, Format format, QParams qparams, Bits x);
  /// `code - zero_point` may be any value that fits 16 bits: a code need not be in range to have a value.
  Bits (*dequantize)(const Options& options, QParams qparams, int code);
  /// x is finite and lies more than half a scale outside what the codes reach under these qparams.
  bool (*saturated)(const Options& options, Format format, QParams qparams, Bits x);
};
const Oracle& exact_oracle();
const Oracle& search_oracle();
const Oracle& fast_oracle();
std::span<const Oracle* const> oracles();

/// A row of the scheme table, as listed by `assay list schemes`.
struct SchemeInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view source;           ///< who says so
  std::string_view rounding_points;  ///< every place where an exact real is rounded
  bool symmetric;
};
std::span<const SchemeInfo> schemes();
const SchemeInfo* scheme_named(std::string_view name);
/// A sentence that says why the scheme refuses these options, or an empty string.
std::string check_scheme_options(const SchemeInfo& scheme, const Options& options);

/// A positive, finite scale of the scale format: what a legal scale must at least be.
bool scale_is_positive_finite(const Options& options, Bits scale);

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
  std::string threshold;  ///< the last exact boundary at or below x: (code - zero_point - 1/2) * scale, as a fraction
};
/// All breakpoints among the finite inputs, ascending: at most qmax - qmin of them.
std::vector<Breakpoint> breakpoints(const Options& options, Format format, QParams qparams);

/// How one code stands to its finite input, judged exactly.
struct RoundTrip {
  bool nearest;           ///< `code` is a code, and no other reconstructs closer to x
  bool within_half_step;  ///< |x - (code - zero_point) * scale| <= scale/2
};
RoundTrip judge_round_trip(const Options& options, Format format, QParams qparams, Bits x, int code);
/// |x - (code - zero_point) * scale| / scale, exact before its one rounding; for printing.
double error_in_steps(const Options& options, Format format, QParams qparams, Bits x, int code);

/// The exact step of the block is above the largest finite scale: the only case in which elements are out of reach.
bool range_too_large(std::string_view scheme, const Options& options, Format format, std::span<const Bits> x);

}  // namespace assay
