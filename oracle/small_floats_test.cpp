// The formats of 8 bits and less, against tables that another implementation made of all 2^32 f32 inputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "oracle/oracle.h"
#include "oracle/real.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr Format kF32 = Format::f32;

// One past the last f32 pattern of either sign; the runs of a table are split there.
constexpr Bits kEnds[] = {0x80000000, 0x100000000};

std::optional<Format> format_of(const std::string& table_name) {
  for (const auto& [table, ours] : {std::pair{"e2m1fn", "e2m1"}, std::pair{"e8m0fnu", "e8m0"},
                                    std::pair{"e2m3fn", "e2m3"}, std::pair{"e3m2fn", "e3m2"}}) {
    if (table_name == table) return format_named(ours);
  }
  return format_named(table_name);
}

Bits hex(const Json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

// Where the tables are not round-half-to-even of the number, or there is no right answer:
bool is_comparable(Format format, Bits x) {
  // NaN in a format that has none is a matter of taste.
  if (is_nan(kF32, x)) return has_nan(format);
  // The conversion to e8m0 takes every subnormal f32 above 2^-127 up to 2^-126, also where 2^-127 is nearer.
  const bool below_the_middle = x > 0x00400000 && x < 0x00600000;
  return format != Format::e8m0 || !below_the_middle;
}

void expect_code(Format format, Bits x, Bits code) {
  if (!is_comparable(format, x)) return;
  const Bits ours = rn(format, Real(kF32, x));
  ASSERT_TRUE(same_bits(format, ours, code)) << info(format).name << " of " << show(kF32, x) << ": "
                                             << to_hex(format, ours) << ", table " << to_hex(format, code);
}

// Between the ends of a run a rounding that is monotone cannot leave it; that it is monotone is what the middle shows.
void expect_run(Format format, Bits first, Bits last, Bits code, std::mt19937_64& random) {
  ASSERT_NO_FATAL_FAILURE(expect_code(format, first, code));
  ASSERT_NO_FATAL_FAILURE(expect_code(format, last, code));
  for (int i = 0; i < 64; ++i)
    ASSERT_NO_FATAL_FAILURE(expect_code(format, first + random() % (last - first + 1), code));
}

TEST(SmallFloats, RoundAsTheTablesOfAllInputs) {
  const std::filesystem::path path =
      std::filesystem::path(ASSAY_SOURCE_DIR) / "../shared/vectors/small_float_tables.jsonl";
  std::ifstream in(path);
  if (!in) GTEST_SKIP() << "no tables at " << path;
  std::mt19937_64 random(1);
  std::string line;
  int tables = 0;
  while (std::getline(in, line)) {
    const Json table = Json::parse(line);
    const auto format = format_of(table.at("format"));
    ASSERT_TRUE(format) << table.at("format");
    const Json& runs = table.at("from_f32");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Bits first = hex(runs[i][0]);
      const Bits end = i + 1 < runs.size() ? hex(runs[i + 1][0]) : kEnds[first >> 31];
      ASSERT_NO_FATAL_FAILURE(expect_run(*format, first, end - 1, hex(runs[i][1]), random));
    }
    const Json& values = table.at("to_f32");
    for (std::size_t code = 0; code < values.size(); ++code) {
      const double value = to_double(*format, code), expected = to_double(kF32, hex(values[code]));
      if (std::isnan(expected)) {
        ASSERT_TRUE(is_nan(*format, code)) << info(*format).name << " " << code;
        continue;
      }
      ASSERT_EQ(value, expected) << info(*format).name << " " << code;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << info(*format).name << " " << code;
      if (!std::isfinite(expected)) continue;
      ASSERT_TRUE(Real(*format, code) == Real(kF32, hex(values[code])));
    }
    ++tables;
  }
  EXPECT_EQ(tables, 11);
}

// What the vocabulary says of a format and what its patterns say must be the same; needs no table.
TEST(SmallFloats, AreWhatTheirDescriptionSays) {
  for (const FormatInfo& f : formats()) {
    if (f.width > 8) continue;
    Bits finite = 0;
    for (Bits bits = 0; bits < Bits{1} << f.width; ++bits) {
      EXPECT_EQ(is_finite(f.format, bits) + is_inf(f.format, bits) + is_nan(f.format, bits), 1) << f.name << bits;
      finite += is_finite(f.format, bits);
      if (!is_finite(f.format, bits)) continue;
      EXPECT_EQ(rn(f.format, Real(f.format, bits)), bits) << f.name;
      EXPECT_EQ(ordinal(f.format, from_ordinal(f.format, ordinal(f.format, bits))), ordinal(f.format, bits)) << f.name;
      if (bits == largest_finite(f.format)) continue;
      EXPECT_LT(to_double(f.format, bits), to_double(f.format, next_up(f.format, bits))) << f.name << bits;
    }
    EXPECT_GT(finite, 0u);
    EXPECT_TRUE(is_finite(f.format, largest_finite(f.format)));
    EXPECT_EQ(has_nan(f.format), f.specials != Specials::none);
    EXPECT_TRUE(!has_nan(f.format) || is_nan(f.format, quiet_nan(f.format))) << f.name;
  }
  EXPECT_EQ(to_double(Format::e4m3fn, largest_finite(Format::e4m3fn)), 448);
  EXPECT_EQ(to_double(Format::e5m2, largest_finite(Format::e5m2)), 57344);
  EXPECT_EQ(to_double(Format::e2m1, largest_finite(Format::e2m1)), 6);
  EXPECT_EQ(to_double(Format::e3m2, largest_finite(Format::e3m2)), 28);
  EXPECT_EQ(to_double(Format::e2m3, largest_finite(Format::e2m3)), 7.5);
  EXPECT_EQ(to_double(Format::e8m0, 0), 0x1p-127);
  EXPECT_EQ(to_double(Format::e8m0, 0xfe), 0x1p127);
}

}  // namespace
}  // namespace assay
