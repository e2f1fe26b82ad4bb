// The loops over elements that exist once per instruction set. Everything else in this folder is ordinary code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quantizer {

struct Counts;
struct Isa;
enum class FloatFormat : std::uint8_t;

/// What one pass over elements learns about them. hi >= 0 >= lo, either may be -0; elements that are not finite only
/// count.
struct Range {
  float hi, lo;
  std::size_t nan, inf;
};

/// A block's parameters as the loops need them: 0 < scale < infinity and qmin <= zero_point <= qmax.
struct Affine {
  float scale;
  std::int32_t zero_point;
  std::int32_t qmin, qmax;
};

/// All of them take any n and need the default floating-point environment.
struct Kernels {
  const char* isa;
  std::size_t dispatch_index;  ///< its place in the tables that Highway makes, the same in every file
  void (*extend_range)(const float* x, std::size_t n, Range& range);
  void (*quantize)(const float* x, std::size_t n, const Affine& affine, std::uint8_t* codes, Counts& counts);
  /// `values` are of `format`, rounded once.
  void (*dequantize)(const std::uint8_t* codes, bool is_signed, std::size_t n, const Affine& affine, FloatFormat format,
                     void* values);
  /// f16 or bf16 patterns to f32, exactly.
  void (*widen)(const std::uint16_t* from, FloatFormat format, std::size_t n, float* to);
};

/// Of the instruction sets that this build has and this machine runs, best first; computed once.
struct KernelList {
  static constexpr int kCapacity = 16;
  Kernels kernels[kCapacity];
  const char* names[kCapacity + 1];     ///< ends with nullptr
  const char* compiled[kCapacity + 1];  ///< those that this machine does not run too; ends with nullptr
  int size;
};
const KernelList& kernel_list();
bool is_isa(Isa isa);
std::size_t dispatch_index(Isa isa);  ///< of an isa that is one

}  // namespace quantizer
