// Every call by an executor that runs the pieces backwards gives what one thread gives, to the bit.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>
#include <vector>

#include "pack.h"
#include "quantizer.h"
#include "requantize.h"

namespace quantizer {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Whoever counts on the order of the pieces fails. `context` counts the runs.
Executor backwards(std::size_t& runs) {
  Executor executor;
  executor.context = &runs;
  executor.run = [](void* context, std::size_t tasks, void (*task)(void*, std::size_t), void* argument) {
    ++*static_cast<std::size_t*>(context);
    for (std::size_t i = tasks; i-- > 0;) task(argument, i);
  };
  executor.least_elements = 1;
  return executor;
}

float any_float(std::mt19937_64& random) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); }

const std::array kLayouts = {per_tensor(1000),          per_channel(5, 8, 25), per_block(10, 100, 32),
                             per_tile(2, 10, 50, 3, 7), per_channel(1, 1, 1),  per_tensor(0)};

Spec spec_of(Scheme scheme) {
  Spec spec;
  spec.scheme = scheme;
  if (scheme == Scheme::floating || scheme == Scheme::mx) spec.code_format = CodeFormat::e4m3fn;
  if (scheme == Scheme::nvfp4) spec.code_format = CodeFormat::e2m1;
  if (scheme == Scheme::mx) spec.scale_format = FloatFormat::e8m0;
  if (scheme == Scheme::nvfp4) spec.scale_format = FloatFormat::e4m3fn;
  return spec;
}

struct Answer {
  float tensor_scale = 0;
  Bytes scales, codes, dynamic_codes;
  std::vector<std::int32_t> zero_points;
  std::vector<std::uint32_t> values;
  std::array<std::size_t, 9> counts{};
};

Answer answer(Spec spec, const Layout& layout, const std::vector<float>& x, const Executor* by) {
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  Answer a;
  a.scales.resize(4 * blocks);
  a.zero_points.resize(blocks);
  a.codes.resize(n);
  a.dynamic_codes.resize(n);
  a.values.resize(n);
  std::array<Counts, 3> counts;
  const auto ok = [](Status status) { EXPECT_EQ(status, Status::ok) << message(status); };
  if (spec.scheme == Scheme::nvfp4) {
    ok(choose_tensor_scale(spec, n, x.data(), &a.tensor_scale, {}, by));
    spec.tensor_scale = a.tensor_scale;
  }
  ok(choose_qparams(spec, layout, x.data(), a.scales.data(), a.zero_points.data(), &counts[0], {}, by));
  ok(quantize(spec, layout, x.data(), a.scales.data(), a.zero_points.data(), a.codes.data(), &counts[1], {}, by));
  ok(dequantize(spec, layout, a.codes.data(), a.scales.data(), a.zero_points.data(), a.values.data(), {}, by));
  ok(quantize_dynamic(spec, layout, x.data(), a.scales.data(), a.zero_points.data(), a.dynamic_codes.data(), &counts[2],
                      {}, by));
  for (std::size_t i = 0; i < 3; ++i) {
    a.counts[3 * i] = counts[i].nan;
    a.counts[3 * i + 1] = counts[i].inf;
    a.counts[3 * i + 2] = counts[i].saturated;
  }
  return a;
}

TEST(Executor, ChangesNoQuantization) {
  std::mt19937_64 random(5);
  std::size_t runs = 0;
  const Executor executor = backwards(runs);
  for (const Scheme scheme : {Scheme::symmetric, Scheme::asymmetric, Scheme::floating, Scheme::mx, Scheme::nvfp4}) {
    for (const Layout& layout : kLayouts) {
      for (const bool any : {false, true}) {
        std::vector<float> x(element_count(layout));
        for (float& one : x) one = any ? any_float(random) : static_cast<float>(random() % 1000) - 500;
        const Answer one = answer(spec_of(scheme), layout, x, nullptr),
                     many = answer(spec_of(scheme), layout, x, &executor);
        EXPECT_EQ(one.tensor_scale, many.tensor_scale);
        EXPECT_EQ(one.scales, many.scales);
        EXPECT_EQ(one.zero_points, many.zero_points);
        EXPECT_EQ(one.codes, many.codes);
        EXPECT_EQ(one.dynamic_codes, many.dynamic_codes);
        EXPECT_EQ(one.values, many.values);
        EXPECT_EQ(one.counts, many.counts);
      }
    }
  }
  EXPECT_GT(runs, 0u);
}

TEST(Executor, ChangesNoPacking) {
  std::mt19937_64 random(6);
  std::size_t runs = 0;
  const Executor executor = backwards(runs);
  for (int bits = 1; bits <= 8; ++bits) {
    for (const BitOrder order : {BitOrder::lsb_first, BitOrder::msb_first}) {
      for (const std::size_t n : {0, 1, 15, 16, 17, 999, 4096}) {
        Bytes codes(n);
        for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
        std::array<Bytes, 2> packed, back;
        for (std::size_t k = 0; k < 2; ++k) {
          const Executor* const by = k == 0 ? nullptr : &executor;
          packed[k].assign(packed_size(n, bits), 0xFF);
          back[k].resize(n);
          ASSERT_EQ(pack(bits, order, codes.data(), n, packed[k].data(), {}, by), Status::ok);
          ASSERT_EQ(unpack(bits, true, order, packed[k].data(), n, back[k].data(), {}, by), Status::ok);
        }
        EXPECT_EQ(packed[0], packed[1]) << bits << " bits, " << n << " codes";
        EXPECT_EQ(back[0], back[1]) << bits << " bits, " << n << " codes";
      }
    }
  }
  EXPECT_GT(runs, 0u);
}

TEST(Executor, ChangesNoRequantization) {
  std::mt19937_64 random(7);
  std::size_t runs = 0;
  const Executor executor = backwards(runs);
  for (const Layout& layout : kLayouts) {
    if (layout.kind != Layout::Kind::channels) continue;
    std::vector<std::int32_t> accumulators(element_count(layout));
    for (std::int32_t& one : accumulators) one = static_cast<std::int32_t>(random());
    std::vector<Rescale> rescales(layout.channels);
    for (Rescale& r : rescales) {
      r.bias = static_cast<std::int32_t>(random() % 1000);
      r.multiplier = static_cast<std::int64_t>(random() % 1000);
      r.divisor = static_cast<std::int64_t>(random() % (1 << 30)) + 1;
    }
    for (const int bits : {8, 16}) {
      std::array<Bytes, 2> codes;
      for (std::size_t k = 0; k < 2; ++k) {
        codes[k].resize(accumulators.size() * 2);
        ASSERT_EQ(requantize({Requantization::exact, bits, true}, layout, accumulators.data(), rescales.data(),
                             codes[k].data(), {}, k == 0 ? nullptr : &executor),
                  Status::ok);
      }
      EXPECT_EQ(codes[0], codes[1]);
    }
  }
  EXPECT_GT(runs, 0u);
}

}  // namespace
}  // namespace quantizer
