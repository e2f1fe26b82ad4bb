#include "oracle/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr std::array<FormatInfo, 15> kFormats = {{
    {Format::f32, "f32", 32, 24, -126, 127, Specials::ieee},
    {Format::f16, "f16", 16, 11, -14, 15, Specials::ieee},
    {Format::bf16, "bf16", 16, 8, -126, 127, Specials::ieee},
    {Format::f64, "f64", 64, 53, -1022, 1023, Specials::ieee},
    {Format::e4m3fn, "e4m3fn", 8, 4, -6, 8, Specials::nan_all_ones},
    {Format::e5m2, "e5m2", 8, 3, -14, 15, Specials::ieee},
    {Format::e2m1, "e2m1", 4, 2, 0, 2, Specials::none},
    {Format::e8m0, "e8m0", 8, 1, -127, 127, Specials::unsigned_power},
    {Format::e2m3, "e2m3", 6, 4, 0, 2, Specials::none},
    {Format::e3m2, "e3m2", 6, 3, -2, 4, Specials::none},
    {Format::e4m3, "e4m3", 8, 4, -6, 7, Specials::ieee},
    {Format::e3m4, "e3m4", 8, 5, -2, 3, Specials::ieee},
    {Format::e4m3fnuz, "e4m3fnuz", 8, 4, -7, 7, Specials::nan_minus_zero},
    {Format::e5m2fnuz, "e5m2fnuz", 8, 3, -15, 15, Specials::nan_minus_zero},
    {Format::e4m3b11fnuz, "e4m3b11fnuz", 8, 4, -10, 4, Specials::nan_minus_zero},
}};

int fraction_width(Format format) { return info(format).precision - 1; }

int hex_digits(Format format) { return (info(format).width + 3) / 4; }

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

template <typename Enum>
using Names = std::span<const std::pair<Enum, std::string_view>>;

template <typename Enum>
std::string_view name_of(Names<Enum> names, Enum value) {
  return names[static_cast<std::size_t>(value)].second;
}

template <typename Enum>
std::optional<Enum> named(Names<Enum> names, std::string_view name) {
  for (const auto& [value, text] : names) {
    if (text == name) return value;
  }
  return std::nullopt;
}

constexpr std::array<std::pair<Granularity, std::string_view>, 4> kGranularities = {{
    {Granularity::per_tensor, "per_tensor"},
    {Granularity::per_axis, "per_axis"},
    {Granularity::per_block, "per_block"},
    {Granularity::per_tile, "per_tile"},
}};
constexpr std::array<std::pair<ScaleRounding, std::string_view>, 4> kScaleRoundings = {{
    {ScaleRounding::floor, "floor"},
    {ScaleRounding::ceil, "ceil"},
    {ScaleRounding::even, "even"},
    {ScaleRounding::rceil, "rceil"},
}};
constexpr std::array<std::pair<Packing, std::string_view>, 3> kPackings = {{
    {Packing::none, "none"},
    {Packing::lsb_first, "lsb_first"},
    {Packing::msb_first, "msb_first"},
}};
constexpr std::array<std::pair<Operation, std::string_view>, 5> kOperations = {{
    {Operation::choose_qparams, "choose_qparams"},
    {Operation::quantize, "quantize"},
    {Operation::dequantize, "dequantize"},
    {Operation::round_trip, "round_trip"},
    {Operation::requantize, "requantize"},
}};

std::optional<Format> format_among(std::initializer_list<Format> allowed, std::string_view name) {
  const auto format = format_named(name);
  for (const Format one : allowed) {
    if (format == one) return one;
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

Bits sign_bit(Format format) {
  return info(format).specials == Specials::unsigned_power ? 0 : Bits{1} << (info(format).width - 1);
}

bool has_infinity(Format format) { return info(format).specials == Specials::ieee; }

bool has_nan(Format format) { return info(format).specials != Specials::none; }

Bits infinity(Format format) {
  assert(has_infinity(format));
  return sign_bit(format) - (Bits{1} << fraction_width(format));
}

Bits quiet_nan(Format format) {
  assert(has_nan(format));
  switch (info(format).specials) {
    case Specials::ieee:
      return infinity(format) | Bits{1} << (fraction_width(format) - 1);
    case Specials::nan_minus_zero:
      return sign_bit(format);
    default:
      return largest_finite(format) + 1;
  }
}

Bits largest_finite(Format format) {
  switch (info(format).specials) {
    case Specials::ieee:
      return infinity(format) - 1;
    case Specials::nan_all_ones:
      return sign_bit(format) - 2;
    case Specials::unsigned_power:
      return (Bits{1} << info(format).width) - 2;
    default:
      return sign_bit(format) - 1;
  }
}

Bits smallest_positive(Format format) { return info(format).specials == Specials::unsigned_power ? 0 : 1; }

bool is_nan(Format format, Bits bits) {
  if (info(format).specials == Specials::nan_minus_zero) return bits == sign_bit(format);
  return magnitude(format, bits) > (has_infinity(format) ? infinity(format) : largest_finite(format));
}

bool is_inf(Format format, Bits bits) { return has_infinity(format) && magnitude(format, bits) == infinity(format); }

bool is_finite(Format format, Bits bits) {
  return magnitude(format, bits) <= largest_finite(format) && !is_nan(format, bits);
}

bool is_zero(Format format, Bits bits) {
  return magnitude(format, bits) == 0 && info(format).specials != Specials::unsigned_power && !is_nan(format, bits);
}

bool is_negative(Format format, Bits bits) { return (bits & sign_bit(format)) != 0; }

bool is_subnormal(Format format, Bits bits) {
  if (info(format).specials == Specials::unsigned_power || is_nan(format, bits)) return false;
  return !is_zero(format, bits) && magnitude(format, bits) < Bits{1} << fraction_width(format);
}

std::int64_t ordinal(Format format, Bits bits) {
  // The patterns of e8m0 start at a positive number, not at zero.
  if (info(format).specials == Specials::unsigned_power) return static_cast<std::int64_t>(bits) + 1;
  const auto m = static_cast<std::int64_t>(magnitude(format, bits));
  return is_negative(format, bits) ? -m : m;
}

Bits from_ordinal(Format format, std::int64_t ordinal) {
  if (info(format).specials == Specials::unsigned_power) return static_cast<Bits>(ordinal - 1);
  return ordinal < 0 ? static_cast<Bits>(-ordinal) | sign_bit(format) : static_cast<Bits>(ordinal);
}

Bits next_up(Format format, Bits bits) {
  const Bits last = has_infinity(format) ? infinity(format) : largest_finite(format);
  if (bits == last) return bits;
  return from_ordinal(format, ordinal(format, bits) + 1);
}

Bits next_down(Format format, Bits bits) {
  const bool is_power = info(format).specials == Specials::unsigned_power;
  const Bits last = (has_infinity(format) ? infinity(format) : largest_finite(format)) | sign_bit(format);
  if (bits == (is_power ? smallest_positive(format) : last)) return bits;
  return from_ordinal(format, ordinal(format, bits) - 1);
}

bool same_bits(Format format, Bits a, Bits b) { return a == b || (is_nan(format, a) && is_nan(format, b)); }

double to_double(Format format, Bits bits) {
  if (format == Format::f64) return std::bit_cast<double>(bits);
  if (is_nan(format, bits)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = is_negative(format, bits) ? -1.0 : 1.0;
  if (is_inf(format, bits)) return sign * std::numeric_limits<double>::infinity();
  if (info(format).specials == Specials::unsigned_power)
    return std::ldexp(1.0, static_cast<int>(bits) + info(format).min_exponent);
  // Every other value, subnormals of its format included, is a normal double: assemble its pattern directly.
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

std::string to_hex(Format format, Bits bits) { return fmt::format("{:0{}x}", bits, hex_digits(format)); }

std::optional<Bits> from_hex(Format format, std::string_view text) {
  Bits bits = 0;
  if (text.size() != static_cast<std::size_t>(hex_digits(format))) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (info(format).width < 64 && bits >> info(format).width != 0) return std::nullopt;
  return bits;
}

std::string show(Format format, Bits bits) {
  const std::string hex = to_hex(format, bits);
  if (is_nan(format, bits)) return fmt::format("nan [{}]", hex);
  return fmt::format("{:a} [{}]", to_double(format, bits), hex);
}

// ---------------------------------------------------------------------------------------------------- schemes

std::string_view to_string(Granularity granularity) { return name_of<Granularity>(kGranularities, granularity); }
std::string_view to_string(ScaleRounding rounding) { return name_of<ScaleRounding>(kScaleRoundings, rounding); }
std::string_view to_string(Packing packing) { return name_of<Packing>(kPackings, packing); }

int code_width(const Options& options) { return options.code_format ? info(*options.code_format).width : options.bits; }

CodeRange code_range(const Options& options) {
  if (options.code_format) {
    const auto top = static_cast<int>(largest_finite(*options.code_format));
    return {top | static_cast<int>(sign_bit(*options.code_format)), top};
  }
  const int count = 1 << options.bits;
  if (!options.is_signed) return {0, count - 1};
  return {-count / 2 + (options.narrow_range ? 1 : 0), count / 2 - 1};
}

bool is_code(const Options& options, int code) {
  if (options.code_format) {
    return code >= 0 && code >> code_width(options) == 0 && is_finite(*options.code_format, static_cast<Bits>(code));
  }
  const CodeRange range = code_range(options);
  return code >= range.qmin && code <= range.qmax;
}

std::int64_t code_ordinal(const Options& options, int code) {
  return options.code_format ? ordinal(*options.code_format, static_cast<Bits>(code)) : code;
}

std::string show_code(const Options& options, int code) {
  if (!options.code_format || code < 0 || code >> code_width(options) != 0) return fmt::format("code {}", code);
  return fmt::format("code {}", show(*options.code_format, static_cast<Bits>(code)));
}

std::string set_option(Options& o, std::string_view key, std::string_view value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (key == "bits") {
    if (value == "16") return o.bits = 16, std::string();
    return set_integer(key, value, 2, 8, o.bits);
  }
  if (key == "block") return set_integer(key, value, 1, kMost, o.block);
  if (key == "block_rows") return set_integer(key, value, 1, kMost, o.block_rows);
  if (key == "axis") return set_integer(key, value, 0, 15, o.axis);
  if (key == "signed") return set_from(parse_bool(value), o.is_signed, key, value, "true or false");
  if (key == "narrow_range") return set_from(parse_bool(value), o.narrow_range, key, value, "true or false");
  if (key == "code_format") {
    if (value == "int") return o.code_format.reset(), std::string();
    const auto format = format_among({Format::e4m3fn, Format::e5m2, Format::e2m1}, value);
    if (!format) return fmt::format("option code_format: '{}' is not int, e4m3fn, e5m2 or e2m1", value);
    return o.code_format = format, std::string();
  }
  if (key == "scale_format") {
    const auto format =
        format_among({Format::f32, Format::f16, Format::bf16, Format::f64, Format::e4m3fn, Format::e8m0}, value);
    return set_from(format, o.scale_format, key, value, "f32, f16, bf16, f64, e4m3fn or e8m0");
  }
  if (key == "output_format") {
    const auto format = format_among({Format::f32, Format::f16, Format::bf16, Format::f64}, value);
    return set_from(format, o.output_format, key, value, "f32, f16, bf16 or f64");
  }
  if (key == "scale_rounding") {
    return set_from(named<ScaleRounding>(kScaleRoundings, value), o.scale_rounding, key, value,
                    "floor, ceil, even or rceil");
  }
  if (key == "packing") {
    return set_from(named<Packing>(kPackings, value), o.packing, key, value, "none, lsb_first or msb_first");
  }
  if (key == "granularity") {
    return set_from(named<Granularity>(kGranularities, value), o.granularity, key, value,
                    "per_tensor, per_axis, per_block or per_tile");
  }
  std::vector<std::string> keys;
  for (const auto& [known, ignored] : option_list(o)) keys.push_back(known);
  return fmt::format("unknown option '{}'; there are {}", key, fmt::join(keys, ", "));
}

std::vector<std::pair<std::string, std::string>> option_list(const Options& o) {
  const auto text = [](bool b) { return std::string(b ? "true" : "false"); };
  return {
      {"bits", std::to_string(o.bits)},
      {"signed", text(o.is_signed)},
      {"narrow_range", text(o.narrow_range)},
      {"code_format", std::string(o.code_format ? info(*o.code_format).name : "int")},
      {"scale_format", std::string(info(o.scale_format).name)},
      {"scale_rounding", std::string(to_string(o.scale_rounding))},
      {"output_format", std::string(info(o.output_format).name)},
      {"packing", std::string(to_string(o.packing))},
      {"granularity", std::string(to_string(o.granularity))},
      {"block", std::to_string(o.block)},
      {"block_rows", std::to_string(o.block_rows)},
      {"axis", std::to_string(o.axis)},
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
    case Granularity::per_block:
    case Granularity::per_tile: {
      const bool tiles = options.granularity == Granularity::per_tile && shape.size() > 1;
      const auto cols = static_cast<std::size_t>(shape.back());
      const std::size_t rows = tiles ? static_cast<std::size_t>(shape[shape.size() - 2]) : 1;
      const auto width = static_cast<std::size_t>(options.block);
      const std::size_t height = tiles ? static_cast<std::size_t>(options.block_rows) : 1;
      for (std::size_t matrix = 0; matrix < n; matrix += rows * cols) {
        for (std::size_t row = 0; row < rows; row += height) {
          for (std::size_t col = 0; col < cols; col += width) {
            blocks.push_back(
                {matrix + row * cols + col, std::min(height, rows - row), cols, std::min(width, cols - col)});
          }
        }
      }
      break;
    }
  }
  return blocks;
}

std::string check_options(const Options& options) {
  if ((options.bits < 2 || options.bits > 8) && options.bits != 16)
    return fmt::format("bits is {}; codes have 2 to 8 bits, or 16", options.bits);
  if (options.block < 1 || options.block_rows < 1)
    return fmt::format("block is {} by {}; a block has 1 element or more", options.block_rows, options.block);
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

std::string_view to_string(Operation operation) { return name_of<Operation>(kOperations, operation); }

std::optional<Operation> operation_named(std::string_view name) { return named<Operation>(kOperations, name); }

bool takes_qparams(Operation operation) {
  return operation == Operation::quantize || operation == Operation::dequantize;
}

bool chooses_qparams(Operation operation) {
  return operation == Operation::choose_qparams || operation == Operation::round_trip;
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

std::size_t input_size(const Case& c) {
  if (c.op == Operation::dequantize) return c.codes.size();
  return c.op == Operation::requantize ? c.accumulators.size() : c.x.size();
}

namespace {

std::string_view input_name(Operation op) {
  if (op == Operation::dequantize) return "codes";
  return op == Operation::requantize ? "accumulators" : "x";
}

bool too_wide(Format format, Bits bits) { return info(format).width < 64 && bits >> info(format).width != 0; }

std::string check_input(const Case& c) {
  for (const auto& [present, name] : {std::pair{!c.x.empty(), "x"}, std::pair{!c.codes.empty(), "codes"},
                                      std::pair{!c.accumulators.empty(), "accumulators"}}) {
    if (present && name != input_name(c.op))
      return fmt::format("{} takes {}, not {}", to_string(c.op), input_name(c.op), name);
  }
  for (const Bits x : c.x) {
    if (too_wide(c.format, x)) {
      return fmt::format("x holds {:x}, which is wider than the {} bits of {}", x, info(c.format).width,
                         info(c.format).name);
    }
  }
  if (input_size(c) != element_count(c.shape)) {
    return fmt::format("{} has {} elements but the shape has {}", input_name(c.op), input_size(c),
                       element_count(c.shape));
  }
  const CodeRange range = code_range(c.options);
  for (const std::int32_t code : c.codes) {
    if (is_code(c.options, code)) continue;
    if (c.options.code_format)
      return fmt::format("code {} is no finite pattern of {}", code, info(*c.options.code_format).name);
    return fmt::format("code {} is outside {}..{}", code, range.qmin, range.qmax);
  }
  return {};
}

std::string check_zero_point(const Options& options, std::int32_t zero_point) {
  if (options.code_format) {
    return zero_point == 0 ? std::string() : fmt::format("zero point {} for float codes, which have none", zero_point);
  }
  const CodeRange range = code_range(options);
  if (zero_point >= range.qmin && zero_point <= range.qmax) return {};
  return fmt::format("zero point {} is outside the codes {}..{}", zero_point, range.qmin, range.qmax);
}

std::string check_scale(std::string_view name, Format format, Bits scale) {
  if (too_wide(format, scale)) {
    return fmt::format("a given {} is {:x}, which is wider than the {} bits of {}", name, scale, info(format).width,
                       info(format).name);
  }
  if (is_zero(format, scale) || is_negative(format, scale) || !is_finite(format, scale))
    return fmt::format("a given {} is {}; scales are positive and finite", name, show(format, scale));
  return {};
}

std::string check_given(const Case& c) {
  for (const QParams& q : c.given) {
    if (std::string problem = check_scale("scale", c.options.scale_format, q.scale); !problem.empty()) return problem;
    if (std::string problem = check_zero_point(c.options, q.zero_point); !problem.empty()) return problem;
    if (q.tensor_scale != c.given.front().tensor_scale) return "a tensor has one tensor_scale, but several are given";
    if (q.tensor_scale == 0) continue;
    if (std::string problem = check_scale("tensor_scale", Format::f32, q.tensor_scale); !problem.empty())
      return problem;
  }
  return {};
}

std::string check_rescales(const Case& c) {
  for (const Rescale& r : c.rescales) {
    if (std::string problem = check_zero_point(c.options, r.zero_point); !problem.empty()) return problem;
    if (r.multiplier < 0) return fmt::format("multiplier {} is negative", r.multiplier);
    if (r.divisor < 1) return fmt::format("divisor {} is not positive", r.divisor);
    if (r.shift < -31 || r.shift > 30) return fmt::format("shift {} is outside -31..30", r.shift);
    if (r.scale == 0) continue;
    if (std::string problem = check_scale("scale", Format::f32, r.scale); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::string check_case(const Case& c) {
  if (std::string problem = check_shape(c.shape, c.options); !problem.empty()) return problem;
  if (std::string problem = check_input(c); !problem.empty()) return problem;
  const std::size_t blocks = cut(c.shape, c.options).size();
  if (const std::size_t wanted = takes_qparams(c.op) ? blocks : 0; c.given.size() != wanted) {
    return fmt::format("{} takes {} scale and zero point pair{}, but {} given", to_string(c.op), wanted,
                       wanted == 1 ? "" : "s", c.given.size());
  }
  if (const std::size_t wanted = c.op == Operation::requantize ? blocks : 0; c.rescales.size() != wanted) {
    return fmt::format("{} takes {} multiplier{}, but {} given", to_string(c.op), wanted, wanted == 1 ? "" : "s",
                       c.rescales.size());
  }
  if (std::string problem = check_given(c); !problem.empty()) return problem;
  return check_rescales(c);
}

}  // namespace assay
