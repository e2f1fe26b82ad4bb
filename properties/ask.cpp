#include "properties/ask.h"

#include <algorithm>
#include <cstring>

#include "oracle/oracle.h"
#include "properties/float_environment.h"

namespace assay {
namespace {

constexpr std::size_t kAlignment = 64;

void store(std::byte* to, Format format, const std::vector<Bits>& bits) {
  for (std::size_t i = 0; i < bits.size(); ++i) store_pattern(to, format, i, bits[i]);
}

// One question's buffers, all taken from the same Memory.
class Desk {
 public:
  Desk(const Case& c, Memory& memory) : case_(c), memory_(memory), blocks_(cut(c.shape, c.options).size()) {}

  std::byte* input() {
    std::byte* x = memory_.allocate(case_.x.size() * byte_width(case_.format), byte_width(case_.format));
    store(x, case_.format, case_.x);
    memory_.seal(x);
    return x;
  }

  void take_qparams_room() {
    scales_ = memory_.allocate(blocks_ * byte_width(scale_format()), byte_width(scale_format()));
    zero_points_ = reinterpret_cast<std::int32_t*>(memory_.allocate(blocks_ * sizeof(std::int32_t), 4));
  }

  void put_qparams(const std::vector<QParams>& qparams) {
    take_qparams_room();
    std::vector<Bits> scales;
    for (const QParams& q : qparams) scales.push_back(q.scale);
    store(scales_, scale_format(), scales);
    for (std::size_t b = 0; b < blocks_; ++b) zero_points_[b] = qparams[b].zero_point;
    seal_qparams();
  }

  void seal_qparams() {
    memory_.seal(scales_);
    memory_.seal(reinterpret_cast<std::byte*>(zero_points_));
  }

  std::byte* code_room(std::size_t n) {
    const std::size_t width = code_bytes(case_.options);
    return codes_ = memory_.allocate(n * width, width);
  }

  void put_codes(const std::vector<std::int32_t>& codes) {
    code_room(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) store_code(codes_, case_.options, i, codes[i]);
    memory_.seal(codes_);
  }

  template <typename Plain>
  const Plain* put(const std::vector<Plain>& values) {
    std::byte* const to = memory_.allocate(values.size() * sizeof(Plain), alignof(Plain));
    std::memcpy(to, values.data(), values.size() * sizeof(Plain));
    memory_.seal(to);
    return reinterpret_cast<const Plain*>(to);
  }

  std::byte* room(std::size_t n) { return memory_.allocate(n, 1); }

  std::byte* value_room(std::size_t n) {
    const std::size_t width = byte_width(case_.options.output_format);
    return values_ = memory_.allocate(n * width, width);
  }

  std::vector<QParams> qparams() const {
    std::vector<QParams> result(blocks_);
    for (std::size_t b = 0; b < blocks_; ++b)
      result[b] = {load_pattern(scales_, scale_format(), b), zero_points_[b], tensor_scale_};
    return result;
  }

  void keep_tensor_scale(Bits tensor_scale) { tensor_scale_ = tensor_scale; }

  std::vector<std::int32_t> codes(std::size_t n) const {
    std::vector<std::int32_t> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = load_code(codes_, case_.options, i);
    return result;
  }

  std::vector<Bits> values(std::size_t n) const {
    std::vector<Bits> result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = load_pattern(values_, case_.options.output_format, i);
    return result;
  }

  std::byte* scales() const { return scales_; }
  std::int32_t* zero_points() const { return zero_points_; }
  std::byte* raw_codes() const { return codes_; }

 private:
  Format scale_format() const { return case_.options.scale_format; }

  const Case& case_;
  Memory& memory_;
  std::size_t blocks_;
  std::byte* scales_ = nullptr;
  std::int32_t* zero_points_ = nullptr;
  std::byte* codes_ = nullptr;
  std::byte* values_ = nullptr;
  Bits tensor_scale_ = 0;
};

bool wants_codes(const Case& c) { return c.op == Operation::quantize || c.op == Operation::round_trip; }
bool wants_values(const Case& c) { return c.op == Operation::dequantize || c.op == Operation::round_trip; }

bool offered(const Target& target, const Case& c, Path path) {
  if (std::find(target.schemes.begin(), target.schemes.end(), c.scheme) == target.schemes.end()) return false;
  if (c.op == Operation::requantize) return path == Path::separate && target.requantize;
  if (chooses_qparams(c.op) && scheme_named(c.scheme)->two_levels && !target.choose_tensor_scale) return false;
  if (path == Path::fused) return !takes_qparams(c.op) && target.quantize_dynamic;
  return (takes_qparams(c.op) || target.choose_qparams) && (!wants_codes(c) || target.quantize) &&
         (c.op != Operation::dequantize || target.dequantize);
}

// Into reply.packed and back into reply.unpacked.
Status pack_and_unpack(const Target& target, const Request& request, Desk& desk, std::size_t n, Reply& reply) {
  const std::size_t size = packed_bytes(request.options, n);
  std::byte* const packed = desk.room(size);
  const Status status = target.pack(request, desk.raw_codes(), packed);
  if (status != Status::ok) return status;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(packed);
  reply.packed.assign(bytes, bytes + size);
  std::byte* const codes = desk.room(n);
  const Status back = target.unpack(request, packed, codes);
  if (back != Status::ok) return back;
  for (std::size_t i = 0; i < n; ++i) reply.unpacked.push_back(load_code(codes, request.options, i));
  return back;
}

Case flat_case(const Case& like, Operation op, std::size_t n) {
  Case c;
  c.op = op;
  c.scheme = like.scheme;
  c.options = like.options;
  c.options.granularity = Granularity::per_tensor;
  c.format = like.format;
  c.shape = {static_cast<std::int64_t>(n)};
  return c;
}

}  // namespace

std::byte* PlainMemory::allocate(std::size_t size, std::size_t alignment) {
  std::vector<std::byte>& buffer = buffers_.emplace_back(size + (shift_ + 1) * alignment + kAlignment, fill_);
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::size_t to_aligned = (kAlignment - address % kAlignment) % kAlignment;
  return buffer.data() + to_aligned + shift_ * alignment;
}

Path usual_path(const Target& target, const Case& c) {
  return offered(target, c, Path::separate) || !offered(target, c, Path::fused) ? Path::separate : Path::fused;
}

Reply ask(const Target& target, const Case& c, Path path, Memory& memory) {
  const KeepFloatEnvironment keep;  // what a target leaves behind must not reach the judge
  return ask_in_this_environment(target, c, path, memory);
}

Reply ask_in_this_environment(const Target& target, const Case& c, Path path, Memory& memory) {
  Reply reply;
  if (!offered(target, c, path)) {
    reply.status = Status::unsupported;
    return reply;
  }
  Request request{c.scheme, c.options, c.format, c.shape, 0};
  Desk desk(c, memory);
  const std::size_t n = element_count(c.shape);
  if (c.op == Operation::requantize) {
    const std::int32_t* accumulators = desk.put(c.accumulators);
    const Rescale* rescales = desk.put(c.rescales);
    reply.status = target.requantize(request, accumulators, rescales, desk.code_room(n));
    if (reply.status == Status::ok) reply.codes = desk.codes(n);
    return reply;
  }
  std::byte* x = c.op == Operation::dequantize ? nullptr : desk.input();
  if (takes_qparams(c.op)) {
    desk.put_qparams(c.given);
    request.tensor_scale = c.given.front().tensor_scale;
    desk.keep_tensor_scale(request.tensor_scale);
  } else {
    if (scheme_named(c.scheme)->two_levels) {
      reply.status = target.choose_tensor_scale(request, x, &request.tensor_scale);
      if (reply.status != Status::ok) return reply;
      desk.keep_tensor_scale(request.tensor_scale);
    }
    desk.take_qparams_room();
    reply.status =
        path == Path::fused
            ? target.quantize_dynamic(request, x, desk.scales(), desk.zero_points(), desk.code_room(n), &reply.counts)
            : target.choose_qparams(request, x, desk.scales(), desk.zero_points(), &reply.counts);
    if (reply.status != Status::ok) return reply;
  }
  reply.qparams = desk.qparams();
  if (path == Path::fused) {
    if (wants_codes(c)) reply.codes = desk.codes(n);
  } else if (wants_codes(c)) {
    reply.status = target.quantize(request, x, desk.scales(), desk.zero_points(), desk.code_room(n), &reply.counts);
    if (reply.status != Status::ok) return reply;
    reply.codes = desk.codes(n);
  }
  if (c.op == Operation::dequantize) desk.put_codes(c.codes);
  if (c.options.packing != Packing::none && desk.raw_codes() != nullptr && target.pack && target.unpack) {
    reply.status = pack_and_unpack(target, request, desk, n, reply);
    if (reply.status != Status::ok) return reply;
  }
  if (!wants_values(c) || !target.dequantize) return reply;
  std::byte* values = desk.value_room(n);
  reply.status = target.dequantize(request, desk.raw_codes(), desk.scales(), desk.zero_points(), values);
  if (reply.status == Status::ok) reply.values = desk.values(n);
  return reply;
}

Reply ask(const Target& target, const Case& c, Path path) {
  PlainMemory memory;
  return ask(target, c, path, memory);
}

Case quantize_case(const Case& like, QParams q, std::vector<Bits> x) {
  Case c = flat_case(like, Operation::quantize, x.size());
  c.given = {q};
  c.x = std::move(x);
  return c;
}

Case dequantize_case(const Case& like, QParams q, std::vector<std::int32_t> codes) {
  Case c = flat_case(like, Operation::dequantize, codes.size());
  c.given = {q};
  c.codes = std::move(codes);
  return c;
}

Case with_block(const Case& like, std::vector<Bits> x) {
  Case c = flat_case(like, like.op, x.size());
  c.x = std::move(x);
  return c;
}

std::vector<Bits> block_of(const Case& c, const Block& block) {
  std::vector<Bits> x(block.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = c.x[block.at(i)];
  return x;
}

}  // namespace assay
