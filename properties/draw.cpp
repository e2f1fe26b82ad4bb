#include "properties/draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "oracle/oracle.h"

namespace assay {
namespace {

// ------------------------------------------------------------------------------------------- numbers

Bits any_bits(Entropy& e, Format f) {
  return e.next(static_cast<int>((info(f).width + 7) / 8)) & ((Bits{2} << (info(f).width - 1)) - 1);
}

Bits any_finite(Entropy& e, Format f) {
  const Bits bits = any_bits(e, f);
  // Without its exponent's highest bit, a pattern is finite in every format.
  return is_finite(f, bits) ? bits : bits & ~(Bits{1} << (info(f).width - 2));
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
  const Bits bottom = smallest_positive(s), top = largest_finite(s), few = std::min<Bits>(256, top - bottom);
  switch (e.below(8)) {
    case 0:
      return bottom + e.below(top - bottom + 1);  // any pattern
    case 1:
      return bottom + e.below(few);  // the smallest
    case 2:
      return top - e.below(few);  // the largest
    case 3:
      return rounded(s, power(static_cast<int>(e.below(20)) - 12));  // friendly
    case 4:
      return bottom + e.below(Bits{1} << (info(s).precision - 1));  // subnormal
    default:
      return std::max(bottom, rounded(s, near(e, power(static_cast<int>(e.below(12)) - 10))));  // ordinary weights
  }
}

Bits draw_positive(Entropy& e, Format s) {
  const Bits scale = draw_scale(e, s);
  return is_zero(s, scale) || !is_finite(s, scale) ? rounded(s, 1.0) : scale;
}

// ------------------------------------------------------------------------------------------- what codes stand for

std::int32_t any_code(Entropy& e, const Options& options) {
  if (options.code_format) return static_cast<std::int32_t>(any_finite(e, *options.code_format));
  const CodeRange codes = code_range(options);
  return codes.qmin + static_cast<std::int32_t>(e.below(static_cast<std::uint64_t>(codes.qmax - codes.qmin) + 1));
}

// In scales: (code - zero_point), or the number of the pattern.
double steps_of(const Options& options, std::int32_t code, std::int32_t zero_point) {
  return options.code_format ? to_double(*options.code_format, static_cast<Bits>(code))
                             : static_cast<double>(code) - zero_point;
}

double scale_of(const Options& options, const QParams& q) {
  const double tensor = q.tensor_scale == 0 ? 1.0 : to_double(Format::f32, q.tensor_scale);
  return to_double(options.scale_format, q.scale) * tensor;
}

// The middle between the values of a code and of a neighbour of it, in scales.
double any_middle(Entropy& e, const Options& options, std::int32_t zero_point) {
  const std::int32_t code = any_code(e, options);
  if (!options.code_format) return code - zero_point + (e.one_in(2) ? 0.5 : -0.5);
  const Format f = *options.code_format;
  const auto bits = static_cast<Bits>(code);
  const Bits other = bits == largest_finite(f) ? next_down(f, bits) : next_up(f, bits);
  return (to_double(f, bits) + to_double(f, other)) / 2;
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
  const Format s = c.options.scale_format;
  const int lowest = std::ilogb(to_double(s, smallest_positive(s)));
  const double step = near(e, power(lowest + static_cast<int>(e.below(8)) - 3));
  const double end = step * (e.one_in(2) ? steps_of(c.options, code_range(c.options).qmax, 0) : 1.0);
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
  const int zero_point = scheme_named(c.scheme)->symmetric ? 0 : any_code(e, c.options);
  const double scale = to_double(c.options.scale_format, draw_positive(e, c.options.scale_format));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int code = i == 0 ? codes.qmin : i == 1 ? codes.qmax : any_code(e, c.options);
    x[i] = rounded(c.format, steps_of(c.options, code, zero_point) * scale);
    if (!is_finite(c.format, x[i])) x[i] = largest_finite(c.format) | (x[i] & sign_bit(c.format));
  }
}

void fill_huge(Entropy& e, const Case& c, std::vector<Bits>& x) {
  for (Bits& bits : x) {
    bits = (largest_finite(c.format) - e.below(Bits{1} << (info(c.format).precision - 2))) |
           (any_bits(e, c.format) & sign_bit(c.format));
  }
}

// Inputs at and beside the middle between two values, the only places where a nearly right quantizer is wrong. The ends
// of the range are chosen so that the block's own scale is the one aimed at.
void fill_breakpoints(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const CodeRange codes = code_range(c.options);
  const bool given = takes_qparams(c.op);
  const QParams q =
      given ? c.given.front()
            : QParams{draw_positive(e, c.options.scale_format), scheme_named(c.scheme)->symmetric ? 0 : codes.qmin, 0};
  const double scale = scale_of(c.options, q);
  for (Bits& bits : x) bits = moved(e, c.format, rounded(c.format, any_middle(e, c.options, q.zero_point) * scale));
  if (!given) x.front() = rounded(c.format, steps_of(c.options, codes.qmax, q.zero_point) * scale);
}

// A range whose exact step lies at or beside the middle of two neighbouring scales: where rounding it twice shows.
void fill_scale_ties(Entropy& e, const Case& c, std::vector<Bits>& x) {
  const Format s = c.options.scale_format;
  const Bits scale = draw_positive(e, s);
  const double middle = (to_double(s, scale) + to_double(s, next_up(s, scale))) / 2;
  const double levels = scheme_named(c.scheme)->symmetric ? steps_of(c.options, code_range(c.options).qmax, 0)
                                                          : (1 << c.options.bits) - 1;
  const Bits end = rounded(c.format, middle * levels);
  for (Bits& bits : x) bits = is_finite(c.format, end) ? end & any_bits(e, c.format) : any_finite(e, c.format);
  x.front() = moved(e, c.format, end);
}

// At and beside powers of two and the numbers below them that round up to one: where a power-of-two scale steps.
void fill_near_powers(Entropy& e, const Case& c, std::vector<Bits>& x) {
  constexpr std::array kTops = {1.0, 1.25, 1.5, 1.75, 1.8125, 1.875, 1.9375, 1.96875};
  const int exponent = static_cast<int>(e.below(40)) - 20;
  for (Bits& bits : x) {
    const double top = kTops[e.below(kTops.size())] * power(exponent - static_cast<int>(e.below(3)));
    bits = moved(e, c.format, rounded(c.format, top)) | (any_bits(e, c.format) & sign_bit(c.format));
  }
  x.front() = moved(e, c.format, rounded(c.format, kTops[e.below(kTops.size())] * power(exponent)));
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
    Recipe{"near_powers", fill_near_powers},
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

void draw_integer_codes(Entropy& e, const DrawSpace& space, bool symmetric, Options& o) {
  o.bits = pick(e, space.bits);
  if (e.one_in(2)) o.bits = space.bits.front();
  o.is_signed = symmetric || e.one_in(2);
  o.narrow_range = o.is_signed && e.one_in(6);
  o.scale_format = pick(e, space.scale_formats);
}

void draw_float_codes(Entropy& e, const DrawSpace& space, const SchemeInfo& scheme, Options& o) {
  if (!scheme.two_levels) o.code_format = pick(e, space.code_formats);
  if (o.scale_format == Format::f32) o.scale_format = pick(e, space.scale_formats);
  constexpr std::array kRoundings = {ScaleRounding::floor, ScaleRounding::ceil, ScaleRounding::even,
                                     ScaleRounding::rceil};
  if (o.scale_format == Format::e8m0) o.scale_rounding = kRoundings[e.below(kRoundings.size())];
}

Options draw_options(Entropy& e, const DrawSpace& space, const SchemeInfo& scheme) {
  Options o = scheme.defaults;
  switch (scheme.codes) {
    case CodeKind::integer:
      draw_integer_codes(e, space, scheme.symmetric, o);
      break;
    case CodeKind::floating:
      draw_float_codes(e, space, scheme, o);
      break;
    case CodeKind::requantized:
      o.bits = e.one_in(3) ? 16 : 8;
      o.is_signed = o.bits == 16 || e.one_in(2);
      if (e.one_in(2)) o.granularity = Granularity::per_axis;
      return o;
  }
  o.output_format = pick(e, space.output_formats);
  const bool usual_blocks = scheme.defaults.granularity == Granularity::per_block && e.one_in(2);
  if (!usual_blocks) o.granularity = e.one_in(2) ? space.granularities.front() : pick(e, space.granularities);
  if (code_width(o) < 8 && e.one_in(2)) o.packing = e.one_in(2) ? Packing::lsb_first : Packing::msb_first;
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
      if (!e.one_in(2)) o.block = dim(70);
      return {dim(3), dim(140)};
    case Granularity::per_tile:
      o.block_rows = dim(5);
      o.block = dim(17);
      return {dim(3), dim(8), dim(40)};
  }
  return {1};
}

// A scale that puts the value of `code` next to the middle between two numbers of the output format: there, and hardly
// anywhere else, rounding twice shows.
void aim_value_at_tie(Entropy& e, const Case& c, QParams& q, std::int32_t code) {
  const double tensor = q.tensor_scale == 0 ? 1.0 : to_double(Format::f32, q.tensor_scale);
  const double steps = std::abs(steps_of(c.options, code, q.zero_point)) * tensor;
  const Format o = c.options.output_format;
  const Bits number = any_bits(e, o) & ~sign_bit(o);
  if (steps == 0 || number >= largest_finite(o)) return;
  const double tie = to_double(o, number) + (to_double(o, number + 1) - to_double(o, number)) / 2;
  const Bits scale = rounded(c.options.scale_format, tie / steps);
  if (scale_is_positive_finite(c.options, scale)) q.scale = scale;
}

QParams draw_qparams(Entropy& e, const Case& c, Bits tensor_scale) {
  const CodeRange codes = code_range(c.options);
  std::int32_t zero_point = any_code(e, c.options);
  if (e.one_in(4)) zero_point = e.one_in(2) ? codes.qmin : codes.qmax;
  if (scheme_named(c.scheme)->symmetric) zero_point = 0;
  return {draw_positive(e, c.options.scale_format), zero_point, tensor_scale};
}

// ------------------------------------------------------------------------------------------- accumulators

std::int64_t any_rational_part(Entropy& e) {
  const auto bits = static_cast<unsigned>(1 + e.below(e.one_in(3) ? 63 : 31));
  return static_cast<std::int64_t>(e.next(8) >> (64 - bits));
}

Rescale draw_rescale(Entropy& e, const Case& c) {
  Rescale r;
  r.zero_point = e.one_in(3) ? 0 : any_code(e, c.options);
  if (e.one_in(3)) r.bias = static_cast<std::int32_t>(e.next(4) >> e.below(32));
  if (e.one_in(2)) r.bias = -r.bias;
  if (c.scheme == "fixed_point.float_multiplier") {
    r.scale = e.one_in(4) ? draw_positive(e, Format::f32)
                          : rounded(Format::f32, near(e, power(static_cast<int>(e.below(24)) - 22)));
    return r;
  }
  if (c.scheme == "fixed_point.exact") {
    r.multiplier = any_rational_part(e);
    r.divisor = std::max<std::int64_t>(1, any_rational_part(e));
    if (e.one_in(2)) r.divisor = std::int64_t{1} << e.below(40);
    if (e.one_in(8)) r.multiplier = r.divisor = 1;
    return r;
  }
  // As produced by a float multiplier in [1/2, 1) times a power of two; sometimes anything.
  r.multiplier = static_cast<std::int64_t>(e.one_in(4) ? e.next(4) >> 1 : (e.next(4) >> 2) | (std::uint64_t{1} << 30));
  if (e.one_in(6)) r.multiplier = std::int64_t{1} << 30;
  r.shift = e.one_in(4) ? static_cast<std::int32_t>(e.below(62)) - 31 : -static_cast<std::int32_t>(e.below(20));
  return r;
}

double multiplier_of(const Case& c, const Rescale& r) {
  if (r.scale != 0) return to_double(Format::f32, r.scale);
  const auto multiplier = static_cast<double>(r.multiplier);
  if (c.scheme == "fixed_point.exact") return multiplier / static_cast<double>(r.divisor);
  return std::ldexp(multiplier, r.shift - 31);
}

// Anything, the ends, or what lands beside the middle between two codes.
std::int32_t draw_accumulator(Entropy& e, const Case& c, const Rescale& r) {
  if (e.one_in(8)) return e.one_in(2) ? INT32_MIN : INT32_MAX;
  if (e.one_in(4)) return static_cast<std::int32_t>(e.next(4)) >> e.below(32);
  const double multiplier = multiplier_of(c, r);
  const double wanted = (any_code(e, c.options) - r.zero_point + 0.5) / (multiplier > 0 ? multiplier : 1.0) - r.bias;
  const double near_middle = wanted + static_cast<double>(e.below(3)) - 1;
  return static_cast<std::int32_t>(std::clamp(near_middle, double{INT32_MIN}, double{INT32_MAX}));
}

void fill_accumulators(Entropy& e, const std::vector<Block>& blocks, Case& c) {
  c.accumulators.resize(element_count(c.shape));
  for (const Block& block : blocks) {
    const Rescale r = draw_rescale(e, c);
    c.rescales.push_back(r);
    for (std::size_t i = 0; i < block.size(); ++i) c.accumulators[block.at(i)] = draw_accumulator(e, c, r);
  }
}

void fill_codes(Entropy& e, const std::vector<Block>& blocks, Case& c) {
  c.codes.resize(element_count(c.shape));
  for (std::int32_t& code : c.codes) code = any_code(e, c.options);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (e.one_in(3)) aim_value_at_tie(e, c, c.given[b], c.codes[blocks[b].at(0)]);
  }
}

// The scheme of an operation that the space has one for.
std::string draw_scheme(Entropy& e, const DrawSpace& space, Operation& operation) {
  std::vector<Operation> operations;
  for (const Operation op : space.operations) {
    if (!schemes_for(space, op).empty()) operations.push_back(op);
  }
  operation = pick(e, operations);
  return pick(e, schemes_for(space, operation));
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

std::vector<std::string> schemes_for(const DrawSpace& space, Operation operation) {
  std::vector<std::string> suitable;
  for (const std::string& name : space.schemes) {
    const bool requantizes = scheme_named(name)->codes == CodeKind::requantized;
    if (requantizes == (operation == Operation::requantize)) suitable.push_back(name);
  }
  return suitable;
}

Drawn draw_case(Entropy& e, const DrawSpace& space) {
  Drawn drawn;
  Case& c = drawn.c;
  c.scheme = draw_scheme(e, space, c.op);
  const SchemeInfo& scheme = *scheme_named(c.scheme);
  c.format = pick(e, space.formats);
  c.options = draw_options(e, space, scheme);
  c.shape = draw_shape(e, c.options);
  const std::vector<Block> blocks = cut(c.shape, c.options);
  if (c.op == Operation::requantize) {
    fill_accumulators(e, blocks, c);
    drawn.kind = "accumulators";
    return drawn;
  }
  if (takes_qparams(c.op)) {
    const Bits tensor_scale = scheme.two_levels ? draw_positive(e, Format::f32) : 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) c.given.push_back(draw_qparams(e, c, tensor_scale));
  }
  if (c.op == Operation::dequantize) {
    fill_codes(e, blocks, c);
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
    std::array<std::string_view, kRecipes.size() + 2> names;
    std::transform(kRecipes.begin(), kRecipes.end(), names.begin(), [](const Recipe& r) { return r.name; });
    names[kRecipes.size()] = "codes";
    names.back() = "accumulators";
    return names;
  }();
  return kNames;
}

}  // namespace assay
