// Puts a Case before a Target: lays out the buffers, calls the operations, reads the answer back as plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "oracle/spec.h"
#include "targets/target.h"

namespace assay {

/// Where the buffers of one question lie. Properties about memory bring their own.
class Memory {
 public:
  virtual ~Memory() = default;
  /// `size` bytes at an address that suits elements of `alignment` bytes; valid until the Memory goes.
  virtual std::byte* allocate(std::size_t size, std::size_t alignment) = 0;
  /// Called once a buffer holds its input and is only to be read from now on.
  virtual void seal(std::byte*) {}
};

/// Ordinary memory. Every byte starts as `fill`, so that an output the target forgets to write shows; buffers start
/// `shift` elements past an address aligned to 64.
class PlainMemory final : public Memory {
 public:
  explicit PlainMemory(std::byte fill = std::byte{0xa5}, std::size_t shift = 0) : fill_(fill), shift_(shift) {}
  std::byte* allocate(std::size_t size, std::size_t alignment) override;

 private:
  std::byte fill_;
  std::size_t shift_;
  std::vector<std::vector<std::byte>> buffers_;
};

/// What the target answered; parts that the operation does not produce stay empty.
struct Reply {
  Status status = Status::ok;
  std::vector<QParams> qparams;
  std::vector<std::int32_t> codes;
  std::vector<Bits> values;
  std::vector<std::uint8_t> packed;    ///< the codes, where options.packing asks for it and the target packs
  std::vector<std::int32_t> unpacked;  ///< and what they unpack to
  Counts counts;
  bool operator==(const Reply&) const = default;
};

/// In one pass over memory (quantize_dynamic), or choosing qparams and quantizing by two calls.
enum class Path : std::uint8_t { separate, fused };

/// Runs the case's operation. round_trip and choose_qparams use the qparams that the target chose itself. Path::fused
/// is unsupported for quantize and dequantize, which are handed theirs.
Reply ask(const Target& target, const Case& c, Path path, Memory& memory);
/// The same without putting back the floating-point environment, for those who look at what the target left of it.
Reply ask_in_this_environment(const Target& target, const Case& c, Path path, Memory& memory);
Reply ask(const Target& target, const Case& c, Path path = Path::separate);

/// The path that a target offers for this case: separate if it has both calls, else fused.
Path usual_path(const Target& target, const Case& c);

/// `x` quantized under one block's qparams, or codes dequantized, as a one-dimensional per-tensor case.
Case quantize_case(const Case& like, QParams q, std::vector<Bits> x);
Case dequantize_case(const Case& like, QParams q, std::vector<std::int32_t> codes);
/// The case's operation on other input of one dimension and a single block.
Case with_block(const Case& like, std::vector<Bits> x);
/// The elements of one block.
std::vector<Bits> block_of(const Case& c, const Block& block);

}  // namespace assay
