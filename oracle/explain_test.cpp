// The working that explain shows, against working done by hand. That its numbers are the oracle's is a property.
#include "oracle/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace assay {
namespace {

Bits f32(double value) { return round_double(Format::f32, value); }

Options four_bits(Format scale_format) {
  Options o;
  o.bits = 4;
  o.scale_format = scale_format;
  return o;
}

Case quantize_case(std::vector<Bits> x, QParams q) {
  Case c = make_case(Operation::quantize, "assay.symmetric", four_bits(Format::f32), Format::f32, std::move(x));
  c.given = {q};
  return c;
}

Case widest_case() {
  // One of each kind: a tie, a NaN, an infinity, ordinary ones, both ends of the range.
  return make_case(Operation::round_trip, "assay.asymmetric", four_bits(Format::f16), Format::f32,
                   {f32(0.1), f32(-3), f32(7), f32(2.5), quiet_nan(Format::f32), infinity(Format::f32)});
}

const Step& step_named(const std::vector<Step>& steps, std::string_view name) {
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.name == name; });
  if (found == steps.end()) throw std::runtime_error("no step " + std::string(name));
  return *found;
}

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST(Explain, ShowsWhyAScaleMovesUp) {
  const auto block = explain(widest_case()).at(0);
  // Finite elements reach from -3 to 7; fifteen steps: 10/15 = 2/3.
  EXPECT_EQ(step_named(block.steps, "lo").fraction, "-3");
  EXPECT_EQ(step_named(block.steps, "hi").fraction, "7");
  EXPECT_EQ(step_named(block.steps, "step").fraction, "2/3");
  // f16 has 11 bits: 2/3 = 1365.33/2048, so 1365/2048, which is less than 2/3.
  EXPECT_EQ(step_named(block.steps, "scale").rounded, "0x1.554p-1 [3955]");
  // -8 + 3 * 2048/1365 = -3.4989 -> zero point -3, ten steps above; 7 * 2048/1365 = 10.5026 > 10.5: out of reach.
  EXPECT_EQ(step_named(block.steps, "reach hi").fraction, "2048/195");
  EXPECT_TRUE(says(step_named(block.steps, "reach hi").why, "more than half a step beyond"));
  EXPECT_EQ(step_named(block.steps, "reach lo").why, "within reach");
  EXPECT_EQ(step_named(block.steps, "stored scale").fraction, "683/1024");
  EXPECT_EQ(block.qparams.scale, Bits{0x3956});
  EXPECT_EQ(block.qparams.zero_point, -4);
}

TEST(Explain, ShowsATieWithBothBreakpoints) {
  // s = 1, so x/s = x: 5/2 is halfway between 2 and 3 and goes to 2; 7/2 goes to 4.
  const auto blocks = explain(quantize_case({f32(2.5), f32(3.5)}, {f32(1), 0}));
  const ElementExplanation& down = blocks.at(0).elements.at(0);
  EXPECT_EQ(down.code, 2);
  EXPECT_EQ(step_named(down.steps, "quotient").fraction, "5/2");
  EXPECT_EQ(step_named(down.steps, "quotient").rounded, "2");
  EXPECT_EQ(down.why, "tie: x/s is exactly 5/2, halfway between 2 and 3; it goes to 2, the even one");
  // Code 2 begins at 3/2 itself (a tie to the even 2); code 3 only begins one float above 5/2 = 0x40200000.
  ASSERT_TRUE(down.below && down.above);
  EXPECT_EQ(down.below->x, Bits{0x3fc00000});
  EXPECT_EQ(down.below->threshold, "3/2");
  EXPECT_EQ(down.above->x, Bits{0x40200001});
  EXPECT_EQ(down.above->threshold, "5/2");
  const ElementExplanation& up = blocks.at(0).elements.at(1);
  EXPECT_EQ(up.code, 4);
  EXPECT_EQ(up.below->x, f32(3.5));
  EXPECT_EQ(up.why, "tie: x/s is exactly 7/2, halfway between 3 and 4; it goes to 4, the even one");
}

TEST(Explain, SaysWhatIsNotAnOrdinaryElement) {
  const Bits minus_infinity = infinity(Format::f32) | sign_bit(Format::f32);
  // The codes reach 7; half a step more is 7.5, which is itself still in reach.
  const auto blocks = explain(quantize_case(
      {quiet_nan(Format::f32), infinity(Format::f32), minus_infinity, f32(7.5), f32(7.625), f32(-9)}, {f32(1), 0}));
  const auto& e = blocks.at(0).elements;
  EXPECT_TRUE(says(e.at(0).why, "NaN"));
  EXPECT_EQ(e.at(0).code, 0);
  EXPECT_FALSE(e.at(0).below || e.at(0).above);
  EXPECT_TRUE(says(e.at(1).why, "takes the highest code and is counted as inf"));
  EXPECT_TRUE(says(e.at(2).why, "takes the lowest code and is counted as inf"));
  EXPECT_TRUE(e.at(2).above && !e.at(2).below);
  EXPECT_TRUE(says(e.at(3).why, "goes to 8, the even one; there is no such code, so the last one, 7, takes it"));
  EXPECT_TRUE(says(e.at(4).why, "saturated"));
  EXPECT_TRUE(says(e.at(5).why, "saturated: x lies more than half a step beyond the last code -8"));
}

TEST(Explain, ShowsTheRoundingOfADequantizedValue) {
  Case c = make_case(Operation::dequantize, "assay.asymmetric", four_bits(Format::f32), Format::f32, {});
  c.options.output_format = Format::bf16;
  c.codes = {4, 3, 1};
  c.shape = {3};
  c.given = {{f32(1 + 0x1p-7), 1}};
  const auto blocks = explain(c);
  const auto& e = blocks.at(0).elements;
  // (4 - 1) * 129/128 = 387/128 = 3.0234375; bf16 steps by 1/64 there: 193.5/64 is a tie, and the even 194/64 is up.
  EXPECT_EQ(e.at(0).steps.at(0).fraction, "387/128");
  EXPECT_EQ(e.at(0).value, "0x1.84p+1 [4042]");
  EXPECT_EQ(e.at(0).why, "a tie between two neighbours in bf16: goes up, to the even pattern");
  // (3 - 1) * 129/128 = 129/64: 8 bits hold it.
  EXPECT_EQ(e.at(1).value, "0x1.02p+1 [4001]");
  EXPECT_EQ(e.at(1).why, "exact in bf16");
  EXPECT_EQ(e.at(2).value, "0x0p+0 [0000]");
  // 7 * FLT_MAX overflows bf16.
  c.given = {{largest_finite(Format::f32), 0}};
  const auto big = explain(c);
  EXPECT_TRUE(says(big.at(0).elements.at(0).why, "overflows bf16: the largest finite value takes its place"));
  EXPECT_EQ(big.at(0).elements.at(0).value, show(Format::bf16, largest_finite(Format::bf16)));
}

TEST(Explain, SaysWhichValueReplacedTheRoundedStep) {
  const auto scale_of = [](std::vector<Bits> x) {
    const Case c = make_case(Operation::choose_qparams, "assay.symmetric", four_bits(Format::f16), Format::f32, x);
    return step_named(explain(c).at(0).steps, "scale");
  };
  EXPECT_TRUE(says(scale_of({f32(0)}).why, "the scale is 1"));
  EXPECT_TRUE(says(scale_of({quiet_nan(Format::f32)}).why, "the scale is 1"));
  EXPECT_TRUE(says(scale_of({f32(0x1p-40)}).why, "underflows f16"));  // half the least f16 is 2^-25
  EXPECT_TRUE(says(scale_of({f32(1e6)}).why, "overflows f16"));       // 1e6/7 > 65520
}

TEST(Explain, PrefersTheInstructiveElements) {
  std::vector<Bits> x(100, f32(1));
  x[40] = f32(2.5);  // tie
  x[60] = f32(100);  // saturated
  x[80] = quiet_nan(Format::f32);
  const Case c = quantize_case(x, {f32(1), 0});
  const auto indices = [&](std::size_t most, const std::vector<std::size_t>& chosen) {
    std::vector<std::size_t> found;
    const auto blocks = explain(c, most, chosen);
    for (const auto& e : blocks.at(0).elements) found.push_back(e.index);
    return found;
  };
  EXPECT_EQ(indices(1, {}), (std::vector<std::size_t>{40}));
  EXPECT_EQ(indices(2, {}), (std::vector<std::size_t>{40, 60}));
  EXPECT_EQ(indices(3, {}), (std::vector<std::size_t>{40, 60, 80}));
  EXPECT_EQ(indices(5, {}), (std::vector<std::size_t>{0, 1, 40, 60, 80}));
  EXPECT_EQ(indices(1, {99, 3, 1000}), (std::vector<std::size_t>{3, 99}));
  EXPECT_TRUE(explain(c, 8, {1000}).empty());
}

TEST(Explain, AgreesWithTheLegalAnswer) {
  for (const auto op : {Operation::choose_qparams, Operation::round_trip}) {
    Case c = widest_case();
    c.op = op;
    c.options.granularity = Granularity::per_block;
    c.options.block = 4;
    const Answer legal = legal_answer(exact_oracle(), c);
    const auto blocks = explain(c, 100);
    ASSERT_EQ(blocks.size(), legal.qparams.size());
    for (const auto& b : blocks) {
      EXPECT_EQ(b.qparams, legal.qparams.at(b.block));
      EXPECT_EQ(step_named(b.steps, "stored scale").rounded, show(Format::f16, b.qparams.scale));
      EXPECT_EQ(b.elements.empty(), op == Operation::choose_qparams);
      for (const auto& e : b.elements) {
        EXPECT_EQ(e.code, legal.codes.at(e.index));
        EXPECT_EQ(e.value, show(Format::f32, legal.values.at(e.index)));
        EXPECT_FALSE(e.why.empty());
      }
    }
  }
}

TEST(ExplanationText, FitsItsColumnsWithoutLosingADigit) {
  // The least double under the largest f64 scale: a fraction of more than 600 digits.
  Case c = make_case(Operation::quantize, "assay.symmetric", four_bits(Format::f64), Format::f64, {1});
  c.given = {{largest_finite(Format::f64), 0}};
  c.why = "a quotient far below every code";
  const auto blocks = explain(c);
  const std::string text = explanation_text(c, blocks);
  std::istringstream lines(text);
  std::string packed;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    std::erase(line, ' ');
    packed += line;
  }
  const std::string& fraction = step_named(blocks.at(0).elements.at(0).steps, "quotient").fraction;
  EXPECT_GT(fraction.size(), 600u);
  EXPECT_TRUE(says(packed, fraction));
  EXPECT_TRUE(says(text, c.why));
}

TEST(ExplanationText, ShowsTheTieAsAPersonWouldReadIt) {
  const Case c = quantize_case({f32(2.5)}, {f32(1), 0});
  const std::string text = explanation_text(c, explain(c));
  EXPECT_TRUE(says(text, "  element 0: 0x1.4p+1 [40200000] -> code 2\n")) << text;
  EXPECT_TRUE(says(text, "x/s, then rne = 5/2 -> 2\n")) << text;
  EXPECT_TRUE(says(text, "change above    code 3 from 0x1.400002p+1 [40200001], threshold 5/2\n")) << text;
}

}  // namespace
}  // namespace assay
