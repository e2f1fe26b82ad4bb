#include "properties/draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "oracle/oracle.h"

namespace assay {
namespace {

// ------------------------------------------------------------------------------------------- numbers

Bits any_bits(Entropy& e, Format f) { return e.next(info(f).width / 8); }

Bits any_finite(Entropy& e, Format f) {
  const Bits bits = any_bits(e, f);
  return is_finite(f, bits) ? bits : bits & ~infinity(f);
}

Bits negated(Format f, Bits bits) { return bits ^ sign_bit(f); }

// A value near `magnitude`, within a factor of two, with a mantissa of its own.
double near(Entropy& e, double magnitude) { return magnitude * (1.0 + static_cast<double>(e.next(4)) * 0x1p-32); }

Bits rounded(Format f, double value) {
  return f == Format::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value)) : round_double(f, value);
}

double power(int exponent) { return std::ldexp(1.0, exponent); }

Bits moved(Entropy& e, Format f, Bits bits) {
  switch (e.below(4)) {
    case 0:
      return next_up(f, bits);
    case 1:
      return next_down(f, bits);
    default:
      return bits;
  }
}

// Positive, finite, and rarely friendly: powers of two hide the reciprocal.
Bits draw_scale(Entropy& e, Format s) {
  const Bits top = largest_finite(s);
  switch (e.below(8)) {
    case 0:
      return 1 + e.below(top);  // any pattern
    case 1:
      return 1 + e.below(256);  // the smallest subnormals
    case 2:
      return top - e.below(256);  // the largest
    case 3:
      return rounded(s, power(static_cast<int>(e.below(20)) - 12));  // friendly
    case 4:
      return 1 + e.below(Bits{1} << (info(s).precision - 1));  // subnormal
    default:
      return rounded(s, near(e, power(static_cast<int>(e.below(12)) - 10)));  // ordinary weights
  }
}

// ------------------------------------------------------------------------------------------- blocks

struct Recipe {
  std::string_view name;
  void (*fill)(Entropy&, const Case&, std::vector<Bits>& x);
};

void fill_any(Entropy& e, const Case& c, std::vector<Bits>& x) {
  for (Bits& bits : x) bits = any_bits(e, c.format);
}

void fill_weights(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const double magnitude = power(static_cast<int>(e.below(16)) - 12);
  for (Bits& bits : x) {
    const double u = static_cast<double>(e.next(4)) * 0x1p-31 - 1;
    bits = rounded(c.format, magnitude * u * u * u);
  }
}

void fill_zeros(Entropy& e, const Case& c, std::vector<Bits>& x) {
  for (Bits& bits : x) bits = e.one_in(4) ? sign_bit(c.format) : 0;
}

void fill_subnormals(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const int width = 1 + static_cast<int>(e.below(static_cast<std::uint64_t>(info(c.format).precision)));
  for (Bits& bits : x)
    bits = (any_bits(e, c.format) & ((Bits{1} << width) - 1)) | (any_bits(e, c.format) & sign_bit(c.format));
}

// Ends of the range such that the exact step falls among, or just below, the subnormals of the scale format.
void fill_scale_underflow(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const FormatInfo& s = info(c.options.scale_format);
  const int lowest = s.min_exponent - s.precision + 1;
  const double step = near(e, power(lowest + static_cast<int>(e.below(8)) - 3));
  const double end =
      step * static_cast<double>(1 + e.below(2) * static_cast<std::uint64_t>(code_range(c.options).qmax - 1));
  for (Bits& bits : x) bits = rounded(c.format, end * (static_cast<double>(e.next(4)) * 0x1p-31 - 1));
  x[e.below(x.size())] = rounded(c.format, end);
}

void fill_single_sign(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const double base = near(e, power(static_cast<int>(e.below(24)) - 12));
  const Bits sign = e.one_in(2) ? sign_bit(c.format) : 0;
  const double spread = power(-static_cast<int>(e.below(12)));
  for (Bits& bits : x) bits = rounded(c.format, base * (1 + spread * static_cast<double>(e.next(2)) * 0x1p-16)) | sign;
}

void fill_constant(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const Bits value = e.one_in(2) ? any_finite(e, c.format) : rounded(c.format, near(e, 1));
  std::fill(x.begin(), x.end(), value);
}

// Values (q - zp) * s with both end codes present: what a second quantization must leave alone.
void fill_already_quantized(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const CodeRange codes = code_range(c.options);
  const int zero_point =
      c.scheme == "assay.symmetric"
          ? 0
          : codes.qmin + static_cast<int>(e.below(static_cast<std::uint64_t>(codes.qmax - codes.qmin + 1)));
  const double scale = to_double(c.options.scale_format, draw_scale(e, c.options.scale_format));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int span = codes.qmax - codes.qmin;
    const int code = i == 0   ? codes.qmin
                     : i == 1 ? codes.qmax
                              : codes.qmin + static_cast<int>(e.below(static_cast<std::uint64_t>(span) + 1));
    x[i] = rounded(c.format, (code - zero_point) * scale);
    if (!is_finite(c.format, x[i])) x[i] = largest_finite(c.format) | (x[i] & sign_bit(c.format));
  }
}

void fill_huge(Entropy& e, const Case& c, std::vector<Bits>& x) {
  for (Bits& bits : x) {
    bits = (largest_finite(c.format) - e.below(Bits{1} << (info(c.format).precision - 2))) |
           (any_bits(e, c.format) & sign_bit(c.format));
  }
}

// Inputs at and beside (k + 1/2) * scale, the only places where a nearly right quantizer is wrong. The ends of the
// range are chosen so that the block's own scale is the one aimed at.
void fill_breakpoints(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const CodeRange codes = code_range(c.options);
  const bool given = takes_qparams(c.op);
  const QParams q =
      given ? c.given.front()
            : QParams{draw_scale(e, c.options.scale_format), c.scheme == "assay.symmetric" ? 0 : codes.qmin};
  const double scale = to_double(c.options.scale_format, q.scale);
  const int lowest = codes.qmin - q.zero_point, highest = codes.qmax - q.zero_point;
  for (Bits& bits : x) {
    const int k = lowest + static_cast<int>(e.below(static_cast<std::uint64_t>(highest - lowest)));
    bits = moved(e, c.format, rounded(c.format, (k + 0.5) * scale));
  }
  if (!given) x.front() = rounded(c.format, highest * scale);
}

// A range whose exact step lies at or beside the middle of two neighbouring scales: where rounding it twice shows.
void fill_scale_ties(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const Format s = c.options.scale_format;
  const Bits scale = draw_scale(e, s);
  const double middle = (to_double(s, scale) + to_double(s, next_up(s, scale))) / 2;
  const double levels = c.scheme == "assay.symmetric" ? code_range(c.options).qmax : (1 << c.options.bits) - 1;
  const Bits end = rounded(c.format, middle * levels);
  for (Bits& bits : x) bits = is_finite(c.format, end) ? end & any_bits(e, c.format) : any_finite(e, c.format);
  x.front() = moved(e, c.format, end);
}

// Ends of very different size, so that hi - lo needs far more bits than any float has.
void fill_lopsided(Entropy& e, const Case& c, std::vector<Bits>& x) {
  fill_weights(e, c, x);
  const int reach = info(c.format).max_exponent - info(c.format).min_exponent;
  for (Bits& bits : x) {
    if (e.one_in(2))
      bits = rounded(c.format,
                     to_double(c.format, bits) * power(-static_cast<int>(e.below(static_cast<std::uint64_t>(reach)))));
  }
  x.front() = negated(c.format, x.front());
}

constexpr std::array kRecipes = {
    Recipe{"any_bits", fill_any},
    Recipe{"weights", fill_weights},
    Recipe{"zeros", fill_zeros},
    Recipe{"subnormals", fill_subnormals},
    Recipe{"scale_underflow", fill_scale_underflow},
    Recipe{"single_sign", fill_single_sign},
    Recipe{"constant", fill_constant},
    Recipe{"already_quantized", fill_already_quantized},
    Recipe{"huge", fill_huge},
    Recipe{"breakpoints", fill_breakpoints},
    Recipe{"scale_ties", fill_scale_ties},
    Recipe{"lopsided", fill_lopsided},
};

void sprinkle_special(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const std::array specials = {quiet_nan(c.format),
                               infinity(c.format),
                               infinity(c.format) | sign_bit(c.format),
                               quiet_nan(c.format) | sign_bit(c.format) | 1,
                               Bits{0},
                               sign_bit(c.format),
                               infinity(c.format) | 1};
  const std::size_t count = 1 + e.below(3);
  for (std::size_t i = 0; i < count; ++i) x[e.below(x.size())] = specials[e.below(specials.size())];
}

// ------------------------------------------------------------------------------------------- options and shape

template <typename T>
const T& pick(Entropy& e, const std::vector<T>& from) {
  return from[e.below(from.size())];
}

Options draw_options(Entropy& e, const DrawSpace& space, bool symmetric) {
  Options o;
  o.bits = pick(e, space.bits);
  if (e.one_in(2)) o.bits = space.bits.front();
  o.is_signed = symmetric || e.one_in(2);
  o.narrow_range = o.is_signed && e.one_in(6);
  o.scale_format = pick(e, space.scale_formats);
  o.output_format = pick(e, space.output_formats);
  o.granularity = e.one_in(2) ? space.granularities.front() : pick(e, space.granularities);
  return o;
}

Shape draw_shape(Entropy& e, Options& o) {
  const auto dim = [&](std::uint64_t most) { return static_cast<std::int64_t>(1 + e.below(most)); };
  switch (o.granularity) {
    case Granularity::per_tensor:
      return {e.one_in(4) ? dim(300) : dim(70)};
    case Granularity::per_axis: {
      const Shape shape = {dim(4), dim(5), dim(19)};
      o.axis = static_cast<int>(e.below(3));
      return shape;
    }
    case Granularity::per_block:
      o.block = e.one_in(2) ? 32 : dim(70);
      return {dim(3), dim(140)};
  }
  return {1};
}

std::int32_t any_code(Entropy& e, const Options& options) {
  const CodeRange codes = code_range(options);
  return codes.qmin + static_cast<std::int32_t>(e.below(static_cast<std::uint64_t>(codes.qmax - codes.qmin) + 1));
}

// A scale that puts the value of `code` next to the middle between two numbers of the output format: there, and hardly
// anywhere else, rounding twice shows.
void aim_value_at_tie(Entropy& e, const Case& c, QParams& q, std::int32_t code) {
  const std::int32_t steps = std::abs(code - q.zero_point);
  const Format o = c.options.output_format;
  const Bits number = e.next(info(o).width / 8) & ~sign_bit(o);
  if (steps == 0 || number >= largest_finite(o)) return;
  const double tie = to_double(o, number) + (to_double(o, number + 1) - to_double(o, number)) / 2;
  const Bits scale = rounded(c.options.scale_format, tie / steps);
  if (scale_is_positive_finite(c.options, scale)) q.scale = scale;
}

QParams draw_qparams(Entropy& e, const Case& c) {
  const CodeRange codes = code_range(c.options);
  std::int32_t zero_point = any_code(e, c.options);
  if (e.one_in(4)) zero_point = e.one_in(2) ? codes.qmin : codes.qmax;
  if (c.scheme == "assay.symmetric") zero_point = 0;
  return {draw_scale(e, c.options.scale_format), zero_point};
}

}  // namespace

std::uint64_t Entropy::below(std::uint64_t n) {
  // Remainders favour small numbers a little; that is harmless here and keeps every byte string meaningful.
  const int bytes = n <= 256 ? 1 : n <= 65536 ? 2 : n <= (std::uint64_t{1} << 32) ? 4 : 8;
  return next(bytes) % n;
}

std::uint64_t SeededEntropy::next(int bytes) {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z >> (64 - 8 * bytes);
}

std::uint64_t ByteEntropy::next(int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes && !data_.empty(); ++i) {
    value |= static_cast<std::uint64_t>(data_.front()) << (8 * i);
    data_ = data_.subspan(1);
  }
  return value;
}

Drawn draw_case(Entropy& e, const DrawSpace& space) {
  Drawn drawn;
  Case& c = drawn.c;
  c.op = pick(e, space.operations);
  c.scheme = pick(e, space.schemes);
  c.format = pick(e, space.formats);
  c.options = draw_options(e, space, scheme_named(c.scheme)->symmetric);
  c.shape = draw_shape(e, c.options);
  const std::vector<Block> blocks = cut(c.shape, c.options);
  if (takes_qparams(c.op)) {
    for (std::size_t b = 0; b < blocks.size(); ++b) c.given.push_back(draw_qparams(e, c));
  }
  if (c.op == Operation::dequantize) {
    c.codes.resize(element_count(c.shape));
    for (std::int32_t& code : c.codes) code = any_code(e, c.options);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (e.one_in(3)) aim_value_at_tie(e, c, c.given[b], c.codes[blocks[b].at(0)]);
    }
    drawn.kind = "codes";
    return drawn;
  }
  c.x.resize(element_count(c.shape));
  for (const Block& block : blocks) {
    const Recipe& recipe = kRecipes[e.below(kRecipes.size())];
    if (drawn.kind.empty()) drawn.kind = recipe.name;
    std::vector<Bits> x(block.size());
    recipe.fill(e, c, x);
    if (e.one_in(8)) sprinkle_special(e, c, x);
    for (std::size_t i = 0; i < x.size(); ++i) c.x[block.at(i)] = x[i];
  }
  return drawn;
}

std::span<const std::string_view> recipe_names() {
  static const auto kNames = [] {
    std::array<std::string_view, kRecipes.size() + 1> names;
    std::transform(kRecipes.begin(), kRecipes.end(), names.begin(), [](const Recipe& r) { return r.name; });
    names.back() = "codes";
    return names;
  }();
  return kNames;
}

}  // namespace assay
