// An exact SIMD quantizer: affine quantization of f32, f16 and bf16 tensors to 2..8-bit integer codes, correctly
// rounded in every lane on every instruction set. Stands alone: needs only Google Highway and the standard library.
//
// What it computes, per block of elements that share one scale and zero point (R_S: one round-half-to-even to the scale
// format; rne: round half to even to an integer; all quotients and products exact before that one rounding):
//   range       hi = max(0, greatest finite x), lo = min(0, least finite x)
//   step        symmetric: max(hi/qmax, lo/qmin); asymmetric: (hi - lo)/(qmax - qmin); 0 becomes 1
//   scale       R_S(step), at least the smallest positive and at most the largest finite value of S; then the next
//               larger value of S if hi or lo would lie more than scale/2 outside what the codes reach
//   zero point  symmetric: 0; asymmetric: clamp(rne(qmin - lo/scale), qmin, qmax)
//   code        clamp(rne(x/scale) + zero_point, qmin, qmax); +inf -> qmax, -inf -> qmin, NaN -> zero_point
//   value       (code - zero_point) * scale, one rounding to the output format O, at most O's largest finite value
//
// No call allocates, locks, throws or keeps state; all are thread-safe. Each call runs in the default floating-point
// environment (round to nearest, subnormals kept) whatever the caller's is, and gives the caller's back unchanged.
// Outputs that overlap inputs or each other are refused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quantizer {

/// Of elements, scales and values; f16 and bf16 travel as 16-bit patterns.
enum class FloatFormat : std::uint8_t { f32, f16, bf16 };

/// Which codes there are and how the scale is stored.
struct Spec {
  bool symmetric = true;
  int bits = 8;               ///< 2..8; one code per byte
  bool is_signed = true;      ///< int8_t codes, else uint8_t; symmetric needs signed codes
  bool narrow_range = false;  ///< qmin = -qmax; needs signed codes
  FloatFormat scale_format = FloatFormat::f32;
  FloatFormat input_format = FloatFormat::f32;   ///< of x
  FloatFormat output_format = FloatFormat::f32;  ///< of values
};

/// How a contiguous row-major tensor is cut into blocks.
/// Channels: x is [outer][channels][inner]; all elements of one channel form a block; `channels` scales, in order.
///   per tensor: {1, 1, n}. Axis k of an n-d tensor: outer = product of the dimensions before k, inner = of those
///   after.
/// Rows: x is [rows][cols]; each row is cut into blocks of `block` elements, the last of a row may be shorter;
///   rows * ceil(cols/block) scales, in order.
struct Layout {
  enum class Kind : std::uint8_t { channels, rows } kind = Kind::channels;
  std::size_t outer = 1, channels = 1, inner = 0;
  std::size_t rows = 0, cols = 0, block = 0;
};
Layout per_tensor(std::size_t n);
Layout per_channel(std::size_t outer, std::size_t channels, std::size_t inner);
Layout per_block(std::size_t rows, std::size_t cols, std::size_t block);
std::size_t element_count(const Layout& layout);
std::size_t block_count(const Layout& layout);

/// Elements that the caller may want to refuse.
struct Counts {
  std::size_t nan = 0;
  std::size_t inf = 0;
  std::size_t saturated = 0;  ///< finite, and more than scale/2 outside what the codes reach
};

enum class Status : std::uint8_t {
  ok,
  bad_spec,        ///< bits outside 2..8, or unsigned codes with symmetric or narrow_range
  bad_layout,      ///< block of 0 elements, or sizes whose product overflows
  bad_scale,       ///< a given scale is not positive and finite; nothing was written
  bad_zero_point,  ///< a given zero point is no code; nothing was written
  bad_isa,         ///< not among isas()
  bad_overlap      ///< an output shares memory with an input or with another output; nothing was written
};
const char* message(Status status);

/// Instruction sets that this build has and this machine runs, best first: "avx3", "avx2", "sse4", "ssse3", "neon",
/// "scalar" ... The list ends with nullptr and lives forever.
const char* const* isas();

/// The same for all that this build has, whether this machine runs them or not.
const char* const* compiled_isas();

/// An index into isas(). 0 is the best.
struct Isa {
  int index = 0;
};

/// x: element_count(layout) values of spec.input_format. scales: block_count(layout) values of spec.scale_format (float
/// or 16-bit patterns). zero_points: as many int32. Where a call takes `counts` it may be null. choose_qparams counts
/// NaN and infinities, and as saturated the finite elements that the chosen qparams put out of reach (only where the
/// range is too large for the scale format).
Status choose_qparams(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                      Counts* counts = nullptr, Isa isa = {});

/// codes: element_count(layout) bytes, int8_t or uint8_t as spec.is_signed says.
Status quantize(const Spec& spec, const Layout& layout, const void* x, const void* scales,
                const std::int32_t* zero_points, void* codes, Counts* counts = nullptr, Isa isa = {});

/// values: element_count(layout) of spec.output_format. Any byte is taken as a code, also one outside qmin..qmax.
Status dequantize(const Spec& spec, const Layout& layout, const void* codes, const void* scales,
                  const std::int32_t* zero_points, void* values, Isa isa = {});

/// choose_qparams and quantize block by block, so that each block is read from memory once.
Status quantize_dynamic(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                        void* codes, Counts* counts = nullptr, Isa isa = {});

}  // namespace quantizer
