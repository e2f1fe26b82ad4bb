// The vocabulary: patterns against the definition of their formats, how tensors are cut, and every refusal.
#include "oracle/spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace assay {
namespace {

// ---------------------------------------------------------------------------------------------------- formats

TEST(Formats, HaveTheirLandmarks) {
  struct Row {
    Format format;
    Bits sign, infinity, nan, largest;
  };
  // Infinity is all ones in the exponent field: 8, 5, 8 and 11 bits; the quiet NaN adds the top fraction bit.
  const Row rows[] = {
      {Format::f32, 0x80000000, 0x7f800000, 0x7fc00000, 0x7f7fffff},
      {Format::f16, 0x8000, 0x7c00, 0x7e00, 0x7bff},
      {Format::bf16, 0x8000, 0x7f80, 0x7fc0, 0x7f7f},
      {Format::f64, 0x8000000000000000, 0x7ff0000000000000, 0x7ff8000000000000, 0x7fefffffffffffff},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(sign_bit(r.format), r.sign);
    EXPECT_EQ(infinity(r.format), r.infinity);
    EXPECT_EQ(quiet_nan(r.format), r.nan);
    EXPECT_EQ(largest_finite(r.format), r.largest);
    EXPECT_EQ(smallest_positive(r.format), Bits{1});
    EXPECT_EQ(info(r.format).format, r.format);
    EXPECT_EQ(format_named(info(r.format).name), r.format);
  }
  EXPECT_FALSE(format_named("F32") || format_named("") || format_named("int8"));
}

TEST(Formats, ClassifyPatterns) {
  const Format f = Format::f16;
  EXPECT_TRUE(is_nan(f, 0x7c01) && is_nan(f, 0xffff) && !is_nan(f, 0x7c00) && !is_nan(f, 0xfc00));
  EXPECT_TRUE(is_inf(f, 0x7c00) && is_inf(f, 0xfc00) && !is_inf(f, 0x7bff) && !is_inf(f, 0x7e00));
  EXPECT_TRUE(is_finite(f, 0x7bff) && is_finite(f, 0x8000) && !is_finite(f, 0x7c00) && !is_finite(f, 0xfe00));
  EXPECT_TRUE(is_zero(f, 0) && is_zero(f, 0x8000) && !is_zero(f, 1));
  EXPECT_TRUE(is_negative(f, 0x8000) && !is_negative(f, 0x7fff));
  // Subnormal: exponent field 0, fraction not 0.
  EXPECT_TRUE(is_subnormal(f, 1) && is_subnormal(f, 0x83ff) && !is_subnormal(f, 0x0400) && !is_subnormal(f, 0x8000));
}

TEST(Formats, HaveTheSuitesEquality) {
  EXPECT_TRUE(same_bits(Format::f32, 0x7fc00000, 0xff800001));  // any NaN
  EXPECT_FALSE(same_bits(Format::f32, 0, 0x80000000));          // +0 and -0
  EXPECT_TRUE(same_bits(Format::f32, 0x80000000, 0x80000000));
  EXPECT_FALSE(same_bits(Format::f32, 0x7f800000, 0x7fc00000));
}

// The number of a pattern by its definition: (-1)^s * (hidden + fraction) * 2^(...), scaled by the C library.
double by_definition(Format format, Bits bits) {
  const bool f16 = format == Format::f16;
  const int width = f16 ? 10 : 7, bias = f16 ? 15 : 127;
  const int exponent = static_cast<int>(bits >> width) & (f16 ? 0x1f : 0xff);
  const int fraction = static_cast<int>(bits) & ((1 << width) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (f16 ? 0x1f : 0xff)) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - width);
  return sign * std::ldexp(fraction + (1 << width), exponent - bias - width);
}

class EveryPattern : public ::testing::TestWithParam<Format> {};

TEST_P(EveryPattern, IsTheDoubleOfItsDefinition) {
  for (Bits bits = 0; bits < 0x10000; ++bits) {
    const double got = to_double(GetParam(), bits), wanted = by_definition(GetParam(), bits);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<Bits>(got), std::bit_cast<Bits>(wanted)) << to_hex(GetParam(), bits);
    }
  }
}

TEST_P(EveryPattern, HasItsPlaceOnTheNumberLine) {
  const Format f = GetParam();
  const auto last = static_cast<std::int64_t>(infinity(f));
  for (std::int64_t at = -last; at <= last; ++at) {
    const Bits bits = from_ordinal(f, at);
    ASSERT_EQ(ordinal(f, bits), at);
    if (at == last) continue;
    const Bits up = next_up(f, bits);
    ASSERT_EQ(ordinal(f, up), at + 1);
    ASSERT_LT(to_double(f, bits), to_double(f, up)) << to_hex(f, bits);
    ASSERT_EQ(ordinal(f, next_down(f, up)), at);
  }
}

TEST_P(EveryPattern, SurvivesHex) {
  for (Bits bits = 0; bits < 0x10000; ++bits) {
    const std::string text = to_hex(GetParam(), bits);
    ASSERT_EQ(text.size(), 4u);
    ASSERT_EQ(from_hex(GetParam(), text), bits);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryPattern, ::testing::Values(Format::f16, Format::bf16),
                         [](const auto& p) { return std::string(assay::info(p.param).name); });

TEST(Formats, ReadF32AsTheProcessorDoes) {
  // An odd stride meets every exponent and both signs.
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 4093) {
    const double wanted = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(wanted)) continue;
    ASSERT_EQ(std::bit_cast<Bits>(to_double(Format::f32, bits)), std::bit_cast<Bits>(wanted)) << bits;
  }
  EXPECT_EQ(to_double(Format::f32, 0x80000001), -0x1p-149);
  EXPECT_EQ(to_double(Format::f32, 0x7f7fffff), std::numeric_limits<float>::max());
  EXPECT_EQ(to_double(Format::f64, 1), 0x1p-1074);
}

TEST(Formats, NeighboursMeetAtZeroAndStopAtInfinity) {
  for (const FormatInfo& row : formats()) {
    if (row.specials == Specials::unsigned_power || row.specials == Specials::nan_minus_zero) continue;  // no -0
    const Format f = row.format;
    const Bits minus = sign_bit(f);
    const Bits last = has_infinity(f) ? infinity(f) : largest_finite(f);
    EXPECT_EQ(next_up(f, 0), Bits{1});
    EXPECT_EQ(next_up(f, minus), Bits{1});  // -0 is the same number
    EXPECT_EQ(next_down(f, 0), minus | 1);
    EXPECT_EQ(next_down(f, minus), minus | 1);
    EXPECT_EQ(next_up(f, minus | 1), Bits{0});
    EXPECT_EQ(next_down(f, 1), Bits{0});
    EXPECT_EQ(next_up(f, largest_finite(f)), last);
    EXPECT_EQ(next_up(f, last), last);
    EXPECT_EQ(next_up(f, minus | last), minus | (has_infinity(f) ? largest_finite(f) : last - 1));
    EXPECT_EQ(next_down(f, minus | last), minus | last);
    EXPECT_EQ(ordinal(f, minus), 0);
  }
}

TEST(Formats, ReadHexOfTheExactWidthOnly) {
  EXPECT_EQ(to_hex(Format::f32, 1), "00000001");
  EXPECT_EQ(to_hex(Format::f64, 0xabc), "0000000000000abc");
  EXPECT_EQ(from_hex(Format::f32, "3F80000a"), Bits{0x3f80000a});
  EXPECT_EQ(from_hex(Format::f64, "ffffffffffffffff"), ~Bits{0});
  for (const char* wrong : {"", "3f8000", "3f8000000", "0x3f8000", "3f80000g", " 3f80000", "-3f80000", "+3f80000"}) {
    EXPECT_FALSE(from_hex(Format::f32, wrong)) << wrong;
  }
}

TEST(Formats, ShowValueAndBits) {
  EXPECT_EQ(show(Format::f32, 0x40400000), "0x1.8p+1 [40400000]");  // 3 = 1.5 * 2
  EXPECT_EQ(show(Format::f16, 0x8000), "-0x0p+0 [8000]");
  EXPECT_EQ(show(Format::f16, 0x0001), "0x1p-24 [0001]");
  EXPECT_EQ(show(Format::bf16, 0xff80), "-inf [ff80]");
  EXPECT_EQ(show(Format::f32, 0xffc00001), "nan [ffc00001]");
}

// ---------------------------------------------------------------------------------------------------- options

TEST(Options, GiveTheCodeRange) {
  const auto range = [](int bits, bool is_signed, bool narrow) {
    const CodeRange r = code_range({.bits = bits, .is_signed = is_signed, .narrow_range = narrow});
    return std::pair(r.qmin, r.qmax);
  };
  EXPECT_EQ(range(8, true, false), std::pair(-128, 127));
  EXPECT_EQ(range(8, true, true), std::pair(-127, 127));
  EXPECT_EQ(range(8, false, false), std::pair(0, 255));
  EXPECT_EQ(range(4, true, false), std::pair(-8, 7));
  EXPECT_EQ(range(2, true, false), std::pair(-2, 1));
  EXPECT_EQ(range(2, true, true), std::pair(-1, 1));
  EXPECT_EQ(range(2, false, false), std::pair(0, 3));
}

TEST(Options, ReadBackWhatTheyPrint) {
  const Options all = {.bits = 3,
                       .is_signed = false,
                       .narrow_range = true,
                       .code_format = Format::e5m2,
                       .scale_format = Format::bf16,
                       .scale_rounding = ScaleRounding::even,
                       .output_format = Format::f16,
                       .packing = Packing::msb_first,
                       .granularity = Granularity::per_tile,
                       .block = 7,
                       .block_rows = 3,
                       .axis = 2};
  Options copy;
  for (const auto& [key, value] : option_list(all)) EXPECT_EQ(set_option(copy, key, value), "") << key;
  EXPECT_EQ(copy, all);
  EXPECT_EQ(option_list(all).size(), 12u);
}

TEST(Options, RefuseWithASentenceAndStayAsTheyWere) {
  const auto refusal = [](std::string_view key, std::string_view value) {
    Options options;
    const std::string problem = set_option(options, key, value);
    EXPECT_EQ(options, Options{}) << key << '=' << value;
    return problem;
  };
  EXPECT_EQ(refusal("bits", "9"), "option bits: '9' is not a whole number from 2 to 8");
  for (const char* wrong : {"1", "", "8 ", " 8", "+8", "8.0", "0x8", "99999999999999999999", "-8"}) {
    EXPECT_NE(refusal("bits", wrong), "") << wrong;
  }
  EXPECT_EQ(refusal("signed", "yes"), "option signed: 'yes' is not true or false");
  EXPECT_EQ(refusal("narrow_range", "1"), "option narrow_range: '1' is not true or false");
  EXPECT_EQ(refusal("scale_format", "f8"), "option scale_format: 'f8' is not f32, f16, bf16, f64, e4m3fn or e8m0");
  EXPECT_EQ(refusal("output_format", ""), "option output_format: '' is not f32, f16, bf16 or f64");
  EXPECT_EQ(refusal("granularity", "per_row"),
            "option granularity: 'per_row' is not per_tensor, per_axis, per_block or per_tile");
  EXPECT_EQ(refusal("block", "0"), "option block: '0' is not a whole number from 1 to 2147483648");
  EXPECT_EQ(refusal("axis", "-1"), "option axis: '-1' is not a whole number from 0 to 15");
  EXPECT_EQ(refusal("axis", "16"), "option axis: '16' is not a whole number from 0 to 15");
  EXPECT_EQ(refusal("width", "8").substr(0, 32), "unknown option 'width'; there ar");
}

// ---------------------------------------------------------------------------------------------------- blocks

Options per_axis(int axis) { return {.granularity = Granularity::per_axis, .axis = axis}; }
Options per_block(std::int64_t n) { return {.granularity = Granularity::per_block, .block = n}; }

using Positions = std::vector<std::vector<std::size_t>>;

Positions positions(const Shape& shape, const Options& options) {
  Positions result;
  for (const Block& block : cut(shape, options)) {
    auto& positions = result.emplace_back();
    for (std::size_t i = 0; i < block.size(); ++i) positions.push_back(block.at(i));
  }
  return result;
}

TEST(Cut, PerTensorIsOneBlock) {
  EXPECT_EQ(positions({2, 3}, Options{}), (Positions{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(positions({1}, Options{}), (Positions{{0}}));
}

TEST(Cut, PerAxisTakesOneIndexOfThatAxis) {
  // Row-major position of (i, j, k) in 2 x 3 x 2 is 6i + 2j + k.
  EXPECT_EQ(positions({2, 3, 2}, per_axis(0)), (Positions{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}));
  EXPECT_EQ(positions({2, 3, 2}, per_axis(1)), (Positions{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}));
  EXPECT_EQ(positions({2, 3, 2}, per_axis(2)), (Positions{{0, 2, 4, 6, 8, 10}, {1, 3, 5, 7, 9, 11}}));
  EXPECT_EQ(positions({3}, per_axis(0)), (Positions{{0}, {1}, {2}}));
}

TEST(Cut, PerBlockNeverCrossesARow) {
  // Rows of 5 in blocks of 2: the last block of each row has 1.
  EXPECT_EQ(positions({2, 5}, per_block(2)), (Positions{{0, 1}, {2, 3}, {4}, {5, 6}, {7, 8}, {9}}));
  EXPECT_EQ(positions({2, 2}, per_block(32)), (Positions{{0, 1}, {2, 3}}));
  EXPECT_EQ(positions({4}, per_block(2)), (Positions{{0, 1}, {2, 3}}));
  EXPECT_EQ(positions({1, 1, 3}, per_block(1)), (Positions{{0}, {1}, {2}}));
}

TEST(Cut, CoversEveryElementOnce) {
  for (const Shape& shape : {Shape{7}, Shape{1, 9}, Shape{3, 4}, Shape{2, 3, 5}, Shape{2, 1, 3, 4}}) {
    std::vector<Options> all = {Options{}};
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) all.push_back(per_axis(axis));
    for (std::int64_t n = 1; n <= 10; ++n) all.push_back(per_block(n));
    for (const Options& options : all) {
      std::vector<std::size_t> seen;
      for (const auto& block : positions(shape, options)) seen.insert(seen.end(), block.begin(), block.end());
      std::sort(seen.begin(), seen.end());
      std::vector<std::size_t> every(element_count(shape));
      std::iota(every.begin(), every.end(), 0u);
      EXPECT_EQ(seen, every);
    }
  }
}

TEST(CheckShape, SaysWhatIsWrong) {
  EXPECT_EQ(check_shape({2, 3}, Options{}), "");
  EXPECT_EQ(check_shape({}, Options{}), "the shape has no dimension");
  EXPECT_EQ(check_shape({2, 0}, Options{}), "the shape has a dimension of 0; dimensions are 1 or more");
  EXPECT_EQ(check_shape({-1}, Options{}), "the shape has a dimension of -1; dimensions are 1 or more");
  EXPECT_EQ(check_shape({std::int64_t{1} << 40}, Options{}), "");
  EXPECT_EQ(check_shape({(std::int64_t{1} << 40) + 1}, Options{}), "the shape has more than 2^40 elements");
  // 2^30 * 2^62 would overflow a plain product.
  EXPECT_EQ(check_shape({std::int64_t{1} << 30, std::int64_t{1} << 62}, Options{}),
            "the shape has more than 2^40 elements");
  EXPECT_EQ(check_shape({2, 3}, per_axis(1)), "");
  EXPECT_EQ(check_shape({2, 3}, per_axis(2)), "axis 2 is outside a shape of 2 dimensions");
  EXPECT_EQ(check_shape({2}, per_axis(1)), "axis 1 is outside a shape of 1 dimension");
}

// ---------------------------------------------------------------------------------------------------- case

constexpr Bits kOne = 0x3f800000;

Case two_elements(Operation op) { return make_case(op, "assay.symmetric", Options{}, Format::f32, {kOne, kOne}); }

TEST(CheckCase, AcceptsEachOperation) {
  EXPECT_EQ(check_case(two_elements(Operation::choose_qparams)), "");
  EXPECT_EQ(check_case(two_elements(Operation::round_trip)), "");
  Case quantize = two_elements(Operation::quantize);
  quantize.given = {{kOne, 0}};
  EXPECT_EQ(check_case(quantize), "");
  Case dequantize = make_case(Operation::dequantize, "assay.symmetric", Options{}, Format::f32, {});
  dequantize.shape = {2};
  dequantize.codes = {-128, 127};
  dequantize.given = {{kOne, 0}};
  EXPECT_EQ(check_case(dequantize), "");
}

TEST(CheckCase, CountsElements) {
  Case c = two_elements(Operation::round_trip);
  c.shape = {3};
  EXPECT_EQ(check_case(c), "x has 2 elements but the shape has 3");
  c.op = Operation::dequantize;
  c.x.clear();
  EXPECT_EQ(check_case(c), "codes has 0 elements but the shape has 3");
  c.shape = {};
  EXPECT_EQ(check_case(c), "the shape has no dimension");
}

TEST(CheckCase, CountsGivenQparams) {
  Case c = two_elements(Operation::quantize);
  EXPECT_EQ(check_case(c), "quantize takes 1 scale and zero point pair, but 0 given");
  c.options.granularity = Granularity::per_axis;
  EXPECT_EQ(check_case(c), "quantize takes 2 scale and zero point pairs, but 0 given");
  c = two_elements(Operation::round_trip);
  c.given = {{kOne, 0}};
  EXPECT_EQ(check_case(c), "round_trip takes 0 scale and zero point pairs, but 1 given");
}

TEST(CheckCase, RefusesScalesThatAreNotPositiveAndFinite) {
  for (const Bits scale : {Bits{0}, Bits{0x80000000}, Bits{0xbf800000}, Bits{0x7f800000}, Bits{0x7fc00000}}) {
    Case c = two_elements(Operation::quantize);
    c.given = {{scale, 0}};
    EXPECT_EQ(check_case(c), "a given scale is " + show(Format::f32, scale) + "; scales are positive and finite");
  }
}

TEST(CheckCase, RefusesCodesThatDoNotExist) {
  Case c = two_elements(Operation::quantize);
  c.given = {{kOne, 128}};
  EXPECT_EQ(check_case(c), "zero point 128 is outside the codes -128..127");
  c.op = Operation::dequantize;
  c.x.clear();
  c.given = {{kOne, 0}};
  c.codes = {0, -129};
  EXPECT_EQ(check_case(c), "code -129 is outside -128..127");
  c.options.is_signed = false;
  c.codes = {0, -1};
  EXPECT_EQ(check_case(c), "code -1 is outside 0..255");
}

TEST(Operations, HaveNames) {
  for (const auto op : {Operation::choose_qparams, Operation::quantize, Operation::dequantize, Operation::round_trip}) {
    EXPECT_EQ(operation_named(to_string(op)), op);
  }
  EXPECT_FALSE(operation_named("Quantize"));
  EXPECT_TRUE(takes_qparams(Operation::quantize) && takes_qparams(Operation::dequantize));
  EXPECT_FALSE(takes_qparams(Operation::choose_qparams) || takes_qparams(Operation::round_trip));
}

TEST(CheckCase, RefusesWhatTheOperationDoesNotTake) {
  Case c = make_case(Operation::round_trip, "assay.symmetric", {}, Format::f32, {0x3f800000});
  c.codes = {1};
  EXPECT_EQ(check_case(c), "round_trip takes x, not codes");
  c.op = Operation::dequantize;
  c.given = {{0x3f800000, 0}};
  EXPECT_EQ(check_case(c), "dequantize takes codes, not x");
}

TEST(CheckCase, RefusesPatternsWiderThanTheirFormat) {
  Case c = make_case(Operation::quantize, "assay.symmetric", {}, Format::f16, {0x13c00});
  c.given = {{0x3f800000, 0}};
  EXPECT_EQ(check_case(c), "x holds 13c00, which is wider than the 16 bits of f16");
  c.x = {0x3c00};
  EXPECT_EQ(check_case(c), "");
  c.given = {{0x13f800000, 0}};
  EXPECT_EQ(check_case(c), "a given scale is 13f800000, which is wider than the 32 bits of f32");
}

TEST(CheckCase, RefusesOptionsBuiltOutOfBounds) {
  Case c = make_case(Operation::round_trip, "assay.symmetric", {}, Format::f32, {0x3f800000});
  c.options.block = 0;
  EXPECT_EQ(check_case(c), "block is 1 by 0; a block has 1 element or more");
  c.options = {};
  c.options.axis = -1;
  EXPECT_EQ(check_case(c), "axis is -1; axes count from 0");
  c.options = {};
  c.options.bits = 9;
  EXPECT_EQ(check_case(c), "bits is 9; codes have 2 to 8 bits, or 16");
}

}  // namespace
}  // namespace assay
