// Judges the quantizer against an independent reference: codes by exact comparisons in double, qparams by searching all
// scales of the format with a wide integer. Every test runs on every instruction set of the machine.
#include "quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define HAVE_GUARD_PAGES 1
#else
#define HAVE_GUARD_PAGES 0
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace quantizer {

bool operator==(const Counts& a, const Counts& b) {
  return a.nan == b.nan && a.inf == b.inf && a.saturated == b.saturated;
}
void PrintTo(const Counts& c, std::ostream* os) {
  *os << c.nan << " nan " << c.inf << " inf " << c.saturated << " sat";
}
void PrintTo(Status status, std::ostream* os) { *os << message(status); }

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMin = 0x1p-149f;

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t to_bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// ---------------------------------------------------------------------------------------------------- reference

struct Codes {
  int qmin, qmax;
};
Codes codes_of(const Spec& spec) {
  if (!spec.is_signed) return {0, (1 << spec.bits) - 1};
  const int half = 1 << (spec.bits - 1);
  return {spec.narrow_range ? 1 - half : -half, half - 1};
}

/// Products of a float and a half-integer below 2^20 are exact in double, and so are their comparisons.
int reference_code(float x, float scale, int zero_point, Codes codes, Counts& counts) {
  if (std::isnan(x)) {
    ++counts.nan;
    return zero_point;
  }
  if (std::isinf(x)) {
    ++counts.inf;
    return x > 0 ? codes.qmax : codes.qmin;
  }
  const double value = x, s = scale;
  if (value > (codes.qmax - zero_point + 0.5) * s || value < (codes.qmin - zero_point - 0.5) * s) ++counts.saturated;
  const double ratio = value / s;
  if (ratio > 1000) return codes.qmax;
  if (ratio < -1000) return codes.qmin;
  int k = static_cast<int>(ratio);
  while (value > (k + 0.5) * s || (value == (k + 0.5) * s && k % 2 != 0)) ++k;
  while (value < (k - 0.5) * s || (value == (k - 0.5) * s && k % 2 != 0)) --k;
  return std::clamp(k + zero_point, codes.qmin, codes.qmax);
}

float reference_value(int code, float scale, int zero_point) {
  const double exact = (static_cast<double>(code) - zero_point) * static_cast<double>(scale) + 0.0;
  return static_cast<float>(std::clamp(exact, -static_cast<double>(FLT_MAX), static_cast<double>(FLT_MAX)));
}

/// A magnitude in units of 2^-149, up to 2^320 of them.
struct Wide {
  std::array<std::uint64_t, 5> words = {};

  static Wide of(float x) {
    const std::uint32_t bits = to_bits(x) & 0x7FFFFFFF;
    const std::uint32_t field = bits >> 23;
    const std::uint64_t mantissa = field == 0 ? bits : (bits & 0x7FFFFF) | 0x800000;
    const unsigned shift = field == 0 ? 0 : field - 1;
    Wide result;
    result.words[shift / 64] = mantissa << (shift % 64);
    if (shift % 64 != 0) result.words[shift / 64 + 1] = mantissa >> (64 - shift % 64);
    return result;
  }
  Wide operator+(const Wide& other) const {
    Wide result;
    unsigned carry = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t partial = words[i] + carry;
      result.words[i] = partial + other.words[i];
      carry = (partial < words[i] || result.words[i] < partial) ? 1 : 0;
    }
    return result;
  }
  Wide operator*(unsigned factor) const {
    Wide result;
    for (Wide power = *this; factor != 0; factor >>= 1, power = power + power) {
      if (factor % 2 != 0) result = result + power;
    }
    return result;
  }
  int compare(const Wide& other) const {
    for (std::size_t i = words.size(); i-- > 0;) {
      if (words[i] != other.words[i]) return words[i] < other.words[i] ? -1 : 1;
    }
    return 0;
  }
};

std::uint32_t infinity_of(FloatFormat format) {
  return format == FloatFormat::f32 ? 0x7F800000 : format == FloatFormat::f16 ? 0x7C00 : 0x7F80;
}
float scale_value(FloatFormat format, std::uint32_t pattern) {
  if (format == FloatFormat::f32) return from_bits(pattern);
  if (format == FloatFormat::bf16) return from_bits(pattern << 16);
  const int field = static_cast<int>(pattern >> 10), fraction = static_cast<int>(pattern & 0x3FF);
  return field == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                    : std::ldexp(static_cast<float>(1024 + fraction), field - 25);
}

struct Chosen {
  std::uint32_t scale;
  int zero_point;
};

int reference_zero_point(const Spec& spec, Codes codes, float lo, float scale) {
  if (spec.scheme == Scheme::symmetric) return 0;
  const Wide low = Wide::of(lo) * 2, s = Wide::of(scale);
  for (int z = codes.qmin; z < codes.qmax; ++z) {
    const int order = low.compare(s * static_cast<unsigned>(2 * (z - codes.qmin) + 1));
    if (order < 0 || (order == 0 && z % 2 == 0)) return z;
  }
  return codes.qmax;
}

bool beyond(Codes codes, float hi, float lo, float scale, int zero_point) {
  const Wide s = Wide::of(scale);
  return (Wide::of(hi) * 2).compare(s * static_cast<unsigned>(2 * (codes.qmax - zero_point) + 1)) > 0 ||
         (Wide::of(lo) * 2).compare(s * static_cast<unsigned>(2 * (zero_point - codes.qmin) + 1)) > 0;
}

Chosen reference_qparams(const Spec& spec, float hi, float lo) {
  const Codes codes = codes_of(spec);
  const std::uint32_t largest = infinity_of(spec.scale_format) - 1;
  Wide numerator = Wide::of(hi) + Wide::of(lo);
  auto divisor = static_cast<unsigned>(codes.qmax - codes.qmin);
  if (spec.scheme == Scheme::symmetric) {
    const auto qmax = static_cast<unsigned>(codes.qmax), minus_qmin = static_cast<unsigned>(-codes.qmin);
    const bool high = (Wide::of(hi) * minus_qmin).compare(Wide::of(lo) * qmax) >= 0;
    numerator = Wide::of(high ? hi : lo);
    divisor = high ? qmax : minus_qmin;
  }
  Chosen chosen = {};
  if (numerator.compare(Wide{}) == 0) {
    chosen.scale = spec.scale_format == FloatFormat::f32   ? 0x3F800000
                   : spec.scale_format == FloatFormat::f16 ? 0x3C00
                                                           : 0x3F80;
  } else {
    // The least pattern whose upper neighbour is not nearer: 2 * numerator <= divisor * (value + next value).
    std::uint32_t low = 0, high = largest;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      const Wide sum =
          Wide::of(scale_value(spec.scale_format, middle)) + Wide::of(scale_value(spec.scale_format, middle + 1));
      const int order = (numerator * 2).compare(sum * divisor);
      if (order < 0 || (order == 0 && middle % 2 == 0))
        high = middle;
      else
        low = middle + 1;
    }
    chosen.scale = std::max(low, 1u);
  }
  float scale = scale_value(spec.scale_format, chosen.scale);
  chosen.zero_point = reference_zero_point(spec, codes, lo, scale);
  if (beyond(codes, hi, lo, scale, chosen.zero_point) && chosen.scale < largest) {
    scale = scale_value(spec.scale_format, ++chosen.scale);
    chosen.zero_point = reference_zero_point(spec, codes, lo, scale);
  }
  return chosen;
}

// ---------------------------------------------------------------------------------------------------- helpers

/// std::mt19937 with results of 32 bits also in their type.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

std::vector<Spec> all_specs() {
  std::vector<Spec> specs;
  for (int bits = 2; bits <= 8; ++bits) {
    for (FloatFormat format : {FloatFormat::f32, FloatFormat::f16, FloatFormat::bf16}) {
      specs.push_back({Scheme::symmetric, bits, true, false, format});
      specs.push_back({Scheme::symmetric, bits, true, true, format});
      specs.push_back({Scheme::asymmetric, bits, true, false, format});
      specs.push_back({Scheme::asymmetric, bits, true, true, format});
      specs.push_back({Scheme::asymmetric, bits, false, false, format});
    }
  }
  return specs;
}

std::string show(const Spec& spec) {
  return std::string(spec.scheme == Scheme::symmetric ? "symmetric" : "asymmetric") + " bits " +
         std::to_string(spec.bits) + (spec.is_signed ? " signed" : " unsigned") + (spec.narrow_range ? " narrow" : "") +
         " format " + std::to_string(static_cast<int>(spec.scale_format));
}

int code_at(const Spec& spec, const std::vector<std::uint8_t>& codes, std::size_t i) {
  return spec.is_signed ? static_cast<std::int8_t>(codes[i]) : codes[i];
}

std::uint32_t pattern_at(const Spec& spec, const std::vector<std::uint8_t>& scales, std::size_t i) {
  std::uint32_t pattern = 0;  // little-endian, as every machine these tests run on
  const std::size_t width = spec.scale_format == FloatFormat::f32 ? 4 : 2;
  std::memcpy(&pattern, scales.data() + i * width, width);
  return pattern;
}

/// Which block each element belongs to.
std::vector<std::size_t> block_of_elements(const Layout& layout) {
  std::vector<std::size_t> blocks;
  if (layout.kind == Layout::Kind::rows) {
    const std::size_t per_row = (layout.cols + layout.block - 1) / layout.block;
    for (std::size_t row = 0; row < layout.rows; ++row)
      for (std::size_t col = 0; col < layout.cols; ++col) blocks.push_back(row * per_row + col / layout.block);
  } else {
    for (std::size_t o = 0; o < layout.outer; ++o)
      for (std::size_t c = 0; c < layout.channels; ++c) blocks.insert(blocks.end(), layout.inner, c);
  }
  return blocks;
}

/// Bit patterns of all kinds: any float, then with more weight finite ones near each other.
float any_float(Random& random) {
  switch (random() % 16) {
    case 0:
      return from_bits(random());
    case 1:
      return random() % 2 != 0 ? kNan : random() % 2 != 0 ? kInf : -kInf;
    case 2:
      return random() % 2 != 0 ? 0.0f : -0.0f;
    default:
      return from_bits((random() & 0x80FFFFFF) + 0x3F000000);
  }
}

/// Everything the API says about one tensor, against the reference.
void check_tensor(const Spec& spec, const Layout& layout, const std::vector<float>& x, Isa isa) {
  SCOPED_TRACE(show(spec));
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  ASSERT_EQ(n, x.size());
  const std::vector<std::size_t> block_of = block_of_elements(layout);
  std::vector<float> hi(blocks, 0.0f), lo(blocks, 0.0f);
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    hi[block_of[i]] = std::max(hi[block_of[i]], x[i]);
    lo[block_of[i]] = std::min(lo[block_of[i]], x[i]);
  }

  const std::size_t width = spec.scale_format == FloatFormat::f32 ? 4 : 2;
  std::vector<std::uint8_t> scales(blocks * width), dynamic_scales(blocks * width);
  std::vector<std::int32_t> zero_points(blocks), dynamic_zero_points(blocks);
  std::vector<std::uint8_t> codes(n, 0xAA), dynamic_codes(n, 0x55);
  std::vector<float> values(n);
  Counts chosen_counts{9, 9, 9}, counts{9, 9, 9}, dynamic_counts{9, 9, 9}, expected;
  ASSERT_EQ(choose_qparams(spec, layout, x.data(), scales.data(), zero_points.data(), &chosen_counts, isa), Status::ok);
  ASSERT_EQ(quantize(spec, layout, x.data(), scales.data(), zero_points.data(), codes.data(), &counts, isa),
            Status::ok);
  ASSERT_EQ(dequantize(spec, layout, codes.data(), scales.data(), zero_points.data(), values.data(), isa), Status::ok);
  ASSERT_EQ(quantize_dynamic(spec, layout, x.data(), dynamic_scales.data(), dynamic_zero_points.data(),
                             dynamic_codes.data(), &dynamic_counts, isa),
            Status::ok);
  EXPECT_EQ(scales, dynamic_scales);
  EXPECT_EQ(zero_points, dynamic_zero_points);
  EXPECT_EQ(codes, dynamic_codes);

  for (std::size_t b = 0; b < blocks; ++b) {
    const Chosen chosen = reference_qparams(spec, hi[b], lo[b]);
    ASSERT_EQ(pattern_at(spec, scales, b), chosen.scale) << "block " << b << " hi " << hi[b] << " lo " << lo[b];
    ASSERT_EQ(zero_points[b], chosen.zero_point) << "block " << b << " hi " << hi[b] << " lo " << lo[b];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const float scale = scale_value(spec.scale_format, pattern_at(spec, scales, block_of[i]));
    const int zero_point = zero_points[block_of[i]];
    const int code = reference_code(x[i], scale, zero_point, codes_of(spec), expected);
    ASSERT_EQ(code_at(spec, codes, i), code) << "element " << i << " x " << x[i] << " scale " << scale;
    ASSERT_EQ(to_bits(values[i]), to_bits(reference_value(code, scale, zero_point))) << "element " << i;
  }
  EXPECT_EQ(chosen_counts, expected);
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(dynamic_counts, expected);
}

class OnIsa : public testing::TestWithParam<int> {
 protected:
  Isa isa() const { return Isa{GetParam()}; }

  void check_codes(const Spec& spec, float scale, std::int32_t zero_point, const std::vector<float>& x) {
    std::vector<std::uint8_t> codes(x.size());
    Counts counts, expected;
    ASSERT_EQ(quantize(spec, per_tensor(x.size()), x.data(), &scale, &zero_point, codes.data(), &counts, isa()),
              Status::ok);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(code_at(spec, codes, i), reference_code(x[i], scale, zero_point, codes_of(spec), expected))
          << show(spec) << " x " << std::hexfloat << x[i] << " scale " << scale << " zero point " << zero_point;
    }
    ASSERT_EQ(counts, expected) << show(spec) << " scale " << scale << " zero point " << zero_point;
  }
};

/// The floats around every half-integer multiple of the scale, and the special values.
std::vector<float> hard_inputs(float scale, int zero_point, Codes codes) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          kMin,
                          -kMin,
                          FLT_MIN,
                          -FLT_MIN,
                          1.0f,
                          -1.0f,
                          FLT_MAX,
                          -FLT_MAX,
                          kInf,
                          -kInf,
                          kNan,
                          -kNan,
                          from_bits(0x7F800001),
                          from_bits(0xFFFFFFFF),
                          scale,
                          -scale};
  for (int k = codes.qmin - zero_point - 2; k <= codes.qmax - zero_point + 1; ++k) {
    const double exact = (k + 0.5) * static_cast<double>(scale);
    if (std::abs(exact) > static_cast<double>(FLT_MAX)) continue;
    float up = static_cast<float>(exact), down = up;
    x.push_back(up);
    for (int i = 0; i < 3; ++i) {
      x.push_back(up = std::nextafter(up, kInf));
      x.push_back(down = std::nextafter(down, -kInf));
    }
  }
  return x;
}

std::vector<float> hard_scales(Random& random, int count) {
  std::vector<float> scales = {kMin,
                               2 * kMin,
                               3 * kMin,
                               from_bits(0x7FFFFF),
                               FLT_MIN,
                               from_bits(0x800001),
                               FLT_MAX,
                               from_bits(0x7F000000),
                               from_bits(0x7EFFFFFF),
                               1.0f,
                               0.1f,
                               1.0f / 3,
                               2.0f,
                               1e-40f};
  for (const float edge : {0x1p-120f, 0x1p-100f, 0x1p100f, 0x1p120f, 0x1p-126f, 1.0f}) {
    for (int i = -2; i <= 2; ++i) scales.push_back(from_bits(to_bits(edge) + static_cast<std::uint32_t>(i)));
  }
  for (int i = 0; i < count; ++i) {
    const std::uint32_t mantissa = random() % 4 != 0   ? random() & 0x7FFFFF
                                   : random() % 2 != 0 ? random() % 8
                                                       : 0x7FFFFF - random() % 8;
    scales.push_back(std::max(kMin, from_bits((random() % 255) << 23 | mantissa)));
  }
  return scales;
}

// ---------------------------------------------------------------------------------------------------- tests

TEST_P(OnIsa, BreakpointsOfManyScales) {
  Random random(1);
  for (const float scale : hard_scales(random, 400)) {
    for (const Spec& spec : all_specs()) {
      if (spec.scale_format != FloatFormat::f32 || (spec.bits != 8 && random() % 4 != 0)) continue;
      const Codes codes = codes_of(spec);
      const int between = codes.qmin + static_cast<int>(random() % static_cast<unsigned>(codes.qmax - codes.qmin + 1));
      for (const int zero_point : {between, random() % 2 != 0 ? codes.qmin : codes.qmax}) {
        check_codes(spec, scale, zero_point, hard_inputs(scale, zero_point, codes));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(OnIsa, EveryZeroPointOfEveryWidth) {
  for (const Spec& spec : all_specs()) {
    if (spec.scale_format != FloatFormat::f32) continue;
    const Codes codes = codes_of(spec);
    for (int zero_point = codes.qmin; zero_point <= codes.qmax; ++zero_point) {
      for (const float scale : {0.1f, 1.0f}) {
        check_codes(spec, scale, zero_point, hard_inputs(scale, zero_point, codes));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(OnIsa, RandomPatternsAndScales) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    Spec spec;
    spec.scheme = Scheme::asymmetric;
    std::vector<float> x(1000);
    const std::uint32_t base = random() & 0x7F000000;
    for (float& element : x)
      element = random() % 8 == 0 ? from_bits(random()) : from_bits(base + (random() & 0x83FFFFFF));
    const float scale = from_bits(std::clamp(base + (random() & 0xFFFFFF), 1u, 0x7F7FFFFFu));
    check_codes(spec, scale, static_cast<int>(random() % 256) - 128, x);
    if (HasFatalFailure()) return;
  }
}

TEST_P(OnIsa, QparamsOfHardRanges) {
  Random random(3);
  const std::vector<float> ends = {
      0.0f,     kMin,     2 * kMin,       3 * kMin,       127 * kMin, 128 * kMin,  191 * kMin, from_bits(0x7FFFFF),
      FLT_MIN,  1e-30f,   0x1p-24f,       0x1p-14f,       1.0f,       127.0f,      128.0f,     255.0f,
      65504.0f, 65520.0f, 65504.0f * 127, 65504.0f * 255, 1e30f,      FLT_MAX / 2, FLT_MAX};
  for (const Spec& spec : all_specs()) {
    std::vector<std::array<float, 2>> ranges;
    for (const float a : ends)
      for (const float b : ends) ranges.push_back({a, b});
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t a = random() % 0x7F800000;
      switch (random() % 4) {
        case 0:
          ranges.push_back({from_bits(a), from_bits(random() % 0x7F800000)});
          break;
        case 1:
          ranges.push_back({from_bits(a), from_bits(std::min(a + random() % 0x800000, 0x7F7FFFFFu))});
          break;
        case 2:
          ranges.push_back({from_bits(random() % 2000), from_bits(random() % 2000)});
          break;
        default:  // in the subnormal scales of f16 and bf16
          ranges.push_back(
              {std::ldexp(static_cast<float>(random() % 100000), -33 - static_cast<int>(random() % 2) * 110),
               std::ldexp(static_cast<float>(random() % 100000), -33 - static_cast<int>(random() % 2) * 110)});
      }
    }
    // Steps half way between two scales of the format, or off that by as little as the other end of the range can add.
    const int digits = spec.scale_format == FloatFormat::f32 ? 12 : spec.scale_format == FloatFormat::f16 ? 11 : 8;
    const int exponent = spec.scale_format == FloatFormat::f32 ? -150 : -20;  // f32: among the subnormal scales
    const Codes range_of_codes = codes_of(spec);
    for (int i = 0; i < 300; ++i) {
      const auto steps = static_cast<float>(
          spec.scheme == Scheme::symmetric ? range_of_codes.qmax : range_of_codes.qmax - range_of_codes.qmin);
      const float scale = static_cast<float>((1u << digits) + 2 * (random() % (1u << (digits - 1))) + 1);
      const float hi = std::ldexp(steps * scale, exponent);
      const int below = -static_cast<int>(random() % 70);
      const float single_bit = std::ldexp(1.0f, std::ilogb(hi) + below);
      ranges.push_back({hi, i % 3 == 0 ? 0.0f : i % 3 == 1 ? single_bit : std::ldexp(hi, below)});
    }
    const std::size_t blocks = ranges.size();
    std::vector<float> x;
    for (const auto& range : ranges) x.insert(x.end(), {range[0], -range[1]});
    std::vector<std::uint8_t> scales(blocks * 4);
    std::vector<std::int32_t> zero_points(blocks);
    Counts counts, expected;
    ASSERT_EQ(
        choose_qparams(spec, per_block(blocks, 2, 2), x.data(), scales.data(), zero_points.data(), &counts, isa()),
        Status::ok);
    for (std::size_t b = 0; b < blocks; ++b) {
      const Chosen chosen = reference_qparams(spec, ranges[b][0], ranges[b][1]);
      ASSERT_EQ(pattern_at(spec, scales, b), chosen.scale)
          << show(spec) << std::hexfloat << " hi " << ranges[b][0] << " -lo " << ranges[b][1];
      ASSERT_EQ(zero_points[b], chosen.zero_point)
          << show(spec) << std::hexfloat << " hi " << ranges[b][0] << " -lo " << ranges[b][1];
      const float scale = scale_value(spec.scale_format, chosen.scale);
      reference_code(x[2 * b], scale, chosen.zero_point, codes_of(spec), expected);
      reference_code(x[2 * b + 1], scale, chosen.zero_point, codes_of(spec), expected);
    }
    ASSERT_EQ(counts, expected) << show(spec);
    ASSERT_TRUE(spec.scale_format == FloatFormat::f16 || expected.saturated == 0) << show(spec);
  }
}

TEST_P(OnIsa, AllSpecsAndLayouts) {
  Random random(4);
  const std::vector<Layout> layouts = {
      per_tensor(0),          per_tensor(1),          per_tensor(1000),      per_channel(1, 5, 37),
      per_channel(3, 5, 7),   per_channel(300, 3, 1), per_channel(7, 40, 1), per_channel(1, 9, 1),
      per_channel(4, 3, 63),  per_channel(4, 3, 64),  per_channel(3, 2, 65), per_channel(9, 33, 3),
      per_channel(5, 17, 31), per_channel(0, 3, 4),   per_channel(2, 3, 0),  per_channel(2, 0, 3),
      per_block(3, 100, 32),  per_block(5, 31, 32),   per_block(2, 64, 32),  per_block(4, 7, 1),
      per_block(0, 7, 3),     per_block(3, 0, 3),     per_block(2, 300, 129)};
  for (const Spec& spec : all_specs()) {
    for (const Layout& layout : layouts) {
      std::vector<float> x(element_count(layout));
      for (float& element : x) element = any_float(random);
      check_tensor(spec, layout, x, isa());
      for (float& element : x) element = 3.5f;
      check_tensor(spec, layout, x, isa());
      if (HasFailure()) return;
    }
  }
}

TEST_P(OnIsa, EveryTailLength) {
  Random random(5);
  for (std::size_t n = 0; n <= 200; ++n) {
    std::vector<float> x(n);
    for (float& element : x) element = any_float(random);
    Spec spec;
    spec.scheme = n % 2 == 0 ? Scheme::symmetric : Scheme::asymmetric;
    check_tensor(spec, per_tensor(n), x, isa());
    // Ordinary elements only: the path without any settling.
    for (float& element : x) element = static_cast<float>(static_cast<int>(random() % 2000) - 1000) / 1000.0f;
    check_tensor(spec, per_tensor(n), x, isa());
    if (HasFailure()) return;
  }
}

TEST_P(OnIsa, OneSpecialElementAtEveryPosition) {
  for (std::size_t n : {std::size_t{37}, std::size_t{1200}}) {
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 19) * 0.37f - 2.0f;
      x[at] = at % 3 == 0 ? kNan : at % 3 == 1 ? kInf : -kInf;
      check_tensor(Spec{}, per_tensor(n), x, isa());
      if (HasFailure()) return;
    }
  }
}

TEST_P(OnIsa, AnyAlignmentAndNothingBeyond) {
  Random random(6);
  for (std::size_t offset = 0; offset < 17; ++offset) {
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{15}, std::size_t{67}, std::size_t{133}, std::size_t{1000}}) {
      std::vector<float> x(n + offset);
      for (float& element : x) element = any_float(random);
      std::vector<std::uint8_t> codes(n + offset + 64, 0xA5), straight(n);
      std::vector<float> values(n + offset + 16, 42.0f);
      const float scale = 0.01f;
      const std::int32_t zero_point = 3;
      Spec spec;
      spec.scheme = Scheme::asymmetric;
      const Layout layout = per_tensor(n);
      const std::vector<float> copy(x.begin() + static_cast<std::ptrdiff_t>(offset), x.end());
      ASSERT_EQ(quantize(spec, layout, x.data() + offset, &scale, &zero_point, codes.data() + offset, nullptr, isa()),
                Status::ok);
      ASSERT_EQ(quantize(spec, layout, copy.data(), &scale, &zero_point, straight.data(), nullptr, isa()), Status::ok);
      ASSERT_TRUE(std::equal(straight.begin(), straight.end(), codes.begin() + static_cast<std::ptrdiff_t>(offset)));
      ASSERT_EQ(dequantize(spec, layout, codes.data() + offset, &scale, &zero_point, values.data() + offset, isa()),
                Status::ok);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        if (i < offset || i >= offset + n) {
          ASSERT_EQ(codes[i], 0xA5);
        }
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i < offset || i >= offset + n) {
          ASSERT_EQ(values[i], 42.0f);
        }
      }
    }
  }
}

#if HAVE_GUARD_PAGES
/// Memory with an unreadable page right behind it and, with at_start, right before it.
class Guarded {
 public:
  Guarded(std::size_t bytes, bool at_start) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::size_t inside = (bytes + page_ - 1) / page_ * page_ + page_;
    size_ = inside + 2 * page_;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + page_, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = at_start ? base_ + page_ : base_ + page_ + inside - bytes;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, size_); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::size_t page_, size_;
  char* base_;
  char* data_;
};

TEST_P(OnIsa, GuardPages) {
  Random random(7);
  std::vector<Layout> layouts;
  for (std::size_t n = 1; n <= 140; ++n) layouts.push_back(per_tensor(n));
  for (std::size_t n = 250; n <= 330; ++n) layouts.push_back(per_tensor(n));
  for (const Layout& more :
       {per_channel(5, 3, 7), per_channel(300, 3, 1), per_channel(2, 3, 70), per_block(3, 45, 16)}) {
    layouts.push_back(more);
  }
  for (const Layout& layout : layouts) {
    for (const bool at_start : {false, true}) {
      for (const FloatFormat format : {FloatFormat::f32, FloatFormat::f16}) {
        Spec spec;
        spec.scheme = Scheme::asymmetric;
        spec.scale_format = format;
        const std::size_t n = element_count(layout), blocks = block_count(layout);
        const Guarded x(n * 4, at_start), codes(n, at_start), values(n * 4, at_start),
            zero_points(blocks * 4, at_start), scales(blocks * (format == FloatFormat::f32 ? 4 : 2), at_start);
        for (std::size_t i = 0; i < n; ++i) x.as<float>()[i] = any_float(random);
        ASSERT_EQ(quantize_dynamic(spec, layout, x.as<float>(), scales.as<void>(), zero_points.as<std::int32_t>(),
                                   codes.as<void>(), nullptr, isa()),
                  Status::ok);
        ASSERT_EQ(choose_qparams(spec, layout, x.as<float>(), scales.as<void>(), zero_points.as<std::int32_t>(),
                                 nullptr, isa()),
                  Status::ok);
        ASSERT_EQ(dequantize(spec, layout, codes.as<void>(), scales.as<void>(), zero_points.as<std::int32_t>(),
                             values.as<float>(), isa()),
                  Status::ok);
      }
    }
  }
}
#endif

TEST_P(OnIsa, DequantizesEveryByte) {
  Random random(8);
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
  for (const float scale : hard_scales(random, 200)) {
    for (const bool is_signed : {true, false}) {
      Spec spec;
      spec.scheme = Scheme::asymmetric;
      spec.is_signed = is_signed;
      spec.bits = 2 + static_cast<int>(random() % 7);
      const Codes range = codes_of(spec);
      const std::int32_t zero_point =
          range.qmin + static_cast<int>(random() % static_cast<unsigned>(range.qmax - range.qmin + 1));
      std::vector<float> values(256);
      ASSERT_EQ(dequantize(spec, per_tensor(256), codes.data(), &scale, &zero_point, values.data(), isa()), Status::ok);
      for (std::size_t i = 0; i < 256; ++i) {
        const float expected = reference_value(code_at(spec, codes, i), scale, zero_point);
        ASSERT_EQ(to_bits(values[i]), to_bits(expected)) << "scale " << scale << " code " << i;
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------- narrow formats

struct Narrow {
  FloatFormat format;
  int precision, min_exponent;
  double largest;
};
constexpr Narrow kNarrow[] = {{FloatFormat::f16, 11, -14, 65504}, {FloatFormat::bf16, 8, -126, 0x1.FEp127}};

/// By the meaning of the fields.
float reference_wide(const Narrow& narrow, std::uint16_t pattern) {
  const int fraction_bits = narrow.precision - 1;
  const int field = (pattern & 0x7FFF) >> fraction_bits;
  const int fraction = pattern & ((1 << fraction_bits) - 1);
  const float sign = (pattern & 0x8000) != 0 ? -1.0f : 1.0f;
  if (field == 0x7FFF >> fraction_bits) return fraction != 0 ? kNan : sign * kInf;
  const int significand = field == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign *
         std::ldexp(static_cast<float>(significand), std::max(field, 1) - 1 + narrow.min_exponent - fraction_bits);
}

/// One rounding, half to even, of a double; the largest finite value in place of infinity.
std::uint16_t reference_narrow(const Narrow& narrow, double value) {
  const int fraction_bits = narrow.precision - 1;
  const double magnitude = std::fabs(value);
  const int exponent = std::max(magnitude == 0 ? narrow.min_exponent : std::ilogb(magnitude), narrow.min_exponent);
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  const double rounded = std::min(std::nearbyint(magnitude / unit) * unit, narrow.largest);
  const int top = std::max(rounded == 0 ? narrow.min_exponent : std::ilogb(rounded), narrow.min_exponent);
  // A subnormal lacks the leading one, which would count as one more in the exponent field.
  const auto significand = static_cast<int>(std::ldexp(rounded, fraction_bits - top));
  const int pattern = ((top - narrow.min_exponent) << fraction_bits) + significand;
  return static_cast<std::uint16_t>(pattern | (std::signbit(value) ? 0x8000 : 0));
}

TEST(Quantizer, NarrowReferencesAreInverse) {
  for (const Narrow& narrow : kNarrow) {
    for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
      const float wide = reference_wide(narrow, static_cast<std::uint16_t>(pattern));
      if (!std::isfinite(wide)) continue;
      ASSERT_EQ(reference_narrow(narrow, wide), pattern);
    }
  }
}

TEST_P(OnIsa, NarrowInputIsTheFloatThatItIs) {
  for (const Narrow& narrow : kNarrow) {
    std::vector<std::uint16_t> x(0x10000);
    // Every pattern once, neighbours far apart.
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i * 40503);
    std::vector<float> wide;
    for (const std::uint16_t pattern : x) wide.push_back(reference_wide(narrow, pattern));
    for (const Layout& layout : {per_tensor(x.size()), per_channel(64, 16, 64), per_channel(512, 128, 1),
                                 per_block(16, 4096, 33), per_block(64, 1024, 1024)}) {
      Spec spec;
      spec.scheme = Scheme::asymmetric;
      Spec narrow_spec = spec;
      narrow_spec.input_format = narrow.format;
      const std::size_t blocks = block_count(layout);
      std::vector<float> scales(blocks), narrow_scales(blocks);
      std::vector<std::int32_t> zero_points(blocks), narrow_zero_points(blocks);
      std::vector<std::uint8_t> codes(x.size()), narrow_codes(x.size());
      Counts counts, narrow_counts;
      ASSERT_EQ(choose_qparams(spec, layout, wide.data(), scales.data(), zero_points.data(), &counts, isa()),
                Status::ok);
      ASSERT_EQ(choose_qparams(narrow_spec, layout, x.data(), narrow_scales.data(), narrow_zero_points.data(),
                               &narrow_counts, isa()),
                Status::ok);
      ASSERT_EQ(scales, narrow_scales);
      ASSERT_EQ(zero_points, narrow_zero_points);
      ASSERT_EQ(counts, narrow_counts);
      ASSERT_EQ(quantize(spec, layout, wide.data(), scales.data(), zero_points.data(), codes.data(), &counts, isa()),
                Status::ok);
      ASSERT_EQ(quantize(narrow_spec, layout, x.data(), scales.data(), zero_points.data(), narrow_codes.data(),
                         &narrow_counts, isa()),
                Status::ok);
      ASSERT_EQ(codes, narrow_codes);
      ASSERT_EQ(counts, narrow_counts);
      std::fill(narrow_codes.begin(), narrow_codes.end(), std::uint8_t{0x55});
      ASSERT_EQ(quantize_dynamic(narrow_spec, layout, x.data(), narrow_scales.data(), narrow_zero_points.data(),
                                 narrow_codes.data(), &narrow_counts, isa()),
                Status::ok);
      ASSERT_EQ(codes, narrow_codes);
      ASSERT_EQ(counts, narrow_counts);
    }
  }
}

// Every exponent and every upper half of a significand, with lower bits that make ties and with lower bits that break
// them; every difference of code and zero point.
TEST_P(OnIsa, NarrowOutputIsRoundedOnce) {
  Random random(22);
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
  for (const Narrow& narrow : kNarrow) {
    Spec spec;
    spec.scheme = Scheme::asymmetric;
    spec.is_signed = false;
    spec.output_format = narrow.format;
    for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {
      std::uint32_t bits = upper << 16;
      if (upper % 2 != 0) bits |= random() & 0xFFFF;
      if (upper % 8 == 1) bits &= ~0xFFFu;
      if (bits == 0) bits = 1;
      const float scale = from_bits(bits);
      const std::int32_t zero_point = upper % 3 == 0 ? 0 : upper % 3 == 1 ? 255 : static_cast<int>(random() % 256);
      std::vector<std::uint16_t> values(256);
      ASSERT_EQ(dequantize(spec, per_tensor(256), codes.data(), &scale, &zero_point, values.data(), isa()), Status::ok);
      for (int code = 0; code < 256; ++code) {
        const double exact = static_cast<double>(code - zero_point) * static_cast<double>(scale) + 0.0;
        ASSERT_EQ(values[static_cast<std::size_t>(code)], reference_narrow(narrow, exact))
            << "format " << static_cast<int>(narrow.format) << " scale " << std::hexfloat << scale << " steps "
            << code - zero_point;
      }
    }
  }
}

TEST(Quantizer, WhatRunsWasCompiled) {
  for (const char* const* isa = isas(); *isa != nullptr; ++isa) {
    bool compiled = false;
    for (const char* const* other = compiled_isas(); *other != nullptr; ++other)
      compiled = compiled || std::strcmp(*isa, *other) == 0;
    EXPECT_TRUE(compiled) << *isa;
  }
}

TEST_P(OnIsa, CallersEnvironmentNeitherMattersNorChanges) {
  Random random(9);
  std::vector<float> x(500);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 != 0 ? any_float(random) : from_bits(random() % 3000);
  const std::vector<float> subnormal(x.size(), 1234 * kMin);
  for (const std::vector<float>& input : {x, subnormal}) {
    for (const FloatFormat format : {FloatFormat::f32, FloatFormat::bf16}) {
      Spec spec;
      spec.scheme = Scheme::asymmetric;
      spec.scale_format = format;
      const Layout layout = per_block(10, 50, 7);
      struct Result {
        std::vector<std::uint8_t> scales, codes;
        std::vector<std::int32_t> zero_points;
        std::vector<float> values;
        Counts counts;
      };
      const auto run = [&] {
        Result r;
        r.scales.resize(block_count(layout) * 4);
        r.zero_points.resize(block_count(layout));
        r.codes.resize(input.size());
        r.values.resize(input.size());
        quantize_dynamic(spec, layout, input.data(), r.scales.data(), r.zero_points.data(), r.codes.data(), &r.counts,
                         isa());
        choose_qparams(spec, layout, input.data(), r.scales.data(), r.zero_points.data(), nullptr, isa());
        dequantize(spec, layout, r.codes.data(), r.scales.data(), r.zero_points.data(), r.values.data(), isa());
        return r;
      };
      const Result plain = run();
      for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        for (const bool flush : {false, true}) {
          std::fenv_t before;
          std::fegetenv(&before);
          std::fesetround(mode);
#if defined(__SSE2__)
          if (flush) _mm_setcsr(_mm_getcsr() | 0x8040);
          const unsigned on_entry = _mm_getcsr();
#endif
          const Result other = run();
#if defined(__SSE2__)
          const unsigned on_exit = _mm_getcsr();
#endif
          const int mode_on_exit = std::fegetround();
          std::fesetenv(&before);
#if defined(__SSE2__)
          EXPECT_EQ(on_entry, on_exit);
#endif
          EXPECT_EQ(mode_on_exit, mode);
          EXPECT_EQ(other.scales, plain.scales);
          EXPECT_EQ(other.zero_points, plain.zero_points);
          EXPECT_EQ(other.codes, plain.codes);
          EXPECT_EQ(std::memcmp(other.values.data(), plain.values.data(), plain.values.size() * 4), 0);
          EXPECT_EQ(other.counts, plain.counts);
          (void)flush;
        }
      }
    }
  }
}

TEST_P(OnIsa, RefusesWithoutWriting) {
  const std::vector<float> x(64, 1.0f);
  std::vector<std::uint8_t> codes(64, 0xA5);
  std::vector<float> values(64, 42.0f);
  const Layout layout = per_channel(1, 2, 32);
  const auto expect = [&](Status status, const Spec& spec, const Layout& l, const void* scales,
                          std::array<std::int32_t, 2> zero_points) {
    EXPECT_EQ(quantize(spec, l, x.data(), scales, zero_points.data(), codes.data(), nullptr, isa()), status);
    EXPECT_EQ(dequantize(spec, l, codes.data(), scales, zero_points.data(), values.data(), isa()), status);
    EXPECT_TRUE(std::all_of(codes.begin(), codes.end(), [](std::uint8_t c) { return c == 0xA5; }));
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v == 42.0f; }));
  };
  const std::array<float, 2> good = {1.0f, 1.0f};
  for (const float bad : {0.0f, -0.0f, -1.0f, kInf, -kInf, kNan, -kMin}) {
    const std::array<float, 2> scales = {1.0f, bad};
    expect(Status::bad_scale, Spec{}, layout, scales.data(), {0, 0});
  }
  for (const std::uint16_t bad : std::initializer_list<std::uint16_t>{0x0000, 0x8000, 0x7C00, 0x7E00, 0xFC00, 0xBC00}) {
    const std::array<std::uint16_t, 2> scales = {0x3C00, bad};
    expect(Status::bad_scale, Spec{Scheme::symmetric, 8, true, false, FloatFormat::f16}, layout, scales.data(), {0, 0});
  }
  for (const std::uint16_t bad : std::initializer_list<std::uint16_t>{0x0000, 0x8000, 0x7F80, 0x7FC0, 0xFF80, 0xBF80}) {
    const std::array<std::uint16_t, 2> scales = {0x3F80, bad};
    expect(Status::bad_scale, Spec{Scheme::symmetric, 8, true, false, FloatFormat::bf16}, layout, scales.data(),
           {0, 0});
  }
  for (const Spec& spec : all_specs()) {
    if (spec.scale_format != FloatFormat::f32) continue;
    const Codes range = codes_of(spec);
    expect(Status::bad_zero_point, spec, layout, good.data(), {range.qmin, range.qmax + 1});
    expect(Status::bad_zero_point, spec, layout, good.data(), {range.qmax, range.qmin - 1});
    expect(Status::bad_zero_point, spec, layout, good.data(), {0, std::numeric_limits<std::int32_t>::max()});
  }
  for (const int bits : {-1, 0, 1, 9, 32})
    expect(Status::bad_spec, Spec{Scheme::symmetric, bits, true, false}, layout, good.data(), {0, 0});
  expect(Status::bad_spec, Spec{Scheme::symmetric, 8, false, false}, layout, good.data(), {0, 0});
  expect(Status::bad_spec, Spec{Scheme::asymmetric, 8, false, true}, layout, good.data(), {0, 0});
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  for (const Layout& bad : {per_block(1, 64, 0), per_block(huge, 2, 1), per_block(huge / 4, 5, 2), per_tensor(huge / 2),
                            per_channel(huge / 2, 1, 3), per_channel(3, huge / 2, 1),
                            per_channel(huge / 2, huge / 2, 0), per_channel(0, huge / 2, huge / 2)}) {
    expect(Status::bad_layout, Spec{}, bad, good.data(), {0, 0});
    std::array<float, 2> scales = good;
    std::array<std::int32_t, 2> zero_points = {7, 7};
    EXPECT_EQ(choose_qparams(Spec{}, bad, x.data(), scales.data(), zero_points.data(), nullptr, isa()),
              Status::bad_layout);
    EXPECT_EQ(zero_points[0], 7);
  }
}

// Every pair of an output with another argument, sharing one byte at either end or lying on top of each other.
TEST_P(OnIsa, RefusesToWriteOverItsArguments) {
  constexpr std::size_t kN = 40;
  alignas(64) std::array<std::byte, 1024> memory;
  const auto call = [&](std::size_t x, std::size_t scales, std::size_t zero_points, std::size_t out, int which) {
    memory.fill(std::byte{0});
    const float one = 1.0f;
    const auto float_at = [&](std::size_t at) { return reinterpret_cast<float*>(memory.data() + at); };
    const auto integer_at = [&](std::size_t at) { return reinterpret_cast<std::int32_t*>(memory.data() + at); };
    std::memcpy(memory.data() + scales, &one, sizeof one);
    const auto before = memory;
    Status status = Status::ok;
    const Layout layout = per_tensor(kN);
    if (which == 0) {
      status = quantize(Spec{}, layout, float_at(x), float_at(scales), integer_at(zero_points), memory.data() + out,
                        nullptr, isa());
    } else if (which == 1) {
      status = dequantize(Spec{}, layout, memory.data() + x, float_at(scales), integer_at(zero_points), float_at(out),
                          isa());
    } else {
      status = quantize_dynamic(Spec{}, layout, float_at(x), float_at(scales), integer_at(zero_points),
                                memory.data() + out, nullptr, isa());
    }
    EXPECT_TRUE(status == Status::ok || memory == before) << "written, though refused";
    return status;
  };
  // x or codes take 160 bytes from 0 on, the scale 4 at 256, the zero point 4 at 260.
  for (const int which : {0, 1, 2}) {
    const std::size_t in = which == 1 ? kN : 4 * kN, out = which == 1 ? 4 * kN : kN;
    const std::size_t last_free = 256 - out;
    EXPECT_EQ(call(0, 256, 260, in, which), Status::ok) << "just past the input";
    EXPECT_EQ(call(0, 256, 260, last_free, which), Status::ok) << "just before the scale";
    EXPECT_EQ(call(0, 256, 260, 264, which), Status::ok) << "just past the zero point";
    EXPECT_EQ(call(0, 256, 260, 0, which), Status::bad_overlap);
    EXPECT_EQ(call(0, 256, 260, in - 4, which), Status::bad_overlap);
    EXPECT_EQ(call(0, 256, 260, last_free + 4, which), Status::bad_overlap);
    EXPECT_EQ(call(0, 256, 260, 260, which), Status::bad_overlap);
    EXPECT_EQ(call(300, 256, 260, 300 + in / 2 / 4 * 4, which), Status::bad_overlap);
  }
  EXPECT_EQ(call(0, 256, 256, 512, 2), Status::bad_overlap) << "scale and zero point are both outputs";
  EXPECT_EQ(call(256, 256, 300, 512, 2), Status::bad_overlap) << "the scale over the input";
  EXPECT_EQ(call(0, 256, 300, 512, 0), Status::ok);
}

TEST(Quantizer, IsaListAndBadIsa) {
  int count = 0;
  while (isas()[count] != nullptr) ++count;
  ASSERT_GE(count, 1);
  EXPECT_STREQ(isas()[count - 1], "scalar");
  EXPECT_EQ(isas(), isas());
  const float x = 1.0f, scale = 1.0f;
  const std::int32_t zero_point = 0;
  std::uint8_t code = 9;
  for (const int bad : {-1, count, 1000}) {
    EXPECT_EQ(quantize(Spec{}, per_tensor(1), &x, &scale, &zero_point, &code, nullptr, Isa{bad}), Status::bad_isa);
  }
  EXPECT_EQ(code, 9);
}

// All 2^32 floats, a few minutes per instruction set. QUANTIZER_SWEEP="<scale> <zero point>", by default 0.1 and 3.
TEST_P(OnIsa, DISABLED_AllInputsOfOneScale) {
  float scale = 0.1f;
  std::int32_t zero_point = 3;
  if (const char* text = std::getenv("QUANTIZER_SWEEP")) {
    char* end = nullptr;
    scale = std::strtof(text, &end);
    zero_point = static_cast<std::int32_t>(std::strtol(end, nullptr, 10));
  }
  Spec spec;
  spec.scheme = Scheme::asymmetric;
  const Codes codes = codes_of(spec);
  constexpr std::size_t kChunk = 1 << 16;
  std::vector<float> x(kChunk);
  std::vector<std::uint8_t> actual(kChunk);
  Counts expected, total;
  for (std::uint64_t base = 0; base < (std::uint64_t{1} << 32); base += kChunk) {
    for (std::size_t i = 0; i < kChunk; ++i) x[i] = from_bits(static_cast<std::uint32_t>(base + i));
    Counts counts;
    ASSERT_EQ(quantize(spec, per_tensor(kChunk), x.data(), &scale, &zero_point, actual.data(), &counts, isa()),
              Status::ok);
    total = {total.nan + counts.nan, total.inf + counts.inf, total.saturated + counts.saturated};
    for (std::size_t i = 0; i < kChunk; ++i) {
      const int code = reference_code(x[i], scale, zero_point, codes, expected);
      if (code_at(spec, actual, i) != code)
        FAIL() << std::hexfloat << x[i] << " gave " << code_at(spec, actual, i) << " not " << code;
    }
  }
  EXPECT_EQ(total, expected);
}

int isa_count() {
  int count = 0;
  while (isas()[count] != nullptr) ++count;
  return count;
}
INSTANTIATE_TEST_SUITE_P(, OnIsa, testing::Range(0, isa_count()),
                         [](const testing::TestParamInfo<int>& isa) { return std::string(isas()[isa.param]); });

}  // namespace
}  // namespace quantizer
