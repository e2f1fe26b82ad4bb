// Elements per second, next to loops that do less: one that only moves the bytes, and the two usual quantizers, which
// are not exact. The plain loops are compiled for the same machines, so that the compiler's vectorizer has a fair
// chance.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "quantizer.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__clang__)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx512bw", "avx2", "default")))
#elif defined(__x86_64__) && defined(__linux__)
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FOR_EACH_MACHINE
#endif

namespace {

constexpr float kScale = 0.0317f;
constexpr std::int32_t kZeroPoint = 3;

FOR_EACH_MACHINE void plain_copy(const std::uint32_t* x, std::size_t n, std::int8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::int8_t>(x[i]);
}

FOR_EACH_MACHINE void plain_reciprocal(const float* x, std::size_t n, std::int8_t* codes) {
  const float inverse = 1.0f / kScale;
  for (std::size_t i = 0; i < n; ++i) {
    float code = __builtin_rintf(x[i] * inverse) + static_cast<float>(kZeroPoint);
    code = code < -128.0f ? -128.0f : code;
    code = code > 127.0f ? 127.0f : code;
    codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(code));
  }
}

FOR_EACH_MACHINE void plain_divide(const float* x, std::size_t n, std::int8_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    float code = __builtin_rintf(x[i] / kScale) + static_cast<float>(kZeroPoint);
    code = code < -128.0f ? -128.0f : code;
    code = code > 127.0f ? 127.0f : code;
    codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(code));
  }
}

FOR_EACH_MACHINE void plain_widen(const std::int8_t* codes, std::size_t n, float* values) {
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(codes[i] - kZeroPoint) * kScale;
}

struct Buffers {
  explicit Buffers(std::size_t n) : x(n), values(n), codes(n) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    std::vector<float> sample(65536);  // drawing 64 Mi normals would take longer than the benchmark
    for (float& element : sample) element = std::fmin(std::fmax(normal(random), -4.0f), 3.9f);
    for (std::size_t i = 0; i < n; ++i) x[i] = sample[(i + i / sample.size() * 17) % sample.size()];
  }
  std::vector<float> x, values;
  std::vector<std::int8_t> codes;
};

Buffers& buffers() {
  static Buffers all(std::size_t{64} << 20);
  return all;
}

template <class Body>
void add(const std::string& name, Body body) {
  auto* const bench = benchmark::RegisterBenchmark(name.c_str(), [body](benchmark::State& state) mutable {
    const auto n = static_cast<std::size_t>(state.range(0));
    Buffers& b = buffers();
    for (auto _ : state) {
      body(b, n);
      benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
  });
  bench->Arg(16 << 10)->Arg(1 << 20)->Arg(64 << 20);
}

void add_all() {
  using namespace quantizer;
  add("plain/copy", [](Buffers& b, std::size_t n) {
    plain_copy(reinterpret_cast<const std::uint32_t*>(b.x.data()), n, b.codes.data());
  });
  add("plain/reciprocal", [](Buffers& b, std::size_t n) { plain_reciprocal(b.x.data(), n, b.codes.data()); });
  add("plain/divide", [](Buffers& b, std::size_t n) { plain_divide(b.x.data(), n, b.codes.data()); });
  add("plain/dequantize", [](Buffers& b, std::size_t n) { plain_widen(b.codes.data(), n, b.values.data()); });
  Spec spec;
  spec.scheme = Scheme::asymmetric;
  for (int i = 0; isas()[i] != nullptr; ++i) {
    const Isa isa{i};
    const std::string name = isas()[i];
    add(name + "/quantize", [=](Buffers& b, std::size_t n) {
      quantize(spec, per_tensor(n), b.x.data(), &kScale, &kZeroPoint, b.codes.data(), nullptr, isa);
    });
    add(name + "/dequantize", [=](Buffers& b, std::size_t n) {
      dequantize(spec, per_tensor(n), b.codes.data(), &kScale, &kZeroPoint, b.values.data(), isa);
    });
    add(name + "/choose_qparams", [=](Buffers& b, std::size_t n) {
      float scale;
      std::int32_t zero_point;
      choose_qparams(spec, per_tensor(n), b.x.data(), &scale, &zero_point, nullptr, isa);
      benchmark::DoNotOptimize(scale);
    });
    add(name + "/quantize_dynamic", [=](Buffers& b, std::size_t n) {
      float scale;
      std::int32_t zero_point;
      quantize_dynamic(spec, per_tensor(n), b.x.data(), &scale, &zero_point, b.codes.data(), nullptr, isa);
      benchmark::DoNotOptimize(scale);
    });
    add(name + "/quantize_dynamic_blocks_of_32",
        [=, scales = std::vector<float>((64 << 20) / 32), zero_points = std::vector<std::int32_t>((64 << 20) / 32)](
            Buffers& b, std::size_t n) mutable {
          quantize_dynamic(spec, per_block(1, n, 32), b.x.data(), scales.data(), zero_points.data(), b.codes.data(),
                           nullptr, isa);
        });
    add(name + "/quantize_channels_last",
        [=, scales = std::vector<float>(1024, kScale), zero_points = std::vector<std::int32_t>(1024, kZeroPoint)](
            Buffers& b, std::size_t n) {
          quantize(spec, per_channel(n / 1024, 1024, 1), b.x.data(), scales.data(), zero_points.data(), b.codes.data(),
                   nullptr, isa);
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
}
