// What a quantizer under test looks like to this suite. An adapter fills in a Target; properties see nothing else of
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/spec.h"

namespace assay {

/// "unsupported" is an answer: it is counted and printed. "failed" means that the quantizer itself reported an error
/// for input that its scheme accepts, which is a finding.
enum class Status : std::uint8_t { ok, unsupported, failed };

/// What every operation is told, besides its buffers.
struct Request {
  std::string_view scheme;
  const Options& options;
  Format format;  ///< of x
  const Shape& shape;
  Bits tensor_scale = 0;  ///< f32 pattern, where the scheme has one and it is chosen or given
};

/// Buffers are contiguous and row-major, with no padding and no promise of alignment beyond the element's own:
///   x            element_count(shape) patterns of `format`, little-endian, width/8 bytes each
///   scales       one pattern of options.scale_format per block, in the order of cut()
///   zero_points  one int32 per block
///   codes        one byte per element: int8 if options.is_signed, else uint8, or a pattern of options.code_format in
///                the low bits; int16 if options.bits is 16
///   packed       packed_bytes() bytes
///   accumulators one int32 per element
///   rescales     one Rescale per block, in the order of cut()
///   values       element_count(shape) patterns of options.output_format
/// Buffers lie apart; asked all the same to write codes over their own input, a quantizer does it right or fails.
/// Every operation is optional: an empty function means that the target does not expose it. `counts` may be null; a
/// target that does not count sets `counts_special` to false.
struct Target {
  std::string name;  ///< as on the command line, such as "quantizer@avx2"
  std::string version;
  std::string isa;                   ///< instruction set of this row, or "-"
  std::vector<std::string> schemes;  ///< the schemes it declares to follow
  bool counts_special = true;

  std::function<Status(const Request&, const void* x, void* scales, std::int32_t* zero_points, Counts* counts)>
      choose_qparams;
  std::function<Status(const Request&, const void* x, const void* scales, const std::int32_t* zero_points, void* codes,
                       Counts* counts)>
      quantize;
  std::function<Status(const Request&, const void* codes, const void* scales, const std::int32_t* zero_points,
                       void* values)>
      dequantize;
  /// choose_qparams and quantize in one pass over memory.
  std::function<Status(const Request&, const void* x, void* scales, std::int32_t* zero_points, void* codes,
                       Counts* counts)>
      quantize_dynamic;

  /// For schemes of two levels: the f32 pattern of the whole tensor's scale, before choose_qparams or quantize_dynamic,
  /// which are then told.
  std::function<Status(const Request&, const void* x, Bits* tensor_scale)> choose_tensor_scale;

  /// Codes to and from options.packing; bits of `codes` above a code's width do not count.
  std::function<Status(const Request&, const void* codes, void* packed)> pack;
  std::function<Status(const Request&, const void* packed, void* codes)> unpack;

  std::function<Status(const Request&, const std::int32_t* accumulators, const Rescale* rescales, void* codes)>
      requantize;

  /// The same quantizer on the other instruction sets of this machine, and on other numbers of threads.
  std::function<std::vector<Target>()> other_isas;
  std::function<std::vector<Target>()> other_thread_counts;
};

/// Bytes of one element of a format in the buffers above.
inline std::size_t byte_width(Format format) { return static_cast<std::size_t>(info(format).width + 7) / 8; }

/// The i-th pattern of such a buffer, and the i-th code. Every machine this suite is built for is little-endian, as the
/// buffers are.
inline Bits load_pattern(const void* from, Format format, std::size_t i) {
  Bits bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(from) + i * byte_width(format), byte_width(format));
  return bits;
}
inline void store_pattern(void* to, Format format, std::size_t i, Bits bits) {
  std::memcpy(static_cast<std::byte*>(to) + i * byte_width(format), &bits, byte_width(format));
}

/// Bytes of one code in the buffers above, and of n packed ones.
inline std::size_t code_bytes(const Options& options) { return code_width(options) > 8 ? 2 : 1; }
inline std::size_t packed_bytes(const Options& options, std::size_t n) {
  return (n * static_cast<std::size_t>(code_width(options)) + 7) / 8;
}

inline std::int32_t load_code(const void* from, const Options& options, std::size_t i) {
  if (code_bytes(options) == 2) {
    std::int16_t code;
    std::memcpy(&code, static_cast<const std::byte*>(from) + i * sizeof code, sizeof code);
    return code;
  }
  const std::uint8_t byte = static_cast<const std::uint8_t*>(from)[i];
  return options.is_signed && !options.code_format ? static_cast<std::int8_t>(byte) : static_cast<std::int32_t>(byte);
}
inline void store_code(void* to, const Options& options, std::size_t i, std::int32_t code) {
  const std::size_t width = code_bytes(options);
  std::memcpy(static_cast<std::byte*>(to) + i * width, &code, width);
}

}  // namespace assay
