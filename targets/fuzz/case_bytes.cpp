#include "targets/fuzz/case_bytes.h"

#include <algorithm>

#include "oracle/oracle.h"
#include "targets/target.h"

namespace assay {
namespace {

constexpr std::uint8_t kDrawn = 1;
constexpr std::size_t kHeaderBytes = 20, kDimensionBytes = 2;
constexpr std::size_t kRescaleBytes = 27;
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

std::int32_t to_code(std::uint64_t bits, const Options& options) {
  if (options.code_format) {
    const Format f = *options.code_format;
    const Bits pattern = bits & ((Bits{1} << info(f).width) - 1);
    return static_cast<std::int32_t>(is_finite(f, pattern) ? pattern : pattern & ~(Bits{1} << (info(f).width - 2)));
  }
  const CodeRange range = code_range(options);
  const int code = code_bytes(options) == 2 ? static_cast<std::int16_t>(bits)
                   : options.is_signed      ? static_cast<std::int8_t>(bits)
                                            : static_cast<std::uint8_t>(bits);
  if (code >= range.qmin && code <= range.qmax) return code;
  return range.qmin + static_cast<int>(bits) % (range.qmax - range.qmin + 1);
}

Bits to_scale(Bits pattern, Format format) {
  Bits bits = pattern & ~sign_bit(format);
  if (!is_finite(format, bits)) bits &= ~(Bits{1} << (info(format).width - 2));
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
    case Granularity::per_tile: {
      const bool tiles = options.granularity == Granularity::per_tile && shape.size() > 1;
      const std::int64_t rows = tiles ? shape[shape.size() - 2] : 1, height = tiles ? options.block_rows : 1;
      const std::size_t matrices = element_count(shape) / static_cast<std::size_t>(rows * shape.back());
      return matrices * static_cast<std::size_t>((rows + height - 1) / height) *
             static_cast<std::size_t>((shape.back() + options.block - 1) / options.block);
    }
  }
  return 1;
}

std::size_t element_bytes(const Case& c) {
  if (c.op == Operation::requantize) return sizeof(std::int32_t);
  return c.op == Operation::dequantize ? 1 : byte_width(c.format);
}

bool has_tensor_scale(const Case& c) { return takes_qparams(c.op) && scheme_named(c.scheme)->two_levels; }

std::size_t payload_bytes(const Case& c) {
  const std::size_t blocks = block_count(c.shape, c.options);
  std::size_t given = takes_qparams(c.op) ? blocks * (byte_width(c.options.scale_format) + 1) : 0;
  if (has_tensor_scale(c)) given += byte_width(Format::f32);
  if (c.op == Operation::requantize) given += blocks * kRescaleBytes;
  return given + element_count(c.shape) * element_bytes(c);
}

// Byte 0 stands for integer codes, so that formats keep their numbers in every space.
std::optional<Format> code_format_of(std::uint64_t byte, const DrawSpace& space, const SchemeInfo& scheme) {
  if (scheme.codes != CodeKind::floating) return std::nullopt;
  return scheme.two_levels ? scheme.defaults.code_format : among(space.code_formats, byte);
}

Options decode_options(ByteEntropy& bytes, const DrawSpace& space, const SchemeInfo& scheme) {
  Options o = scheme.defaults;
  const bool integers = scheme.codes == CodeKind::integer, accumulators = scheme.codes == CodeKind::requantized;
  const std::uint64_t bits = bytes.next(1), flags = bytes.next(1);
  if (integers) o.bits = among(space.bits, bits);
  if (accumulators) o.bits = bits % 2 == 0 ? 16 : 8;  // 16 and 8 name themselves below
  if (accumulators && (bits == 8 || bits == 16)) o.bits = static_cast<int>(bits);
  if (integers || accumulators) o.is_signed = scheme.symmetric || o.bits == 16 || (flags & kSignedFlag) != 0;
  o.narrow_range = integers && o.is_signed && (flags & kNarrowFlag) != 0;
  o.code_format = code_format_of(bytes.next(1), space, scheme);
  const std::uint64_t scale_format = bytes.next(1);
  if (!accumulators && scheme.defaults.scale_format == Format::f32)
    o.scale_format = among(space.scale_formats, scale_format);
  o.scale_rounding = static_cast<ScaleRounding>(bytes.next(1) % 4);
  const std::uint64_t output_format = bytes.next(1), packing = bytes.next(1) % 3;
  if (!accumulators) o.output_format = among(space.output_formats, output_format);
  if (!accumulators) o.packing = static_cast<Packing>(packing);
  const std::uint64_t granularity = bytes.next(1);
  o.granularity = accumulators ? static_cast<Granularity>(granularity % 2) : among(space.granularities, granularity);
  o.axis = static_cast<int>(bytes.next(1)) % (kMostAxis + 1);
  const auto block = static_cast<std::int64_t>(bytes.next(4)), rows = static_cast<std::int64_t>(bytes.next(2));
  o.block = block == 0 ? 1 : block <= kMostBlock ? block : 1 + block % 64;
  o.block_rows = std::max<std::int64_t>(rows, 1);
  return o;
}

Rescale decode_rescale(ByteEntropy& bytes, const Case& c) {
  Rescale r;
  r.bias = static_cast<std::int32_t>(bytes.next(4));
  r.zero_point = to_code(bytes.next(2), c.options);
  const std::uint64_t multiplier = bytes.next(8), divisor = bytes.next(8), shift = bytes.next(1), scale = bytes.next(4);
  if (c.scheme == "fixed_point.float_multiplier") {
    r.scale = to_scale(scale, Format::f32);
  } else if (c.scheme == "fixed_point.exact") {
    r.multiplier = static_cast<std::int64_t>(multiplier >> 1);
    r.divisor = std::max<std::int64_t>(1, static_cast<std::int64_t>(divisor >> 1));
  } else {
    r.multiplier = static_cast<std::int64_t>(multiplier & INT32_MAX);
    r.shift = std::clamp<std::int32_t>(static_cast<std::int8_t>(shift), -31, 30);
  }
  return r;
}

std::vector<Operation> operations_for(const DrawSpace& space, const SchemeInfo& scheme) {
  std::vector<Operation> suitable;
  for (const Operation op : space.operations) {
    if ((op == Operation::requantize) == (scheme.codes == CodeKind::requantized)) suitable.push_back(op);
  }
  return suitable;
}

// Those that some operation of the space is for.
std::vector<std::string> usable_schemes(const DrawSpace& space) {
  std::vector<std::string> usable;
  for (const std::string& name : space.schemes) {
    if (!operations_for(space, *scheme_named(name)).empty()) usable.push_back(name);
  }
  return usable;
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
  const std::uint64_t op = bytes.next(1);
  c.scheme = scheme_among(usable_schemes(space), bytes.next(1));
  c.op = among(operations_for(space, *scheme_named(c.scheme)), op);
  c.format = among(space.formats, bytes.next(1));
  c.options = decode_options(bytes, space, *scheme_named(c.scheme));
  const std::size_t rank = 1 + bytes.next(1) % kMostFuzzDimensions;
  const std::size_t before = kHeaderBytes + (rank - 1) * kDimensionBytes;
  decode_shape(bytes, rank, data.size() > before ? data.size() - before : 0, c);

  const Format s = c.options.scale_format;
  if (takes_qparams(c.op)) c.given.resize(block_count(c.shape, c.options));
  const Bits tensor_scale = has_tensor_scale(c) ? to_scale(bytes.next(4), Format::f32) : 0;
  for (QParams& q : c.given) {
    q.scale = to_scale(bytes.next(static_cast<int>(byte_width(s))), s);
    const std::int32_t zero_point = to_code(bytes.next(1), c.options);
    q.zero_point = c.options.code_format ? 0 : zero_point;
    q.tensor_scale = tensor_scale;
  }
  const std::size_t n = element_count(c.shape);
  if (c.op == Operation::requantize) {
    for (std::size_t b = block_count(c.shape, c.options); b > 0; --b) c.rescales.push_back(decode_rescale(bytes, c));
    c.accumulators.resize(n);
    for (std::int32_t& a : c.accumulators) a = static_cast<std::int32_t>(bytes.next(4));
  } else if (c.op == Operation::dequantize) {
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
         c.options.block <= kMostBlock && c.options.block_rows <= 0xffff && c.options.axis <= kMostAxis;
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
  to.put(o.code_format ? static_cast<std::uint64_t>(*o.code_format) : 0, 1);
  to.put(static_cast<std::uint64_t>(o.scale_format), 1);
  to.put(static_cast<std::uint64_t>(o.scale_rounding), 1);
  to.put(static_cast<std::uint64_t>(o.output_format), 1);
  to.put(static_cast<std::uint64_t>(o.packing), 1);
  to.put(static_cast<std::uint64_t>(o.granularity), 1);
  to.put(static_cast<std::uint64_t>(o.axis), 1);
  to.put(static_cast<std::uint64_t>(o.block), 4);
  to.put(static_cast<std::uint64_t>(o.block_rows), 2);
  to.put(c.shape.size() - 1, 1);
  for (std::size_t d = 1; d < c.shape.size(); ++d) to.put(static_cast<std::uint64_t>(c.shape[d]), kDimensionBytes);
  if (has_tensor_scale(c)) to.put(c.given.front().tensor_scale, byte_width(Format::f32));
  for (const QParams& q : c.given) {
    to.put(q.scale, byte_width(o.scale_format));
    to.put(static_cast<std::uint8_t>(q.zero_point), 1);
  }
  for (const Rescale& r : c.rescales) {
    to.put(static_cast<std::uint32_t>(r.bias), 4);
    to.put(static_cast<std::uint16_t>(r.zero_point), 2);
    const bool exact = c.scheme == "fixed_point.exact";
    to.put(static_cast<std::uint64_t>(r.multiplier) << exact, 8);
    to.put(static_cast<std::uint64_t>(r.divisor) << 1, 8);
    to.put(static_cast<std::uint8_t>(r.shift), 1);
    to.put(r.scale, 4);
  }
  for (const std::int32_t a : c.accumulators) to.put(static_cast<std::uint32_t>(a), 4);
  for (const std::int32_t code : c.codes) to.put(static_cast<std::uint8_t>(code), 1);
  for (const Bits x : c.x) to.put(x, byte_width(c.format));
  return to.take();
}

}  // namespace assay
