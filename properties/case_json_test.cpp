// Case JSON: what is printed parses back, what is wrong is named, and no text brings the parser down.
#include "properties/case_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <utility>

#include "oracle/oracle.h"
#include "properties/nearest_name.h"

namespace assay {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool coin() { return below(2) == 1; }
  Bits pattern(Format f) { return engine_() >> (64 - info(f).width); }
  Format format() { return std::array{Format::f32, Format::f16, Format::bf16, Format::f64}[below(4)]; }

 private:
  std::mt19937_64 engine_;
};

Bits legal_scale(Dice& dice, Format f) { return 1 + dice.below(largest_finite(f)); }

std::int32_t legal_code(Dice& dice, const Options& o) {
  if (o.code_format) return static_cast<std::int32_t>(dice.below(largest_finite(*o.code_format) + 1));
  const CodeRange range = code_range(o);
  return range.qmin + static_cast<std::int32_t>(dice.below(static_cast<std::uint64_t>(range.qmax - range.qmin + 1)));
}

Options random_options(Dice& dice, const SchemeInfo& scheme, int rank) {
  Options o = scheme.defaults;
  if (scheme.codes == CodeKind::integer) {
    o.bits = 2 + static_cast<int>(dice.below(7));
    o.is_signed = scheme.symmetric || dice.coin();
    o.narrow_range = o.is_signed && dice.coin();
  }
  if (scheme.codes == CodeKind::requantized) o.bits = dice.coin() ? 8 : 16;
  if (o.scale_format == Format::f32) o.scale_format = dice.format();
  o.scale_rounding = static_cast<ScaleRounding>(dice.below(4));
  if (code_width(o) <= 8) o.packing = static_cast<Packing>(dice.below(3));
  o.output_format = dice.format();
  o.granularity = static_cast<Granularity>(dice.below(scheme.codes == CodeKind::requantized ? 2 : 4));
  o.block = 1 + static_cast<std::int64_t>(dice.below(5));
  o.block_rows = 1 + static_cast<std::int64_t>(dice.below(3));
  o.axis = static_cast<int>(dice.below(static_cast<std::uint64_t>(rank)));
  return o;
}

std::string random_text(Dice& dice) {
  constexpr std::array<std::string_view, 8> kParts = {"a", "\"", "\\", "\n", "é", "𝜀", "/", "\x01"};
  std::string text;
  for (std::uint64_t n = dice.below(6); n > 0; --n) text += kParts[dice.below(kParts.size())];
  return text;
}

Case random_case(Dice& dice) {
  Case c;
  const SchemeInfo& scheme = schemes()[dice.below(schemes().size())];
  c.scheme = std::string(scheme.name);
  c.op = std::array{Operation::choose_qparams, Operation::quantize, Operation::dequantize,
                    Operation::round_trip}[dice.below(4)];
  if (scheme.codes == CodeKind::requantized) c.op = Operation::requantize;
  const int rank = 1 + static_cast<int>(dice.below(4));
  for (int d = 0; d < rank; ++d) c.shape.push_back(1 + static_cast<std::int64_t>(dice.below(4)));
  c.options = random_options(dice, scheme, rank);
  c.format = dice.format();
  for (std::size_t i = 0; i < element_count(c.shape); ++i) {
    if (c.op == Operation::requantize)
      c.accumulators.push_back(static_cast<std::int32_t>(dice.pattern(Format::f32)));
    else if (c.op == Operation::dequantize)
      c.codes.push_back(legal_code(dice, c.options));
    else
      c.x.push_back(dice.pattern(c.format));
  }
  if (takes_qparams(c.op)) {
    const Bits tensor_scale = scheme.two_levels ? legal_scale(dice, Format::f32) : 0;
    for (std::size_t b = 0; b < cut(c.shape, c.options).size(); ++b) {
      const std::int32_t zero_point = c.options.code_format ? 0 : legal_code(dice, c.options);
      c.given.push_back({legal_scale(dice, c.options.scale_format), zero_point, tensor_scale});
    }
  }
  if (c.op == Operation::requantize) {
    for (std::size_t b = 0; b < cut(c.shape, c.options).size(); ++b) {
      Rescale r;
      r.bias = static_cast<std::int32_t>(dice.pattern(Format::f32));
      r.zero_point = legal_code(dice, c.options);
      if (c.scheme == "fixed_point.float_multiplier") r.scale = legal_scale(dice, Format::f32);
      if (c.scheme == "fixed_point.exact") r.divisor = 1 + static_cast<std::int64_t>(dice.pattern(Format::f64) >> 2);
      r.multiplier = static_cast<std::int64_t>(dice.pattern(Format::f64) >> (c.scheme == "fixed_point.exact" ? 1 : 33));
      r.shift = static_cast<std::int32_t>(dice.below(62)) - 31;
      c.rescales.push_back(r);
    }
  }
  c.source = random_text(dice);
  c.why = random_text(dice);
  return c;
}

// Any parts, any lengths: a faulty system answers what it likes.
FaultyAnswer random_faulty(Dice& dice, const Options& o) {
  FaultyAnswer faulty;
  for (std::uint64_t n = dice.below(3); n > 0; --n) faulty.scales.push_back(dice.pattern(o.scale_format));
  for (std::uint64_t n = dice.below(3); n > 0; --n)
    faulty.zero_points.push_back(static_cast<std::int32_t>(dice.pattern(Format::f32)));
  for (std::uint64_t n = dice.below(3); n > 0; --n)
    faulty.codes.push_back(static_cast<std::int32_t>(dice.pattern(Format::f32)));
  for (std::uint64_t n = dice.below(3); n > 0; --n) faulty.values.push_back(dice.pattern(o.output_format));
  return faulty;
}

CaseFile random_file(Dice& dice) {
  CaseFile file{random_case(dice), std::nullopt, std::nullopt};
  if (dice.coin()) {
    file.found = Found{random_text(dice), random_text(dice), random_text(dice),
                       random_text(dice), random_text(dice), dice.below(std::uint64_t{1} << dice.below(64))};
  }
  if (dice.coin()) file.faulty = random_faulty(dice, file.c.options);
  return file;
}

std::string problem(std::string_view text, const CaseDefaults& defaults = {}) {
  const ParseResult parsed = parse_case(text, defaults);
  const std::string* sentence = std::get_if<std::string>(&parsed);
  return sentence == nullptr ? "accepted" : *sentence;
}

Case parsed_case(std::string_view text, const CaseDefaults& defaults = {}) {
  const ParseResult parsed = parse_case(text, defaults);
  EXPECT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed);
  return std::holds_alternative<CaseFile>(parsed) ? std::get<CaseFile>(parsed).c : Case{};
}

TEST(CaseJsonFormat, ParsesWhatItPrints) {
  Dice dice(1);
  std::array<int, 4> granularities{};
  for (int i = 0; i < 5000; ++i) {
    const CaseFile file = random_file(dice);
    ASSERT_EQ(check_case(file.c), "");
    ++granularities[static_cast<std::size_t>(file.c.options.granularity)];
    for (const std::string& text : {case_json(file), case_json_pretty(file)}) {
      const ParseResult parsed = parse_case(text);
      ASSERT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed) << "\n" << text;
      ASSERT_EQ(std::get<CaseFile>(parsed), file) << text;
    }
    ASSERT_EQ(case_json(file).find('\n'), std::string::npos);
  }
  for (const int n : granularities) EXPECT_GT(n, 500);
}

TEST(CaseJsonFormat, KeysStandInAFixedOrder) {
  CaseFile file{make_case(Operation::quantize, "assay.asymmetric", {}, Format::f32, {0x3f800000}), Found{}, {}};
  file.c.given = {{0x3f800000, 3}};
  file.c.source = "s";
  file.c.why = "w";
  file.found->target = "t";
  file.faulty = FaultyAnswer{{0}, {1}, {2}, {3}};
  const std::string head =
      R"({"op":"quantize","scheme":"assay.asymmetric","options":{"bits":8,"signed":true,"narrow_range":false,)"
      R"("code_format":"int","scale_format":"f32","scale_rounding":"floor","output_format":"f32","packing":"none",)"
      R"("granularity":"per_tensor","block":32,"block_rows":1,"axis":0},)";
  EXPECT_EQ(case_json(file),
            head + R"("format":"f32","shape":[1],"x":["3f800000"],"scale":"3f800000","zero_point":3,"source":"s",)"
                   R"("why":"w","found":{"target":"t","property":"","kind":"","legal":"","got":"","index":0},)"
                   R"("faulty":{"scale":"00000000","zero_point":1,"codes":[2],"values":["00000003"]}})");
  EXPECT_NE(case_json_pretty(file).find("{\n  \"op\": \"quantize\",\n  \"scheme\": \"assay.asymmetric\",\n"),
            std::string::npos);
}

TEST(CaseJsonFormat, WhatIsLeftOutComesFromTheDefaults) {
  EXPECT_EQ(parsed_case(R"({"x":["3f800000"]})"),
            make_case(Operation::round_trip, "assay.symmetric", {}, Format::f32, {0x3f800000}));
  const CaseDefaults defaults{"assay.asymmetric", {{"signed", "false"}, {"scale_format", "f16"}, {"bits", "3"}}};
  Case expected = make_case(Operation::quantize, "assay.asymmetric", {.bits = 4, .is_signed = false}, Format::f64, {1});
  expected.options.scale_format = Format::f16;
  expected.given = {{0x2004, 0}};  // a missing zero_point is 0
  EXPECT_EQ(
      parsed_case(R"({"op":"quantize","format":"f64","x":["0000000000000001"],"scale":"2004","options":{"bits":4}})",
                  defaults),
      expected);
  // Options and operation of a scheme that has its own.
  EXPECT_EQ(parsed_case(R"({"scheme":"assay.nvfp4","x":["3f800000"]})").options.block, 16);
  EXPECT_EQ(parsed_case(R"({"scheme":"fixed_point.exact","accumulators":[7],"divisor":2})").op, Operation::requantize);
}

TEST(CaseJsonFormat, UpperCaseHexIsTaken) { EXPECT_EQ(parsed_case(R"({"x":["3F80000A"]})").x[0], 0x3f80000au); }

TEST(CaseJsonFormat, SaysWhatIsWrongAndWhere) {
  constexpr std::string_view kQ = R"({"op":"quantize","x":["3f800000"],)";
  const auto q = [&](std::string_view rest) { return std::string(kQ) + std::string(rest); };
  // A text, and what its sentence must contain.
  const std::vector<std::pair<std::string, std::string>> rows = {
      // not JSON, or not an object
      {"", "byte 1"},
      {"{", "byte 2"},
      {R"({"x":["3f800000"]} junk)", "byte 20"},
      {R"({"x":["3f800000",]})", "byte 18"},
      {R"({'x':1})", "byte 2"},
      {"{\"x\":[\"3f80\xff\"]}", "byte 12"},
      {"[]", "byte 1"},
      {"3", "byte 1"},
      {"null", "byte 1"},
      {"1e999", "byte 1"},
      {R"({"x":["3f800000"],"codes":[1e999]})", "'codes'"},
      {R"({"x":[[[[[[[[[[1]]]]]]]]]]})", "'x'"},
      // keys
      {R"({"x":["3f800000"],"x":["3f800000"]})", "'x' stands twice"},
      {R"({"x":["3f800000"],"options":{"bits":8,"bits":4}})", "'bits' stands twice"},
      {R"({"x":["3f800000"],"wy":""})", "'wy'"},
      {R"({"x":["3f800000"],"found":{"targt":""}})", "'targt' in key 'found'"},
      {R"({"x":["3f800000"],"faulty":{"scales":[]}})", "'scales' in key 'faulty'"},
      {R"({"x":["3f800000"],"found":[]})", "'found'"},
      {R"({"x":["3f800000"],"faulty":7})", "'faulty'"},
      {R"({"x":["3f800000"],"options":{"width":8}})", "'width'"},
      // types and names
      {R"({"op":null,"x":["3f800000"]})", "'op'"},
      {R"({"op":"add","x":["3f800000"]})", "op 'add'"},
      {R"({"scheme":7,"x":["3f800000"]})", "'scheme'"},
      {R"({"scheme":"assay.asymetric","x":["3f800000"]})",
       "scheme 'assay.asymetric'; the nearest is 'assay.asymmetric'"},
      {R"({"format":"f8","x":["3f800000"]})", "format 'f8'; there are f32, f16, bf16, f64"},
      {R"({"options":[],"x":["3f800000"]})", "'options'"},
      {R"({"options":{"bits":9},"x":["3f800000"]})", "option bits"},
      {R"({"options":{"bits":7.5},"x":["3f800000"]})", "option bits"},
      {R"({"options":{"bits":[8]},"x":["3f800000"]})", "option bits"},
      {R"({"options":{"signed":1},"x":["3f800000"]})", "option signed"},
      {R"({"options":{"granularity":"per_row"},"x":["3f800000"]})", "option granularity"},
      {R"({"scheme":"assay.symmetric","options":{"signed":false},"x":["3f800000"]})", "'options'"},
      {R"({"why":1,"x":["3f800000"]})", "'why'"},
      {R"({"source":{},"x":["3f800000"]})", "'source'"},
      // the input
      {"{}", "'x'"},
      {R"({"x":[]})", "'x'"},
      {R"({"op":"dequantize","scale":"3f800000"})", "'codes'"},
      {R"({"x":[1065353216]})", "'x', item 0"},
      {R"({"x":["3f800000","3f80"]})", "'x', item 1"},
      {R"({"x":["0x3f8000"]})", "'x', item 0"},
      {R"({"x":["-3f80000"]})", "'x', item 0"},
      {R"({"x":["3f800000"],"format":"f16"})", "'x', item 0"},
      {R"({"x":["3f800000"],"codes":[1]})", "codes"},
      {R"({"op":"dequantize","x":["3f800000"],"codes":[1],"scale":"3f800000"})", "x"},
      {R"({"op":"dequantize","codes":[128],"scale":"3f800000"})", "'codes', item 0"},
      {R"({"op":"dequantize","codes":[0,4294967297],"scale":"3f800000"})", "'codes', item 1"},
      {R"({"op":"dequantize","codes":[18446744073709551615],"scale":"3f800000"})", "'codes', item 0"},
      {R"({"op":"dequantize","codes":[1.0],"scale":"3f800000"})", "'codes', item 0"},
      // the shape
      {R"({"x":["3f800000"],"shape":[]})", "'shape'"},
      {R"({"x":["3f800000"],"shape":[2]})", "shape"},
      {R"({"x":["3f800000"],"shape":[0]})", "shape"},
      {R"({"x":["3f800000"],"shape":[-1,-1]})", "shape"},
      {R"({"x":["3f800000"],"shape":["1"]})", "'shape', item 0"},
      {R"({"x":["3f800000"],"shape":[2147483647,2147483647,2147483647]})", "shape"},
      {R"({"x":["3f800000"],"options":{"granularity":"per_axis","axis":1}})", "axis"},
      // given qparams
      {R"({"x":["3f800000"],"scale":"3f800000"})", "'scale'"},
      {R"({"x":["3f800000"],"zero_point":0})", "'zero_point'"},
      {q(R"("zero_point":0})"), "'zero_point'"},
      {q(R"("why":"no scale"})"), "scale"},
      {q(R"("scale":["3f800000","3f800000"]})"), "scale"},
      {q(R"("scale":"3f800000","zero_point":[0,0]})"), "'zero_point'"},
      {q(R"("scale":"3f800000","zero_point":[]})"), "'zero_point'"},
      {q(R"("scale":"3f800000","zero_point":300})"), "'zero_point', item 0"},
      {q(R"("scale":"3f800000","zero_point":"0"})"), "'zero_point', item 0"},
      {q(R"("scale":"3f80"})"), "'scale', item 0"},
      {q(R"("scale":"00000000"})"), "scale"},
      {q(R"("scale":"bf800000"})"), "scale"},
      {q(R"("scale":"7fc00000"})"), "scale"},
      // what goes with the case
      {R"({"x":["3f800000"],"found":{"index":-1}})", "'index'"},
      {R"({"x":["3f800000"],"found":{"index":1.5}})", "'index'"},
      {R"({"x":["3f800000"],"found":{"kind":1}})", "'kind'"},
      {R"({"x":["3f800000"],"faulty":{"scale":["zz"]}})", "'scale', item 0"},
      {R"({"x":["3f800000"],"faulty":{"values":"3f80"}})", "'values', item 0"},
      {R"({"x":["3f800000"],"faulty":{"codes":[null]}})", "'codes', item 0"},
  };
  for (const auto& [text, names] : rows)
    EXPECT_NE(problem(text).find(names), std::string::npos) << text << "\n-> " << problem(text);
}

TEST(CaseJsonFormat, SentencesToTheLetter) {
  EXPECT_EQ(problem("{"), "not JSON at byte 2");
  EXPECT_EQ(problem(R"({"x":["3f800000"],"x":[]})"), "key 'x' stands twice");
  EXPECT_EQ(problem(R"({"xs":[]})"), "unknown key 'xs' in the case");
  EXPECT_EQ(problem(R"({"x":["3f80"]})"),
            R"(key 'x', item 0: "3f80" is not a pattern of f32 (8 hex digits in quotes))");
  EXPECT_EQ(problem(R"({"op":"add","x":["3f800000"]})"),
            "unknown op 'add'; there are choose_qparams, quantize, dequantize, round_trip and requantize");
  EXPECT_EQ(problem(R"({"scheme":"assay.symetric","x":["3f800000"]})"),
            "unknown scheme 'assay.symetric'; the nearest is 'assay.symmetric'");
  EXPECT_EQ(problem(R"({"options":{"bits":9},"x":["3f800000"]})"),
            "option bits: '9' is not a whole number from 2 to 8");
  EXPECT_EQ(problem(R"({"op":"quantize","scale":"00000000","x":["3f800000"]})"),
            "a given scale is 0x0p+0 [00000000]; scales are positive and finite");
  EXPECT_EQ(problem(R"({"op":"dequantize","scale":"3f800000","x":["3f800000"],"codes":[1]})"),
            "dequantize takes 'codes', not x");
}

TEST(CaseJsonFormat, ASentenceStaysOneShortPrintableLine) {
  const std::string sentence = problem("{\"" + std::string(100000, 'k') + "\":1}");
  EXPECT_LT(sentence.size(), 400u);
  EXPECT_EQ(problem(R"({"a\n\u001b[2J":1})"), R"(unknown key 'a\x0a\x1b[2J' in the case)");
}

TEST(CaseJsonFormat, TextThatIsTooDeepOrTooLongIsRefused) {
  EXPECT_NE(problem(std::string(1000000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(problem("{\"x\":" + std::string(1000000, '[')).find("'x'"), std::string::npos);
  std::string many = R"({"op":"dequantize","scale":"3f800000","codes":[0)";
  for (std::size_t i = 0; i < std::size_t{1} << 24; ++i) many += ",0";
  EXPECT_NE(problem(many + "]}").find("'codes' has 16777217 items"), std::string::npos);
}

TEST(CaseJsonFormat, MutationsNeverBringItDown) {
  Dice dice(2);
  constexpr std::array<std::string_view, 12> kPieces = {"[",  "]",     "{",  "}",    ",",       ":",
                                                        "\"", "1e999", "-1", "null", "\\u0000", "18446744073709551616"};
  std::size_t refused = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string text = case_json(random_file(dice));
    for (std::uint64_t n = 1 + dice.below(4); n > 0; --n) {
      const std::size_t at = dice.below(text.size());
      switch (dice.below(4)) {
        case 0:
          text[at] = static_cast<char>(dice.below(256));
          break;
        case 1:
          text.erase(at, 1 + dice.below(8));
          break;
        case 2:
          text.insert(at, kPieces[dice.below(kPieces.size())]);
          break;
        default:
          text.insert(at, text.substr(dice.below(text.size()), dice.below(40)));
      }
      if (text.empty()) break;
    }
    const ParseResult parsed = parse_case(text);
    if (const CaseFile* file = std::get_if<CaseFile>(&parsed)) {
      ASSERT_EQ(check_case(file->c), "") << text;
      ASSERT_EQ(std::get<CaseFile>(parse_case(case_json(*file))), *file) << text;
    } else {
      ++refused;
      ASSERT_NE(std::get<std::string>(parsed), "");
    }
  }
  EXPECT_GT(refused, 10000u);
  EXPECT_LT(refused, 30000u);
}

TEST(CaseJsonFile, TheCorpusParsesAndPrintsBack) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_SOURCE_DIR "/corpus/cases")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const ParseResult parsed = read_case_file(entry.path());
    ASSERT_TRUE(std::holds_alternative<CaseFile>(parsed)) << std::get<std::string>(parsed);
    const CaseFile& file = std::get<CaseFile>(parsed);
    EXPECT_EQ(std::get<CaseFile>(parse_case(case_json_pretty(file))), file) << entry.path();
  }
  EXPECT_GT(files, 50u);
}

TEST(CaseJsonFile, SaysWhichFileCannotBeRead) {
  const auto read = [](const std::filesystem::path& path) { return std::get<std::string>(read_case_file(path)); };
  EXPECT_EQ(read("no/such.json"), "no/such.json: cannot be read");
  EXPECT_NE(read(ASSAY_SOURCE_DIR "/corpus").find("is a directory"), std::string::npos);
  const std::filesystem::path empty = std::filesystem::temp_directory_path() / "assay_case_json_test_empty.json";
  std::ofstream(empty).close();
  EXPECT_EQ(read(empty), empty.string() + ": not JSON at byte 1");
  std::filesystem::remove(empty);
}

TEST(NearestName, TakesTheFewestEdits) {
  constexpr std::array<std::string_view, 3> kNames = {"quantize", "dequantize", "round_trip"};
  EXPECT_EQ(nearest_name("quantise", kNames), "quantize");
  EXPECT_EQ(nearest_name("dequant", kNames), "dequantize");
  EXPECT_EQ(nearest_name("ROUND-TRIP", kNames), "round_trip");
  EXPECT_EQ(nearest_name("quantize", kNames), "quantize");
  EXPECT_EQ(nearest_name("", kNames), "quantize");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'q'), kNames).empty(), false);
}

}  // namespace
}  // namespace assay
