#include "targets/adapters/quantizer_adapter.h"

#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "targets/quantizer/pack.h"
#include "targets/quantizer/quantizer.h"
#include "targets/quantizer/requantize.h"

namespace assay {
namespace {

std::optional<quantizer::FloatFormat> to_format(Format format) {
  switch (format) {
    case Format::f32:
      return quantizer::FloatFormat::f32;
    case Format::f16:
      return quantizer::FloatFormat::f16;
    case Format::bf16:
      return quantizer::FloatFormat::bf16;
    case Format::e4m3fn:
      return quantizer::FloatFormat::e4m3fn;
    case Format::e8m0:
      return quantizer::FloatFormat::e8m0;
    default:
      return std::nullopt;
  }
}

std::optional<quantizer::CodeFormat> to_code_format(std::optional<Format> format) {
  if (!format) return quantizer::CodeFormat::integer;
  switch (*format) {
    case Format::e4m3fn:
      return quantizer::CodeFormat::e4m3fn;
    case Format::e5m2:
      return quantizer::CodeFormat::e5m2;
    case Format::e2m1:
      return quantizer::CodeFormat::e2m1;
    default:
      return std::nullopt;
  }
}

constexpr std::array<std::pair<std::string_view, quantizer::Scheme>, 5> kSchemes = {{
    {"assay.symmetric", quantizer::Scheme::symmetric},
    {"assay.asymmetric", quantizer::Scheme::asymmetric},
    {"assay.float", quantizer::Scheme::floating},
    {"assay.mx", quantizer::Scheme::mx},
    {"assay.nvfp4", quantizer::Scheme::nvfp4},
}};

constexpr std::array<std::pair<std::string_view, quantizer::Requantization>, 4> kRequantizations = {{
    {"fixed_point.exact", quantizer::Requantization::exact},
    {"fixed_point.single_rounding", quantizer::Requantization::fixed_single_rounding},
    {"fixed_point.double_rounding", quantizer::Requantization::fixed_double_rounding},
    {"fixed_point.float_multiplier", quantizer::Requantization::float_multiplier},
}};

template <typename Table>
auto find(const Table& table, std::string_view name) -> std::optional<decltype(table[0].second)> {
  for (const auto& [scheme, value] : table) {
    if (scheme == name) return value;
  }
  return std::nullopt;
}

quantizer::ScaleRounding to_rounding(ScaleRounding rounding) {
  switch (rounding) {
    case ScaleRounding::floor:
      return quantizer::ScaleRounding::floor;
    case ScaleRounding::ceil:
      return quantizer::ScaleRounding::ceil;
    case ScaleRounding::even:
      return quantizer::ScaleRounding::even;
    case ScaleRounding::rceil:
      return quantizer::ScaleRounding::rceil;
  }
  return quantizer::ScaleRounding::floor;
}

std::optional<quantizer::Spec> to_spec(const Request& request) {
  const Options& options = request.options;
  const auto input = to_format(request.format), scale = to_format(options.scale_format),
             output = to_format(options.output_format);
  const auto codes = to_code_format(options.code_format);
  const auto scheme = find(kSchemes, request.scheme);
  if (!input || !scale || !output || !codes || !scheme) return std::nullopt;
  quantizer::Spec spec;
  spec.scheme = *scheme;
  spec.bits = options.bits;
  spec.is_signed = options.is_signed;
  spec.narrow_range = options.narrow_range;
  spec.scale_format = *scale;
  spec.input_format = *input;
  spec.output_format = *output;
  spec.code_format = *codes;
  spec.scale_rounding = to_rounding(options.scale_rounding);
  if (request.tensor_scale != 0)
    spec.tensor_scale = std::bit_cast<float>(static_cast<std::uint32_t>(request.tensor_scale));
  return spec;
}

std::size_t product(const Shape& shape, std::size_t from, std::size_t to) {
  std::size_t result = 1;
  for (std::size_t i = from; i < to; ++i) result *= static_cast<std::size_t>(shape[i]);
  return result;
}

/// The shape fits the options; see check_shape().
quantizer::Layout to_layout(const Request& request) {
  const Shape& shape = request.shape;
  switch (request.options.granularity) {
    case Granularity::per_tensor:
      break;
    case Granularity::per_axis: {
      const auto axis = static_cast<std::size_t>(request.options.axis);
      return quantizer::per_channel(product(shape, 0, axis), product(shape, axis, axis + 1),
                                    product(shape, axis + 1, shape.size()));
    }
    case Granularity::per_tile:
      if (shape.size() > 1) {
        const std::size_t rank = shape.size();
        return quantizer::per_tile(product(shape, 0, rank - 2), product(shape, rank - 2, rank - 1),
                                   product(shape, rank - 1, rank), static_cast<std::size_t>(request.options.block_rows),
                                   static_cast<std::size_t>(request.options.block));
      }
      [[fallthrough]];  // one dimension has one row
    case Granularity::per_block:
      return quantizer::per_block(product(shape, 0, shape.size() - 1), product(shape, shape.size() - 1, shape.size()),
                                  static_cast<std::size_t>(request.options.block));
  }
  return quantizer::per_tensor(product(shape, 0, shape.size()));
}

Status to_status(quantizer::Status status) { return status == quantizer::Status::ok ? Status::ok : Status::failed; }

void report(const quantizer::Counts& from, Counts* to) {
  if (to != nullptr) *to = {from.nan, from.inf, from.saturated};
}

constexpr std::size_t kLeastElements = 8;  // so that even small cases are cut into pieces

/// An executor that starts threads of its own for every call, and hands out the tasks in reverse.
class Threads {
 public:
  explicit Threads(unsigned count) : count_(count) {}
  quantizer::Executor executor() { return {this, run, kLeastElements}; }

 private:
  static void run(void* context, std::size_t tasks, void (*task)(void*, std::size_t), void* argument) {
    std::atomic<std::size_t> left{tasks};
    const auto work = [&] {
      for (std::size_t i = left.fetch_sub(1); i > 0 && i <= tasks; i = left.fetch_sub(1)) task(argument, i - 1);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < static_cast<Threads*>(context)->count_; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  unsigned count_;
};

/// Where a row of targets runs: an instruction set, and on threads of its own if there are any.
struct Place {
  quantizer::Isa isa;
  unsigned threads = 1;
};

/// Calls work(executor) with what the place has: nullptr for one thread.
template <typename Work>
quantizer::Status at(Place place, Work work) {
  if (place.threads < 2) return work(nullptr);
  Threads threads(place.threads);
  const quantizer::Executor executor = threads.executor();
  return work(&executor);
}

void add_quantization(Target& target, Place place) {
  target.choose_qparams = [place](const Request& request, const void* x, void* scales, std::int32_t* zero_points,
                                  Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status = at(place, [&](const quantizer::Executor* executor) {
      return quantizer::choose_qparams(*spec, to_layout(request), x, scales, zero_points, &found, place.isa, executor);
    });
    report(found, counts);
    return to_status(status);
  };
  target.quantize = [place](const Request& request, const void* x, const void* scales, const std::int32_t* zero_points,
                            void* codes, Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status = at(place, [&](const quantizer::Executor* executor) {
      return quantizer::quantize(*spec, to_layout(request), x, scales, zero_points, codes, &found, place.isa, executor);
    });
    report(found, counts);
    return to_status(status);
  };
  target.dequantize = [place](const Request& request, const void* codes, const void* scales,
                              const std::int32_t* zero_points, void* values) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    return to_status(at(place, [&](const quantizer::Executor* executor) {
      return quantizer::dequantize(*spec, to_layout(request), codes, scales, zero_points, values, place.isa, executor);
    }));
  };
  target.quantize_dynamic = [place](const Request& request, const void* x, void* scales, std::int32_t* zero_points,
                                    void* codes, Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status = at(place, [&](const quantizer::Executor* executor) {
      return quantizer::quantize_dynamic(*spec, to_layout(request), x, scales, zero_points, codes, &found, place.isa,
                                         executor);
    });
    report(found, counts);
    return to_status(status);
  };
  target.choose_tensor_scale = [place](const Request& request, const void* x, Bits* tensor_scale) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    float chosen = 0;
    const auto status = at(place, [&](const quantizer::Executor* executor) {
      return quantizer::choose_tensor_scale(*spec, element_count(request.shape), x, &chosen, place.isa, executor);
    });
    *tensor_scale = std::bit_cast<std::uint32_t>(chosen);
    return to_status(status);
  };
}

quantizer::BitOrder to_order(Packing packing) {
  return packing == Packing::msb_first ? quantizer::BitOrder::msb_first : quantizer::BitOrder::lsb_first;
}

void add_packing(Target& target, Place place) {
  target.pack = [place](const Request& request, const void* codes, void* packed) {
    const Options& options = request.options;
    return to_status(at(place, [&](const quantizer::Executor* executor) {
      return quantizer::pack(code_width(options), to_order(options.packing), codes, element_count(request.shape),
                             packed, place.isa, executor);
    }));
  };
  target.unpack = [place](const Request& request, const void* packed, void* codes) {
    const Options& options = request.options;
    const bool is_signed = options.is_signed && !options.code_format;
    return to_status(at(place, [&](const quantizer::Executor* executor) {
      return quantizer::unpack(code_width(options), is_signed, to_order(options.packing), packed,
                               element_count(request.shape), codes, place.isa, executor);
    }));
  };
}

std::vector<quantizer::Rescale> to_rescales(const Request& request, const Rescale* rescales) {
  std::vector<quantizer::Rescale> all(quantizer::block_count(to_layout(request)));
  for (std::size_t b = 0; b < all.size(); ++b) {
    const Rescale& r = rescales[b];
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(r.scale));
    all[b] = {r.bias, r.zero_point, r.multiplier, r.divisor, r.shift, scale};
  }
  return all;
}

void add_requantization(Target& target, Place place) {
  target.requantize = [place](const Request& request, const std::int32_t* accumulators, const Rescale* rescales,
                              void* codes) {
    const auto how = find(kRequantizations, request.scheme);
    if (!how) return Status::unsupported;
    const quantizer::RequantizeSpec spec{*how, request.options.bits, request.options.is_signed};
    const std::vector<quantizer::Rescale> all = to_rescales(request, rescales);
    return to_status(at(place, [&](const quantizer::Executor* executor) {
      return quantizer::requantize(spec, to_layout(request), accumulators, all.data(), codes, place.isa, executor);
    }));
  };
}

Target at_place(Place place) {
  Target target;
  target.isa = quantizer::isas()[place.isa.index];
  target.name = "quantizer@" + target.isa;
  target.version = "0.1.0";
  for (const auto& [name, scheme] : kSchemes) target.schemes.emplace_back(name);
  for (const auto& [name, how] : kRequantizations) target.schemes.emplace_back(name);
  add_quantization(target, place);
  add_packing(target, place);
  add_requantization(target, place);
  return target;
}

Target on_isa(quantizer::Isa isa) {
  Target target = at_place({isa});
  target.other_isas = [isa] {
    std::vector<Target> others;
    for (int i = 0; quantizer::isas()[i] != nullptr; ++i) {
      if (i != isa.index) others.push_back(on_isa(quantizer::Isa{i}));
    }
    return others;
  };
  if (isa.index != 0) return target;
  // The work is cut the same way on every instruction set, and threads take long to start.
  target.other_thread_counts = [isa] {
    Target other = at_place({isa, 3});
    other.name += " on 3 threads";
    return std::vector<Target>{other};
  };
  return target;
}

}  // namespace

std::vector<Target> quantizer_targets() {
  std::vector<Target> targets;
  for (int i = 0; quantizer::isas()[i] != nullptr; ++i) targets.push_back(on_isa(quantizer::Isa{i}));
  return targets;
}

std::vector<std::string> compiled_isas() {
  std::vector<std::string> names;
  for (const char* const* name = quantizer::compiled_isas(); *name != nullptr; ++name) names.emplace_back(*name);
  return names;
}

Target best_quantizer() {
  Target best = on_isa(quantizer::Isa{0});
  best.name = "quantizer";
  return best;
}

}  // namespace assay
