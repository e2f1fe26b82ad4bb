// The one case generator, over any source of entropy: libFuzzer's bytes, RapidCheck's randomness or a seeded stream.
// It aims at where quantizers break: breakpoints and their neighbours, degenerate blocks, scales that are not friendly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/spec.h"

namespace assay {

class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual std::uint64_t next(int bytes) = 0;  ///< `bytes` (1..8) fresh bytes; never fails
  std::uint64_t below(std::uint64_t n);       ///< 0..n-1
  bool one_in(std::uint64_t n) { return below(n) == 0; }
};

/// SplitMix64: the same seed gives the same cases on every machine.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next(int bytes) override;

 private:
  std::uint64_t state_;
};

/// The bytes of a fuzzer, zeros when they run out: every byte string is a valid case.
class ByteEntropy final : public Entropy {
 public:
  explicit ByteEntropy(std::span<const std::uint8_t> data) : data_(data) {}
  std::uint64_t next(int bytes) override;

 private:
  std::span<const std::uint8_t> data_;
};

/// What may be drawn. Each list must not be empty; what stands twice in it is drawn twice as often. Of the operations
/// only those are drawn for which there is a scheme.
struct DrawSpace {
  std::vector<std::string> schemes = {"assay.symmetric",
                                      "assay.asymmetric",
                                      "assay.symmetric",
                                      "assay.asymmetric",
                                      "assay.float",
                                      "assay.mx",
                                      "assay.nvfp4",
                                      "fixed_point.exact",
                                      "fixed_point.single_rounding",
                                      "fixed_point.double_rounding",
                                      "fixed_point.float_multiplier"};
  std::vector<Operation> operations = {Operation::round_trip, Operation::quantize, Operation::dequantize,
                                       Operation::choose_qparams, Operation::requantize};
  std::vector<Format> formats = {Format::f32, Format::f32, Format::f16, Format::bf16};
  std::vector<Format> scale_formats = {Format::f32, Format::f16, Format::bf16};
  std::vector<Format> output_formats = {Format::f32, Format::f32, Format::f16, Format::bf16};
  std::vector<Granularity> granularities = {Granularity::per_tensor, Granularity::per_axis, Granularity::per_block,
                                            Granularity::per_tile};
  std::vector<int> bits = {8, 4, 2, 3, 5, 6, 7};
  std::vector<Format> code_formats = {Format::e4m3fn, Format::e5m2, Format::e2m1};  ///< of float codes
};
/// The schemes of the space that this operation is for.
std::vector<std::string> schemes_for(const DrawSpace& space, Operation operation);

struct Drawn {
  Case c;
  std::string_view kind;  ///< which recipe filled the (first) block
};
Drawn draw_case(Entropy& entropy, const DrawSpace& space);

/// The recipes by name, in order; `Drawn::kind` is one of them.
std::span<const std::string_view> recipe_names();

}  // namespace assay
