#include "properties/oracle_target.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

std::vector<Bits> read_patterns(const void* from, Format format, std::size_t n) {
  std::vector<Bits> patterns(n);
  for (std::size_t i = 0; i < n; ++i) patterns[i] = load_pattern(from, format, i);
  return patterns;
}

void write_patterns(void* to, Format format, const std::vector<Bits>& patterns) {
  for (std::size_t i = 0; i < patterns.size(); ++i) store_pattern(to, format, i, patterns[i]);
}

std::vector<std::int32_t> read_codes(const void* from, const Options& options, std::size_t n) {
  std::vector<std::int32_t> codes(n);
  for (std::size_t i = 0; i < n; ++i) codes[i] = load_code(from, options, i);
  return codes;
}

void write_codes(void* to, const Options& options, const std::vector<std::int32_t>& codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) store_code(to, options, i, codes[i]);
}

std::vector<QParams> read_qparams(const Request& r, const void* scales, const std::int32_t* zero_points) {
  const std::size_t blocks = cut(r.shape, r.options).size();
  const std::vector<Bits> patterns = read_patterns(scales, r.options.scale_format, blocks);
  std::vector<QParams> qparams(blocks);
  for (std::size_t b = 0; b < blocks; ++b) qparams[b] = {patterns[b], zero_points[b], r.tensor_scale};
  return qparams;
}

void write_qparams(const Request& r, void* scales, std::int32_t* zero_points, const std::vector<QParams>& qparams) {
  std::vector<Bits> patterns;
  for (const QParams& q : qparams) patterns.push_back(q.scale);
  write_patterns(scales, r.options.scale_format, patterns);
  for (std::size_t b = 0; b < qparams.size(); ++b) zero_points[b] = qparams[b].zero_point;
}

Case question(const Request& r, Operation op, const void* x) {
  Case c;
  c.op = op;
  c.scheme = r.scheme;
  c.options = r.options;
  c.format = r.format;
  c.shape = r.shape;
  if (x != nullptr) c.x = read_patterns(x, r.format, element_count(r.shape));
  return c;
}

// A case of the scheme that the oracle can answer; what a target was handed may be anything.
bool answerable(const Case& c) {
  const SchemeInfo* scheme = scheme_named(c.scheme);
  return scheme != nullptr && check_case(c).empty() && check_scheme_case(*scheme, c).empty();
}

void report(const Answer& answer, Counts* counts) {
  if (counts != nullptr) *counts = answer.counts;
}

}  // namespace

Target oracle_target(const Oracle& oracle, std::string_view scheme) {
  Target t;
  t.name = scheme.empty() ? fmt::format("oracle:{}", oracle.name) : fmt::format("scheme:{}", scheme);
  t.version = std::string("1");
  t.isa = std::string("-");
  for (const SchemeInfo& row : schemes()) {
    if (scheme.empty() || row.name == scheme) t.schemes.emplace_back(row.name);
  }
  t.choose_qparams = [&oracle](const Request& r, const void* x, void* scales, std::int32_t* zero_points,
                               Counts* counts) {
    const Case c = question(r, Operation::choose_qparams, x);
    if (!answerable(c)) return Status::failed;
    // Under the scale of the tensor as it was told, which need not be the legal one.
    Answer answer;
    std::vector<Bits> inputs;
    for (const Block& block : cut(c.shape, c.options)) {
      inputs.clear();
      for (std::size_t i = 0; i < block.size(); ++i) inputs.push_back(c.x[block.at(i)]);
      const QParams q = oracle.choose_qparams(c.scheme, c.options, c.format, inputs, r.tensor_scale);
      for (const Bits bits : inputs) count_element(answer.counts, oracle, c.options, c.format, q, bits);
      answer.qparams.push_back(q);
    }
    write_qparams(r, scales, zero_points, answer.qparams);
    report(answer, counts);
    return Status::ok;
  };
  t.choose_tensor_scale = [&oracle](const Request& r, const void* x, Bits* tensor_scale) {
    const Case c = question(r, Operation::choose_qparams, x);
    if (!answerable(c)) return Status::failed;
    *tensor_scale = oracle.choose_tensor_scale(c.scheme, c.format, c.x);
    return Status::ok;
  };
  t.pack = [](const Request& r, const void* codes, void* packed) {
    const std::vector<std::uint8_t> bytes = pack(r.options, read_codes(codes, r.options, element_count(r.shape)));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(packed));
    return Status::ok;
  };
  t.unpack = [](const Request& r, const void* packed, void* codes) {
    const std::size_t n = element_count(r.shape);
    const std::span bytes(static_cast<const std::uint8_t*>(packed), packed_bytes(r.options, n));
    write_codes(codes, r.options, unpack(r.options, bytes, n));
    return Status::ok;
  };
  t.requantize = [&oracle](const Request& r, const std::int32_t* accumulators, const Rescale* rescales, void* codes) {
    Case c = question(r, Operation::requantize, nullptr);
    c.accumulators.assign(accumulators, accumulators + element_count(r.shape));
    c.rescales.assign(rescales, rescales + cut(r.shape, r.options).size());
    if (!answerable(c)) return Status::failed;
    write_codes(codes, r.options, legal_answer(oracle, c).codes);
    return Status::ok;
  };
  t.quantize = [&oracle](const Request& r, const void* x, const void* scales, const std::int32_t* zero_points,
                         void* codes, Counts* counts) {
    Case c = question(r, Operation::quantize, x);
    c.given = read_qparams(r, scales, zero_points);
    if (!answerable(c)) return Status::failed;
    const Answer answer = legal_answer(oracle, c);
    write_codes(codes, r.options, answer.codes);
    report(answer, counts);
    return Status::ok;
  };
  t.dequantize = [&oracle](const Request& r, const void* codes, const void* scales, const std::int32_t* zero_points,
                           void* values) {
    Case c = question(r, Operation::dequantize, nullptr);
    c.given = read_qparams(r, scales, zero_points);
    c.codes = read_codes(codes, r.options, element_count(r.shape));
    if (!answerable(c)) return Status::failed;
    write_patterns(values, r.options.output_format, legal_answer(oracle, c).values);
    return Status::ok;
  };
  return t;
}

Target recorded_target(const CaseFile& file) {
  Target t = oracle_target(exact_oracle());
  t.name = "recorded";
  t.counts_special = false;
  if (!file.faulty) return t;
  const auto asked = [c = file.c](const Request& r) {
    return r.scheme == c.scheme && r.options == c.options && r.shape == c.shape;
  };
  const auto same_input = [c = file.c, asked](const Request& r, const void* x) {
    return asked(r) && r.format == c.format && read_patterns(x, r.format, c.x.size()) == c.x;
  };
  const FaultyAnswer& faulty = *file.faulty;
  t.choose_qparams = [legal = t.choose_qparams, same_input, faulty](const Request& r, const void* x, void* scales,
                                                                    std::int32_t* zero_points, Counts* counts) {
    const Status status = legal(r, x, scales, zero_points, counts);
    if (status != Status::ok || !same_input(r, x)) return status;
    write_patterns(scales, r.options.scale_format, faulty.scales);
    std::copy(faulty.zero_points.begin(), faulty.zero_points.end(), zero_points);
    return status;
  };
  t.quantize = [legal = t.quantize, same_input, faulty](const Request& r, const void* x, const void* scales,
                                                        const std::int32_t* zero_points, void* codes, Counts* counts) {
    if (!same_input(r, x)) return legal(r, x, scales, zero_points, codes, counts);
    // Under a recorded scale that is no scale there are no other codes than the recorded ones.
    if (legal(r, x, scales, zero_points, codes, counts) != Status::ok)
      write_codes(codes, r.options, std::vector<std::int32_t>(element_count(r.shape)));
    write_codes(codes, r.options, faulty.codes);
    return Status::ok;
  };
  t.dequantize = [legal = t.dequantize, asked, faulty, given = file.c.codes](
                     const Request& r, const void* codes, const void* scales, const std::int32_t* zero_points,
                     void* values) {
    const Status status = legal(r, codes, scales, zero_points, values);
    const std::vector<std::int32_t>& expected = given.empty() ? faulty.codes : given;
    const bool matches = asked(r) && (expected.empty() || read_codes(codes, r.options, expected.size()) == expected);
    if (!matches || faulty.values.empty()) {
      if (status != Status::ok)
        write_patterns(values, r.options.output_format, std::vector<Bits>(element_count(r.shape)));
      return Status::ok;
    }
    write_patterns(values, r.options.output_format, faulty.values);
    return Status::ok;
  };
  t.unpack = [legal = t.unpack, asked, faulty](const Request& r, const void* packed, void* codes) {
    const Status status = legal(r, packed, codes);
    if (asked(r)) write_codes(codes, r.options, faulty.codes);
    return status;
  };
  t.requantize = [legal = t.requantize, asked, faulty](const Request& r, const std::int32_t* accumulators,
                                                       const Rescale* rescales, void* codes) {
    const Status status = legal(r, accumulators, rescales, codes);
    if (asked(r)) write_codes(codes, r.options, faulty.codes);
    return status;
  };
  return t;
}

}  // namespace assay
