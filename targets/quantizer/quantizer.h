// An exact SIMD quantizer: f32, f16 and bf16 tensors to 2..8-bit integer codes or to e4m3fn, e5m2 and e2m1, correctly
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
// Float codes of format F (largest number Fmax, d = scale, times the scale of the tensor in nvfp4):
//   step        amax/Fmax with amax = max(hi, -lo); nvfp4: amax/(Fmax * tensor scale)
//   scale       as above, the next larger value if amax would lie more than half the last gap beyond Fmax * d
//   mx          scale 2^e within e8m0. floor: e = floor(log2 amax) - log2 of F's largest power of two; ceil: the same
//               with ceil(log2 amax); even: floor, of amax rounded to F's precision; rceil: least e, 2^e >= amax/Fmax
//   nvfp4       tensor scale R_f32(greatest magnitude of the tensor/(6 * 448)), made positive and finite like a scale
//   code        R_F(x/d), at most Fmax; +-inf -> +-Fmax, NaN -> 0; zero keeps its sign
//   value       F(code) * d, one rounding to O, at most O's largest finite value
//
// No call allocates, locks, throws or keeps state; all are thread-safe. Each call runs in the default floating-point
// environment (round to nearest, subnormals kept) whatever the caller's is, and gives the caller's back unchanged.
// Outputs that overlap inputs or each other are refused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quantizer {

/// Of elements, scales and values; f16 and bf16 travel as 16-bit patterns. e4m3fn and e8m0 are for scales only, a byte
/// each: e4m3fn has no infinity and ends at 448, e8m0 is 2^(pattern - 127).
enum class FloatFormat : std::uint8_t { f32, f16, bf16, e4m3fn, e8m0 };

/// Float codes are patterns, one a byte; those of e2m1 (0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives) have 4 bits.
enum class CodeFormat : std::uint8_t { integer, e4m3fn, e5m2, e2m1 };

enum class Scheme : std::uint8_t {
  symmetric,   ///< integer codes, zero point 0
  asymmetric,  ///< integer codes, a zero point
  floating,    ///< float codes under an f32, f16 or bf16 scale
  mx,          ///< float codes under an e8m0 scale
  nvfp4        ///< e2m1 codes under an e4m3fn scale, under the f32 scale of the tensor
};

/// How the scale of Scheme::mx is made a power of two.
enum class ScaleRounding : std::uint8_t { floor, ceil, even, rceil };

/// Which codes there are and how the scale is stored.
struct Spec {
  Scheme scheme = Scheme::symmetric;
  int bits = 8;               ///< of integer codes: 2..8; one code per byte
  bool is_signed = true;      ///< int8_t codes, else uint8_t; symmetric needs signed codes
  bool narrow_range = false;  ///< qmin = -qmax; needs signed codes
  FloatFormat scale_format = FloatFormat::f32;
  FloatFormat input_format = FloatFormat::f32;   ///< of x
  FloatFormat output_format = FloatFormat::f32;  ///< of values
  CodeFormat code_format = CodeFormat::integer;  ///< bits, is_signed and narrow_range do not count for float codes
  ScaleRounding scale_rounding = ScaleRounding::floor;
  float tensor_scale = 1;  ///< nvfp4: as choose_tensor_scale gives it; positive and finite
};

/// How a contiguous row-major tensor is cut into blocks.
/// Channels: x is [outer][channels][inner]; all elements of one channel form a block; `channels` scales, in order.
///   per tensor: {1, 1, n}. Axis k of an n-d tensor: outer is the product of the dimensions before k, inner of those
///   after it.
/// Rows: x is [rows][cols]; each row is cut into blocks of `block` elements, the last of a row may be shorter;
///   rows * ceil(cols/block) scales, in order.
/// Tiles: x is [matrices][rows][cols]; each matrix is cut into tiles of block_rows x block elements, those at the right
///   and lower edge may be smaller; scales matrix by matrix, tile rows from the top, tiles from the left.
struct Layout {
  enum class Kind : std::uint8_t { channels, rows, tiles } kind = Kind::channels;
  std::size_t outer = 1, channels = 1, inner = 0;
  std::size_t rows = 0, cols = 0, block = 0;
  std::size_t matrices = 1, block_rows = 1;
};
Layout per_tensor(std::size_t n);
Layout per_channel(std::size_t outer, std::size_t channels, std::size_t inner);
Layout per_block(std::size_t rows, std::size_t cols, std::size_t block);
Layout per_tile(std::size_t matrices, std::size_t rows, std::size_t cols, std::size_t block_rows, std::size_t block);
std::size_t element_count(const Layout& layout);
std::size_t block_count(const Layout& layout);

/// Elements that the caller may want to refuse.
struct Counts {
  std::size_t nan = 0;
  std::size_t inf = 0;
  /// Finite, and more than scale/2 (float codes: half the last gap) outside what the codes reach.
  std::size_t saturated = 0;
};

enum class Status : std::uint8_t {
  ok,
  bad_spec,    ///< bits outside 2..8, unsigned codes with symmetric or narrow_range, or formats that the scheme has not
  bad_layout,  ///< block of 0 elements, or sizes whose product overflows
  bad_scale,   ///< a given scale is not positive and finite; nothing was written
  bad_zero_point,  ///< a given zero point is no code; nothing was written
  bad_isa,         ///< not among isas()
  bad_overlap,     ///< an output shares memory with an input or with another output; nothing was written
  bad_multiplier   ///< see requantize.h
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

/// Who runs the pieces of a call. run() calls task(argument, i) exactly once for each i < tasks, on any thread, in any
/// order, at the same time or not, and returns when all are done. Results do not depend on it, to the bit.
struct Executor {
  void* context = nullptr;
  void (*run)(void* context, std::size_t tasks, void (*task)(void* argument, std::size_t index),
              void* argument) = nullptr;
  std::size_t least_elements = 16 * 1024;  ///< of a piece: less is not worth a thread
};

/// x: element_count(layout) values of spec.input_format. scales: block_count(layout) values of spec.scale_format
/// (float, 16-bit patterns or bytes). zero_points: as many int32, all 0 for float codes. Where a call takes `counts` it
/// may be null. choose_qparams counts NaN and infinities, and as saturated the finite elements that the chosen qparams
/// put out of reach (only where the range is too large for the scale format, or a power of two was rounded down).
/// Without an executor all work is done on the calling thread.
Status choose_qparams(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                      Counts* counts = nullptr, Isa isa = {}, const Executor* executor = nullptr);

/// codes: element_count(layout) bytes, int8_t or uint8_t as spec.is_signed says, or patterns of spec.code_format.
Status quantize(const Spec& spec, const Layout& layout, const void* x, const void* scales,
                const std::int32_t* zero_points, void* codes, Counts* counts = nullptr, Isa isa = {},
                const Executor* executor = nullptr);

/// values: element_count(layout) of spec.output_format. Any byte is taken as a code, also one outside qmin..qmax; a
/// pattern of a code format that is NaN or infinite gives NaN or infinity.
Status dequantize(const Spec& spec, const Layout& layout, const void* codes, const void* scales,
                  const std::int32_t* zero_points, void* values, Isa isa = {}, const Executor* executor = nullptr);

/// choose_qparams and quantize block by block, so that each block is read from memory once.
Status quantize_dynamic(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                        void* codes, Counts* counts = nullptr, Isa isa = {}, const Executor* executor = nullptr);

/// The scale of a whole tensor of n elements, for Scheme::nvfp4; goes into Spec::tensor_scale.
Status choose_tensor_scale(const Spec& spec, std::size_t n, const void* x, float* tensor_scale, Isa isa = {},
                           const Executor* executor = nullptr);

}  // namespace quantizer
