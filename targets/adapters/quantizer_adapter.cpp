#include "targets/adapters/quantizer_adapter.h"

#include <optional>

#include "targets/quantizer/quantizer.h"

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
    case Format::f64:
      break;
  }
  return std::nullopt;
}

std::optional<quantizer::Spec> to_spec(const Request& request) {
  const Options& options = request.options;
  const auto input = to_format(request.format), scale = to_format(options.scale_format),
             output = to_format(options.output_format);
  if (!input || !scale || !output) return std::nullopt;
  quantizer::Spec spec;
  if (request.scheme == "assay.symmetric") {
    spec.symmetric = true;
  } else if (request.scheme == "assay.asymmetric") {
    spec.symmetric = false;
  } else {
    return std::nullopt;
  }
  spec.bits = options.bits;
  spec.is_signed = options.is_signed;
  spec.narrow_range = options.narrow_range;
  spec.scale_format = *scale;
  spec.input_format = *input;
  spec.output_format = *output;
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

Target on_isa(quantizer::Isa isa) {
  Target target;
  target.isa = quantizer::isas()[isa.index];
  target.name = "quantizer@" + target.isa;
  target.version = "0.1.0";
  target.schemes = {"assay.symmetric", "assay.asymmetric"};
  target.choose_qparams = [isa](const Request& request, const void* x, void* scales, std::int32_t* zero_points,
                                Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status = quantizer::choose_qparams(*spec, to_layout(request), x, scales, zero_points, &found, isa);
    report(found, counts);
    return to_status(status);
  };
  target.quantize = [isa](const Request& request, const void* x, const void* scales, const std::int32_t* zero_points,
                          void* codes, Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status = quantizer::quantize(*spec, to_layout(request), x, scales, zero_points, codes, &found, isa);
    report(found, counts);
    return to_status(status);
  };
  target.dequantize = [isa](const Request& request, const void* codes, const void* scales,
                            const std::int32_t* zero_points, void* values) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    return to_status(quantizer::dequantize(*spec, to_layout(request), codes, scales, zero_points, values, isa));
  };
  target.quantize_dynamic = [isa](const Request& request, const void* x, void* scales, std::int32_t* zero_points,
                                  void* codes, Counts* counts) {
    const auto spec = to_spec(request);
    if (!spec) return Status::unsupported;
    quantizer::Counts found;
    const auto status =
        quantizer::quantize_dynamic(*spec, to_layout(request), x, scales, zero_points, codes, &found, isa);
    report(found, counts);
    return to_status(status);
  };
  target.other_isas = [isa] {
    std::vector<Target> others;
    for (int i = 0; quantizer::isas()[i] != nullptr; ++i) {
      if (i != isa.index) others.push_back(on_isa(quantizer::Isa{i}));
    }
    return others;
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
