// The three definitions of the legal answer, held equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracle/oracle.h"
#include "properties/draw.h"

namespace assay {
namespace {

TEST(OraclesAgree, OnDrawnCasesOfAllFormats) {
  DrawSpace space;
  space.formats = {Format::f32, Format::f16, Format::bf16};
  SeededEntropy entropy(1);
  for (int i = 0; i < 3000; ++i) {
    Case c = draw_case(entropy, space).c;
    c.options.output_format = space.formats[entropy.below(3)];
    const Answer expected = legal_answer(exact_oracle(), c);
    for (const Oracle* oracle : oracles()) {
      const Answer got = legal_answer(*oracle, c);
      ASSERT_EQ(got.qparams, expected.qparams) << oracle->name << " case " << i;
      ASSERT_EQ(got.codes, expected.codes) << oracle->name << " case " << i;
      ASSERT_EQ(got.values, expected.values) << oracle->name << " case " << i;
      ASSERT_EQ(got.counts, expected.counts) << oracle->name << " case " << i;
    }
  }
}

// Every f16 input, for scales that are not powers of two: the definition against its adversary, input by input.
class EveryHalf : public ::testing::TestWithParam<int> {};

TEST_P(EveryHalf, ExactEqualsSearchForFiftyScales) {
  SeededEntropy entropy(static_cast<std::uint64_t>(GetParam()));
  int scales = 0;
  while (scales < 50) {
    Options options;
    options.scale_format = entropy.one_in(2) ? Format::f16 : Format::f32;
    const Bits scale = 1 + entropy.below(largest_finite(options.scale_format));
    int exponent = 0;
    if (std::frexp(to_double(options.scale_format, scale), &exponent) == 0.5) continue;
    ++scales;
    const QParams q{scale, static_cast<std::int32_t>(entropy.below(256)) - 128};
    for (Bits x = 0; x < 65536; ++x) {
      ASSERT_EQ(exact_oracle().quantize(options, Format::f16, q, x), search_oracle().quantize(options, Format::f16, q, x))
          << show(Format::f16, x) << " scale " << show(options.scale_format, scale) << " zp " << q.zero_point;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EveryHalf, ::testing::Range(1, 5));

// The twin steps exactly where the exact thresholds say: both floats beside each breakpoint, ten million of them.
TEST(OraclesAgree, TwinStepsAtEveryExactBreakpoint) {
  SeededEntropy entropy(7);
  const std::vector<Format> kinds = {Format::f32, Format::f16, Format::bf16};
  std::uint64_t straddled = 0;
  while (straddled < 10'000'000) {
    Options options;
    options.scale_format = kinds[entropy.below(3)];
    options.is_signed = entropy.one_in(2);
    const CodeRange codes = code_range(options);
    const QParams q{1 + entropy.below(largest_finite(options.scale_format)),
                    codes.qmin + static_cast<std::int32_t>(entropy.below(256))};
    for (const Format format : kinds) {
      int before = codes.qmin;
      bool first = true;
      for (const Breakpoint& b : breakpoints(options, format, q)) {
        // Where the lowest codes are out of the format's reach, the code below the first breakpoint is not qmin.
        if (!first) {
          ASSERT_EQ(fast_oracle().quantize(options, format, q, next_down(format, b.x)), before);
        }
        ASSERT_EQ(fast_oracle().quantize(options, format, q, b.x), b.code)
            << show(format, b.x) << " scale " << show(options.scale_format, q.scale) << " zp " << q.zero_point;
        before = b.code;
        first = false;
        straddled += 2;
      }
    }
  }
}

}  // namespace
}  // namespace assay
