#include "oracle/spec.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <limits>

namespace assay {
namespace {

constexpr std::array<FormatInfo, 4> kFormats = {{
    {Format::f32, "f32", 32, 24, -126, 127},
    {Format::f16, "f16", 16, 11, -14, 15},
    {Format::bf16, "bf16", 16, 8, -126, 127},
    {Format::f64, "f64", 64, 53, -1022, 1023},
}};

int fraction_width(Format format) { return info(format).precision - 1; }

Bits magnitude(Format format, Bits bits) { return bits & ~sign_bit(format); }

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::optional<Granularity> granularity_named(std::string_view name) {
  for (const Granularity g : {Granularity::per_tensor, Granularity::per_axis, Granularity::per_block}) {
    if (to_string(g) == name) return g;
  }
  return std::nullopt;
}

std::size_t product(std::span<const std::int64_t> dims) {
  std::size_t n = 1;
  for (const std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  return n;
}

template <typename T>
std::string set_from(std::optional<T> parsed, T& field, std::string_view key, std::string_view value,
                     std::string_view wanted) {
  if (!parsed) return fmt::format("option {}: '{}' is not {}", key, value, wanted);
  field = *parsed;
  return {};
}

std::string set_integer(std::string_view key, std::string_view value, std::int64_t least, std::int64_t greatest,
                        auto& field) {
  const auto parsed = parse_integer(value);
  if (!parsed || *parsed < least || *parsed > greatest) {
    return fmt::format("option {}: '{}' is not a whole number from {} to {}", key, value, least, greatest);
  }
  field = static_cast<std::remove_reference_t<decltype(field)>>(*parsed);
  return {};
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- formats

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo& info(Format format) { return kFormats[static_cast<std::size_t>(format)]; }

std::optional<Format> format_named(std::string_view name) {
  for (const FormatInfo& row : kFormats) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

Bits sign_bit(Format format) { return Bits{1} << (info(format).width - 1); }

Bits infinity(Format format) { return sign_bit(format) - (Bits{1} << fraction_width(format)); }

Bits quiet_nan(Format format) { return infinity(format) | Bits{1} << (fraction_width(format) - 1); }

Bits largest_finite(Format format) { return infinity(format) - 1; }

Bits smallest_positive(Format) { return 1; }

bool is_nan(Format format, Bits bits) { return magnitude(format, bits) > infinity(format); }

bool is_inf(Format format, Bits bits) { return magnitude(format, bits) == infinity(format); }

bool is_finite(Format format, Bits bits) { return magnitude(format, bits) < infinity(format); }

bool is_zero(Format format, Bits bits) { return magnitude(format, bits) == 0; }

bool is_negative(Format format, Bits bits) { return (bits & sign_bit(format)) != 0; }

bool is_subnormal(Format format, Bits bits) {
  return !is_zero(format, bits) && magnitude(format, bits) < Bits{1} << fraction_width(format);
}

std::int64_t ordinal(Format format, Bits bits) {
  const auto m = static_cast<std::int64_t>(magnitude(format, bits));
  return is_negative(format, bits) ? -m : m;
}

Bits from_ordinal(Format format, std::int64_t ordinal) {
  return ordinal < 0 ? static_cast<Bits>(-ordinal) | sign_bit(format) : static_cast<Bits>(ordinal);
}

Bits next_up(Format format, Bits bits) {
  if (bits == infinity(format)) return bits;
  return from_ordinal(format, ordinal(format, bits) + 1);
}

Bits next_down(Format format, Bits bits) {
  if (bits == (infinity(format) | sign_bit(format))) return bits;
  return from_ordinal(format, ordinal(format, bits) - 1);
}

bool same_bits(Format format, Bits a, Bits b) { return a == b || (is_nan(format, a) && is_nan(format, b)); }

double to_double(Format format, Bits bits) {
  if (format == Format::f64) return std::bit_cast<double>(bits);
  if (is_nan(format, bits)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = is_negative(format, bits) ? -1.0 : 1.0;
  if (is_inf(format, bits)) return sign * std::numeric_limits<double>::infinity();
  // Every f32, f16 and bf16 value, subnormals included, is a normal double: assemble its pattern directly.
  const int width = fraction_width(format);
  Bits fraction = magnitude(format, bits) & ((Bits{1} << width) - 1);
  int exponent = static_cast<int>(magnitude(format, bits) >> width);
  if (exponent == 0) {
    if (fraction == 0) return sign * 0.0;
    const int shift = width + 1 - static_cast<int>(std::bit_width(fraction));
    fraction = fraction << shift & ((Bits{1} << width) - 1);
    exponent = 1 - shift;
  }
  const int unbiased = exponent - 1 + info(format).min_exponent;
  const Bits pattern = (is_negative(format, bits) ? Bits{1} << 63 : 0) | static_cast<Bits>(unbiased + 1023) << 52 |
                       fraction << (52 - width);
  return std::bit_cast<double>(pattern);
}

std::string to_hex(Format format, Bits bits) { return fmt::format("{:0{}x}", bits, info(format).width / 4); }

std::optional<Bits> from_hex(Format format, std::string_view text) {
  Bits bits = 0;
  if (text.size() != static_cast<std::size_t>(info(format).width) / 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return bits;
}

std::string show(Format format, Bits bits) {
  const std::string hex = to_hex(format, bits);
  if (is_nan(format, bits)) return fmt::format("nan [{}]", hex);
  return fmt::format("{:a} [{}]", to_double(format, bits), hex);
}

// ---------------------------------------------------------------------------------------------------- schemes

std::string_view to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::per_tensor:
      return "per_tensor";
    case Granularity::per_axis:
      return "per_axis";
    case Granularity::per_block:
      return "per_block";
  }
  return "?";
}

CodeRange code_range(const Options& options) {
  const int count = 1 << options.bits;
  if (!options.is_signed) return {0, count - 1};
  return {-count / 2 + (options.narrow_range ? 1 : 0), count / 2 - 1};
}

std::string set_option(Options& options, std::string_view key, std::string_view value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  constexpr std::string_view kFormatNames = "f32, f16, bf16 or f64";
  if (key == "bits") return set_integer(key, value, 2, 8, options.bits);
  if (key == "block") return set_integer(key, value, 1, kMost, options.block);
  if (key == "axis") return set_integer(key, value, 0, 15, options.axis);
  if (key == "signed") return set_from(parse_bool(value), options.is_signed, key, value, "true or false");
  if (key == "narrow_range") return set_from(parse_bool(value), options.narrow_range, key, value, "true or false");
  if (key == "scale_format") return set_from(format_named(value), options.scale_format, key, value, kFormatNames);
  if (key == "output_format") return set_from(format_named(value), options.output_format, key, value, kFormatNames);
  if (key == "granularity") {
    return set_from(granularity_named(value), options.granularity, key, value, "per_tensor, per_axis or per_block");
  }
  return fmt::format(
      "unknown option '{}'; there are bits, signed, narrow_range, scale_format, output_format, granularity, block and "
      "axis",
      key);
}

std::vector<std::pair<std::string, std::string>> option_list(const Options& options) {
  const auto text = [](bool b) { return std::string(b ? "true" : "false"); };
  return {
      {"bits", std::to_string(options.bits)},
      {"signed", text(options.is_signed)},
      {"narrow_range", text(options.narrow_range)},
      {"scale_format", std::string(info(options.scale_format).name)},
      {"output_format", std::string(info(options.output_format).name)},
      {"granularity", std::string(to_string(options.granularity))},
      {"block", std::to_string(options.block)},
      {"axis", std::to_string(options.axis)},
  };
}

// ---------------------------------------------------------------------------------------------------- blocks

std::size_t element_count(const Shape& shape) { return product(shape); }

std::vector<Block> cut(const Shape& shape, const Options& options) {
  const std::size_t n = element_count(shape);
  std::vector<Block> blocks;
  switch (options.granularity) {
    case Granularity::per_tensor:
      blocks.push_back({0, 1, n, n});
      break;
    case Granularity::per_axis: {
      const auto axis = static_cast<std::size_t>(options.axis);
      const std::span dims(shape);
      const auto channels = static_cast<std::size_t>(shape[axis]);
      const std::size_t inner = product(dims.subspan(axis + 1));
      for (std::size_t c = 0; c < channels; ++c) {
        blocks.push_back({c * inner, product(dims.first(axis)), channels * inner, inner});
      }
      break;
    }
    case Granularity::per_block: {
      const auto cols = static_cast<std::size_t>(shape.back());
      const auto block = static_cast<std::size_t>(options.block);
      for (std::size_t row = 0; row < n; row += cols) {
        for (std::size_t col = 0; col < cols; col += block) {
          const std::size_t size = std::min(block, cols - col);
          blocks.push_back({row + col, 1, size, size});
        }
      }
      break;
    }
  }
  return blocks;
}

std::string check_options(const Options& options) {
  if (options.bits < 2 || options.bits > 8) return fmt::format("bits is {}; codes have 2 to 8 bits", options.bits);
  if (options.block < 1) return fmt::format("block is {}; a block has 1 element or more", options.block);
  if (options.axis < 0) return fmt::format("axis is {}; axes count from 0", options.axis);
  return {};
}

std::string check_shape(const Shape& shape, const Options& options) {
  if (std::string problem = check_options(options); !problem.empty()) return problem;
  if (shape.empty()) return "the shape has no dimension";
  std::int64_t left = std::int64_t{1} << 40;
  for (const std::int64_t d : shape) {
    if (d < 1) return fmt::format("the shape has a dimension of {}; dimensions are 1 or more", d);
    if (d > left) return "the shape has more than 2^40 elements";
    left /= d;
  }
  const auto rank = static_cast<int>(shape.size());
  if (options.granularity == Granularity::per_axis && options.axis >= rank) {
    return fmt::format("axis {} is outside a shape of {} dimension{}", options.axis, rank, rank == 1 ? "" : "s");
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------- case

namespace {
constexpr std::array<std::pair<Operation, std::string_view>, 4> kOperations = {{
    {Operation::choose_qparams, "choose_qparams"},
    {Operation::quantize, "quantize"},
    {Operation::dequantize, "dequantize"},
    {Operation::round_trip, "round_trip"},
}};
}  // namespace

std::string_view to_string(Operation operation) { return kOperations[static_cast<std::size_t>(operation)].second; }

std::optional<Operation> operation_named(std::string_view name) {
  for (const auto& [operation, text] : kOperations) {
    if (text == name) return operation;
  }
  return std::nullopt;
}

bool takes_qparams(Operation operation) {
  return operation == Operation::quantize || operation == Operation::dequantize;
}

Case make_case(Operation op, std::string scheme, const Options& options, Format format, std::vector<Bits> x) {
  Case c;
  c.op = op;
  c.scheme = std::move(scheme);
  c.options = options;
  c.format = format;
  c.shape = {static_cast<std::int64_t>(x.size())};
  c.x = std::move(x);
  return c;
}

std::string check_case(const Case& c) {
  if (std::string problem = check_shape(c.shape, c.options); !problem.empty()) return problem;
  const bool has_codes = c.op == Operation::dequantize;
  if (has_codes ? !c.x.empty() : !c.codes.empty()) {
    return fmt::format("{} takes {}", to_string(c.op), has_codes ? "codes, not x" : "x, not codes");
  }
  const auto too_wide = [](Format format, Bits bits) {
    return format != Format::f64 && bits >> info(format).width != 0;
  };
  for (const Bits x : c.x) {
    if (too_wide(c.format, x)) {
      return fmt::format("x holds {:x}, which is wider than the {} bits of {}", x, info(c.format).width,
                         info(c.format).name);
    }
  }
  const std::size_t given = has_codes ? c.codes.size() : c.x.size();
  if (given != element_count(c.shape)) {
    return fmt::format("{} has {} elements but the shape has {}", has_codes ? "codes" : "x", given,
                       element_count(c.shape));
  }
  const std::size_t blocks = takes_qparams(c.op) ? cut(c.shape, c.options).size() : 0;
  if (c.given.size() != blocks) {
    return fmt::format("{} takes {} scale and zero point pair{}, but {} given", to_string(c.op), blocks,
                       blocks == 1 ? "" : "s", c.given.size());
  }
  const CodeRange range = code_range(c.options);
  for (const QParams& q : c.given) {
    if (too_wide(c.options.scale_format, q.scale)) {
      return fmt::format("a given scale is {:x}, which is wider than the {} bits of {}", q.scale,
                         info(c.options.scale_format).width, info(c.options.scale_format).name);
    }
    if (is_zero(c.options.scale_format, q.scale) || is_negative(c.options.scale_format, q.scale) ||
        !is_finite(c.options.scale_format, q.scale)) {
      return fmt::format("a given scale is {}; scales are positive and finite", show(c.options.scale_format, q.scale));
    }
    if (q.zero_point < range.qmin || q.zero_point > range.qmax) {
      return fmt::format("zero point {} is outside the codes {}..{}", q.zero_point, range.qmin, range.qmax);
    }
  }
  for (const std::int32_t code : c.codes) {
    if (code < range.qmin || code > range.qmax) {
      return fmt::format("code {} is outside {}..{}", code, range.qmin, range.qmax);
    }
  }
  return {};
}

}  // namespace assay
