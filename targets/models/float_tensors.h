// Real weights as input of an audit: safetensors, NumPy .npy and raw .f32 files, read in place. The files come from
// strangers, so every length, offset and product in them is checked before it is believed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "oracle/spec.h"

namespace assay {

/// One tensor of f32, f16 or bf16 numbers inside a file: little-endian and row-major, as on disk.
struct FloatTensor {
  std::string name;  ///< as in the file, not escaped; the file's stem where the format has no names
  Format format;
  Shape shape;                       ///< every dimension is 1 or more; a scalar is {1}
  std::size_t byte_offset;           ///< of the first element, from the start of the file
  std::span<const std::byte> bytes;  ///< element_count(shape) patterns; their address may be unaligned
};

/// The pattern of the tensor's i-th element, whatever its alignment.
Bits pattern(const FloatTensor& tensor, std::size_t i);

/// A tensor that is sound but no input for a quantizer.
struct SkippedTensor {
  std::string name;
  std::string reason;
};

/// A whole file, mapped read-only. As with every mapped file, another process that shortens it takes the pages away.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const std::byte* start, std::size_t size) : start_(start, Unmap{size}) {}
  std::span<const std::byte> bytes() const { return {start_.get(), start_ ? start_.get_deleter().size : 0}; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* start) const;
  };
  std::unique_ptr<const std::byte, Unmap> start_;
};

/// Move-only: the tensors point into the mapping, which stays where it is when this is moved.
struct TensorFile {
  std::filesystem::path path;
  std::vector<FloatTensor> tensors;  ///< in the order of their offsets; empty if all were skipped
  std::vector<SkippedTensor> skipped;
  MappedFile mapping;
};

struct FileError {
  std::string message;  ///< one printable sentence: the file, what is wrong in it and where, what to do
};

/// Opens a .safetensors, .npy or .f32 file. Never throws for what is in the file, and never blocks on a FIFO.
std::variant<TensorFile, FileError> open_float_tensors(const std::filesystem::path& path);

/// The same for bytes in memory, which the tensors will point into; `path` only names the format and the tensor.
/// Returns a sentence that says what is wrong, or an empty string. This is the part that a fuzzer wants.
std::string parse_float_tensors(const std::filesystem::path& path, std::span<const std::byte> bytes,
                                std::vector<FloatTensor>& tensors, std::vector<SkippedTensor>& skipped);

}  // namespace assay
