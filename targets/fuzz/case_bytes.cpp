#include "targets/fuzz/case_bytes.h"

#include <algorithm>

#include "oracle/oracle.h"
#include "targets/target.h"

namespace assay {
namespace {

constexpr std::uint8_t kDrawn = 1;
constexpr std::size_t kHeaderBytes = 15, kDimensionBytes = 2;
constexpr std::uint8_t kSignedFlag = 1, kNarrowFlag = 2;
constexpr std::int64_t kMostBlock = std::int64_t{1} << 31;  // as set_option has it
constexpr int kMostAxis = 15;

// A byte that names an allowed value means it, whatever else the space holds; any other byte still picks one.
template <typename T>
T among(const std::vector<T>& allowed, std::uint64_t byte) {
  const auto named = static_cast<T>(byte);
  return std::find(allowed.begin(), allowed.end(), named) != allowed.end() ? named : allowed[byte % allowed.size()];
}

std::string scheme_among(const std::vector<std::string>& allowed, std::uint64_t byte) {
  const std::string_view named = byte < schemes().size() ? schemes()[byte].name : std::string_view{};
  return std::find(allowed.begin(), allowed.end(), named) != allowed.end() ? std::string(named)
                                                                           : allowed[byte % allowed.size()];
}

std::size_t scheme_index(std::string_view name) {
  const std::span<const SchemeInfo> all = schemes();
  return static_cast<std::size_t>(
      std::find_if(all.begin(), all.end(), [name](const SchemeInfo& s) { return s.name == name; }) - all.begin());
}

std::int32_t to_code(std::uint64_t byte, const Options& options) {
  const CodeRange range = code_range(options);
  const int code = options.is_signed ? static_cast<std::int8_t>(byte) : static_cast<int>(byte);
  if (code >= range.qmin && code <= range.qmax) return code;
  return range.qmin + static_cast<int>(byte) % (range.qmax - range.qmin + 1);
}

Bits to_scale(Bits pattern, Format format) {
  Bits bits = pattern & ~sign_bit(format);
  if (!is_finite(format, bits)) bits &= ~infinity(format);
  return is_zero(format, bits) ? smallest_positive(format) : bits;
}

// As many as cut() makes, without making them.
std::size_t block_count(const Shape& shape, const Options& options) {
  switch (options.granularity) {
    case Granularity::per_tensor:
      return 1;
    case Granularity::per_axis:
      return static_cast<std::size_t>(shape[static_cast<std::size_t>(options.axis)]);
    case Granularity::per_block:
      return element_count(shape) / static_cast<std::size_t>(shape.back()) *
             static_cast<std::size_t>((shape.back() + options.block - 1) / options.block);
  }
  return 1;
}

std::size_t element_bytes(const Case& c) { return c.op == Operation::dequantize ? 1 : byte_width(c.format); }

std::size_t payload_bytes(const Case& c) {
  const std::size_t given = takes_qparams(c.op) ? block_count(c.shape, c.options) : 0;
  return given * (byte_width(c.options.scale_format) + 1) + element_count(c.shape) * element_bytes(c);
}

Options decode_options(ByteEntropy& bytes, const DrawSpace& space, bool symmetric) {
  Options o;
  o.bits = among(space.bits, bytes.next(1));
  const std::uint64_t flags = bytes.next(1);
  o.is_signed = symmetric || (flags & kSignedFlag) != 0;
  o.narrow_range = o.is_signed && (flags & kNarrowFlag) != 0;
  o.scale_format = among(space.scale_formats, bytes.next(1));
  o.output_format = among(space.output_formats, bytes.next(1));
  o.granularity = among(space.granularities, bytes.next(1));
  o.axis = static_cast<int>(bytes.next(1)) % (kMostAxis + 1);
  const auto block = static_cast<std::int64_t>(bytes.next(4));
  o.block = block == 0 ? 1 : block <= kMostBlock ? block : 1 + block % 64;
  return o;
}

// The inner dimensions come from the bytes, the outermost is as long as the bytes that follow can fill: bytes that the
// fuzzer inserts or erases are elements that come or go.
void decode_shape(ByteEntropy& bytes, std::size_t rank, std::size_t payload, Case& c) {
  c.shape.assign(rank, 1);
  const std::size_t most = std::clamp<std::size_t>(payload / element_bytes(c), 1, kMostFuzzElements);
  std::size_t inner = 1;
  for (std::size_t d = 1; d < rank; ++d) {
    const std::uint64_t wish = bytes.next(kDimensionBytes);
    const std::uint64_t dimension = wish == 0 ? 1 : (wish - 1) % (most / inner) + 1;
    c.shape[d] = static_cast<std::int64_t>(dimension);
    inner *= dimension;
  }
  if (c.options.granularity == Granularity::per_axis) c.options.axis %= static_cast<int>(rank);
  std::int64_t fits = 1;
  for (auto beyond = static_cast<std::int64_t>(kMostFuzzElements / inner) + 1; beyond - fits > 1;) {
    c.shape[0] = fits + (beyond - fits) / 2;
    (payload_bytes(c) <= payload ? fits : beyond) = c.shape[0];
  }
  c.shape[0] = fits;
}

Case decode_direct(std::span<const std::uint8_t> data, const DrawSpace& space) {
  ByteEntropy bytes(data);
  Case c;
  bytes.next(1);  // the mode
  c.op = among(space.operations, bytes.next(1));
  c.scheme = scheme_among(space.schemes, bytes.next(1));
  c.format = among(space.formats, bytes.next(1));
  c.options = decode_options(bytes, space, scheme_named(c.scheme)->symmetric);
  const std::size_t rank = 1 + bytes.next(1) % kMostFuzzDimensions;
  const std::size_t before = kHeaderBytes + (rank - 1) * kDimensionBytes;
  decode_shape(bytes, rank, data.size() > before ? data.size() - before : 0, c);

  const Format s = c.options.scale_format;
  if (takes_qparams(c.op)) c.given.resize(block_count(c.shape, c.options));
  for (QParams& q : c.given) {
    q.scale = to_scale(bytes.next(static_cast<int>(byte_width(s))), s);
    q.zero_point = to_code(bytes.next(1), c.options);
  }
  const std::size_t n = element_count(c.shape);
  if (c.op == Operation::dequantize) {
    c.codes.resize(n);
    for (std::int32_t& code : c.codes) code = to_code(bytes.next(1), c.options);
  } else {
    c.x.resize(n);
    for (Bits& x : c.x) x = bytes.next(static_cast<int>(byte_width(c.format)));
  }
  return c;
}

class Writer {
 public:
  void put(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

bool layout_holds(const Case& c) {
  return c.shape.size() <= kMostFuzzDimensions && element_count(c.shape) <= kMostFuzzElements &&
         c.options.block <= kMostBlock && c.options.axis <= kMostAxis;
}

}  // namespace

Case decode_case(std::span<const std::uint8_t> bytes, const DrawSpace& space) {
  if (bytes.empty() || bytes.front() % 2 != kDrawn) return decode_direct(bytes, space);
  ByteEntropy entropy(bytes.subspan(1));
  return draw_case(entropy, space).c;
}

std::optional<std::vector<std::uint8_t>> encode_case(const Case& c) {
  if (!layout_holds(c)) return std::nullopt;
  const Options& o = c.options;
  Writer to;
  to.put(0, 1);
  to.put(static_cast<std::uint64_t>(c.op), 1);
  to.put(scheme_index(c.scheme), 1);
  to.put(static_cast<std::uint64_t>(c.format), 1);
  to.put(static_cast<std::uint64_t>(o.bits), 1);
  to.put((o.is_signed ? kSignedFlag : 0u) | (o.narrow_range ? kNarrowFlag : 0u), 1);
  to.put(static_cast<std::uint64_t>(o.scale_format), 1);
  to.put(static_cast<std::uint64_t>(o.output_format), 1);
  to.put(static_cast<std::uint64_t>(o.granularity), 1);
  to.put(static_cast<std::uint64_t>(o.axis), 1);
  to.put(static_cast<std::uint64_t>(o.block), 4);
  to.put(c.shape.size() - 1, 1);
  for (std::size_t d = 1; d < c.shape.size(); ++d) to.put(static_cast<std::uint64_t>(c.shape[d]), kDimensionBytes);
  for (const QParams& q : c.given) {
    to.put(q.scale, byte_width(o.scale_format));
    to.put(static_cast<std::uint8_t>(q.zero_point), 1);
  }
  for (const std::int32_t code : c.codes) to.put(static_cast<std::uint8_t>(code), 1);
  for (const Bits x : c.x) to.put(x, byte_width(c.format));
  return to.take();
}

}  // namespace assay
