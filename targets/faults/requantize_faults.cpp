// Requantization of accumulators, wrong as real systems had it.
#include <algorithm>
#include <array>

#include "targets/faults/parts.h"

namespace assay {
namespace {

// The right kernel on other accumulators or other parameters.
struct Question {
  std::string_view scheme;
  std::vector<std::int32_t> accumulators;
  std::vector<Rescale> rescales;
};
using Change = void (*)(const Request&, Question&);

template <Change ChangeIt>
Target question_fault() {
  Target t = base();
  t.requantize = [right = t.requantize](const Request& r, const std::int32_t* accumulators, const Rescale* rescales,
                                        void* codes) {
    const std::size_t n = element_count(r.shape), blocks = cut(r.shape, r.options).size();
    Question q{r.scheme, {accumulators, accumulators + n}, {rescales, rescales + blocks}};
    ChangeIt(r, q);
    return right({q.scheme, r.options, r.format, r.shape, 0}, q.accumulators.data(), q.rescales.data(), codes);
  };
  return t;
}

void rounds_twice(const Request&, Question& q) {
  if (q.scheme == "fixed_point.single_rounding") q.scheme = "fixed_point.double_rounding";
}
void rounds_once(const Request&, Question& q) {
  if (q.scheme == "fixed_point.double_rounding") q.scheme = "fixed_point.single_rounding";
}
// An f32 multiplier in place of the rational one.
void multiplies_in_f32(const Request&, Question& q) {
  if (q.scheme != "fixed_point.exact") return;
  for (Rescale& r : q.rescales) {
    const auto multiplier = static_cast<float>(static_cast<double>(r.multiplier) / static_cast<double>(r.divisor));
    std::uint32_t bits;
    std::memcpy(&bits, &multiplier, sizeof bits);
    if (bits == 0 || bits >= 0x7f800000u) return;
    r.scale = bits;
  }
  q.scheme = "fixed_point.float_multiplier";
}
void sum_wraps(const Request& r, Question& q) {
  const std::vector<Block> blocks = cut(r.shape, r.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < blocks[b].size(); ++i) {
      std::int32_t& a = q.accumulators[blocks[b].at(i)];
      a = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(q.rescales[b].bias));
    }
    q.rescales[b].bias = 0;
  }
}
// Products of unsigned and signed bytes, added in pairs that saturate at 16 bits.
void pairs_saturate(const Request&, Question& q) {
  for (std::int32_t& a : q.accumulators) {
    if (a > 32767 && a <= 65535) a = 32767;
    if (a < -32768 && a >= -65536) a = -32768;
  }
}
void first_channel_for_all(const Request&, Question& q) {
  std::fill(q.rescales.begin(), q.rescales.end(), q.rescales.front());
}
void forgets_bias(const Request&, Question& q) {
  for (Rescale& r : q.rescales) r.bias = 0;
}

// What is written instead of the right code.
using Wrap = std::int32_t (*)(std::int64_t wide, CodeRange codes);

// The product before its clamp, by the exact scheme's own numbers where they fit a double.
template <Wrap WrapIt>
Target wrapping_fault() {
  Target t = base();
  t.requantize = [right = t.requantize](const Request& r, const std::int32_t* accumulators, const Rescale* rescales,
                                        void* codes) {
    const Status status = right(r, accumulators, rescales, codes);
    if (status != Status::ok) return status;
    const CodeRange range = code_range(r.options);
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const Rescale& q = rescales[b];
      if (q.multiplier != 1 || q.divisor != 1 || r.scheme != "fixed_point.exact") continue;
      for (std::size_t i = 0; i < blocks[b].size(); ++i) {
        const std::size_t where = blocks[b].at(i);
        store_code(codes, r.options, where, WrapIt(std::int64_t{accumulators[where]} + q.bias + q.zero_point, range));
      }
    }
    return status;
  };
  return t;
}
std::int32_t narrows_by_cast(std::int64_t wide, CodeRange codes) {
  if (codes.qmin == 0) return static_cast<std::uint8_t>(wide);
  return codes.qmax == 127 ? static_cast<std::int8_t>(wide) : static_cast<std::int16_t>(wide);
}

// A sequence of instructions that is right for multipliers below 1 only, and refuses the others.
Target refuses_large_multipliers() {
  Target t = base();
  t.requantize = [right = t.requantize](const Request& r, const std::int32_t* accumulators, const Rescale* rescales,
                                        void* codes) {
    for (std::size_t b = 0; b < cut(r.shape, r.options).size(); ++b) {
      if (rescales[b].shift > 0 || rescales[b].scale >= 0x3f800000) return Status::failed;
    }
    return right(r, accumulators, rescales, codes);
  };
  return t;
}

constexpr std::array kFaults = {
    Fault{"requantizes_with_two_roundings", "ruy #227, LiteRT #7441", "requantize_exact", question_fault<rounds_twice>},
    Fault{"requantizes_with_one_rounding", "LiteRT #7441: kernels migrated separately", "requantize_exact",
          question_fault<rounds_once>},
    Fault{"requantizes_in_f32", "TensorFlow #103028", "requantize_exact", question_fault<multiplies_in_f32>},
    Fault{"bias_sum_wraps", "CMSIS-NN #220: a sum that needs 33 bits", "requantize_exact", question_fault<sum_wraps>},
    Fault{"pairs_saturate", "public bugs: vpmaddubsw adds u8*s8 pairs in 16 bits", "requantize_exact",
          question_fault<pairs_saturate>},
    Fault{"first_multiplier_for_all", "tract #2849: axis ignored", "requantize_exact",
          question_fault<first_channel_for_all>},
    Fault{"forgets_bias", "public bugs: bias left out", "requantize_exact", question_fault<forgets_bias>},
    Fault{"requantized_code_wraps", "ONNX #7835: astype for the final narrowing", "requantize_exact",
          wrapping_fault<narrows_by_cast>},
    Fault{"refuses_large_multipliers", "PyTorch #33466: multipliers of 1 and above", "requantize_exact",
          refuses_large_multipliers},
};

}  // namespace

std::span<const Fault> requantize_faults() { return kFaults; }

}  // namespace assay
