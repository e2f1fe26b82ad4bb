// Every byte string is a valid case, and the direct layout holds any case that fits.
#include "targets/fuzz/case_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "oracle/oracle.h"
#include "properties/case_json.h"
#include "targets/fuzz/fuzz_body.h"

namespace assay {
namespace {

using Bytes = std::vector<std::uint8_t>;

DrawSpace everything() {
  DrawSpace space;
  space.formats = {Format::f32, Format::f16, Format::bf16, Format::f64};
  space.scale_formats = space.output_formats = space.formats;
  return space;
}

Bytes random_bytes(Entropy& e) {
  constexpr std::array<std::uint64_t, 4> kLengths = {16, 64, 400, 8000};
  Bytes bytes(e.below(1 + kLengths[e.below(kLengths.size())]));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(e.next(1));
  if (e.one_in(3)) std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), bytes.end(), 0xff);
  return bytes;
}

std::string what_is_wrong(const Case& c) {
  const SchemeInfo* scheme = scheme_named(c.scheme);
  if (scheme == nullptr) return "unknown scheme";
  const std::string problem = check_case(c);
  return problem.empty() ? check_scheme_case(*scheme, c) : problem;
}

template <typename T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool in_space(const Case& c, const DrawSpace& space) {
  const SchemeInfo& scheme = *scheme_named(c.scheme);
  if (!contains(space.operations, c.op) || !contains(space.schemes, c.scheme) || !contains(space.formats, c.format))
    return false;
  if (scheme.codes == CodeKind::requantized) return true;
  const bool own_scale = scheme.defaults.scale_format != Format::f32;
  const bool codes = c.options.code_format ? scheme.two_levels || contains(space.code_formats, *c.options.code_format)
                                           : contains(space.bits, c.options.bits);
  return codes && (own_scale || contains(space.scale_formats, c.options.scale_format)) &&
         contains(space.output_formats, c.options.output_format) &&
         (contains(space.granularities, c.options.granularity) || c.options.granularity == scheme.defaults.granularity);
}

Case bare(Case c) {
  c.source.clear();
  c.why.clear();
  return c;
}

TEST(DecodeCase, EveryByteStringIsAValidCaseOfTheSpace) {
  std::vector<DrawSpace> spaces = {DrawSpace{}, everything()};
  for (const FuzzTarget& target : fuzz_targets()) spaces.push_back(target.space);
  SeededEntropy entropy(1);
  for (int i = 0; i < 100000; ++i) {
    const Bytes bytes = random_bytes(entropy);
    const DrawSpace& space = spaces[static_cast<std::size_t>(i) % spaces.size()];
    const Case c = decode_case(bytes, space);
    ASSERT_EQ(what_is_wrong(c), "") << "string " << i;
    ASSERT_TRUE(in_space(c, space)) << "string " << i;
    ASSERT_LE(element_count(c.shape), kMostFuzzElements);
  }
}

TEST(DecodeCase, EveryStringOfZerosOrOnesIsAValidCase) {
  for (std::size_t length = 0; length < 200; ++length) {
    for (const int byte : {0x00, 0x01, 0xfe, 0xff}) {
      ASSERT_EQ(what_is_wrong(decode_case(Bytes(length, static_cast<std::uint8_t>(byte)), everything())), "");
    }
  }
}

TEST(DecodeCase, ADirectCaseIsNoLargerThanItsBytes) {
  SeededEntropy entropy(2);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = random_bytes(entropy);
    if (bytes.empty()) continue;
    bytes.front() = 0;
    ASSERT_LE(element_count(decode_case(bytes, everything()).shape), bytes.size());
  }
}

// Otherwise mutations would explore less than the space holds.
TEST(DecodeCase, RandomBytesReachEveryChoiceInBothModes) {
  for (const std::uint8_t mode : {std::uint8_t{0}, std::uint8_t{1}}) {
    std::set<Operation> operations;
    std::set<std::string> schemes;
    std::set<Format> formats, scale_formats;
    std::set<Granularity> granularities;
    std::set<int> bits;
    std::set<bool> is_signed, narrow;
    std::set<std::size_t> ranks;
    SeededEntropy entropy(3);
    for (int i = 0; i < 3000; ++i) {
      Bytes bytes(100);
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(entropy.next(1));
      bytes.front() = mode;
      const Case c = decode_case(bytes, everything());
      operations.insert(c.op);
      schemes.insert(c.scheme);
      formats.insert(c.format);
      scale_formats.insert(c.options.scale_format);
      granularities.insert(c.options.granularity);
      bits.insert(c.options.bits);
      is_signed.insert(c.options.is_signed);
      narrow.insert(c.options.narrow_range);
      ranks.insert(c.shape.size());
    }
    EXPECT_EQ(operations.size(), 5u);
    EXPECT_EQ(schemes.size(), 9u);
    EXPECT_EQ(formats.size(), 4u);
    EXPECT_EQ(scale_formats.size(), 6u);
    EXPECT_EQ(granularities.size(), 4u);
    EXPECT_EQ(bits.size(), 8u);
    EXPECT_EQ(is_signed.size(), 2u);
    EXPECT_EQ(narrow.size(), 2u);
    EXPECT_GE(ranks.size(), 3u);
  }
}

TEST(EncodeCase, DecodesToTheSameDrawnCase) {
  const DrawSpace space = everything();
  SeededEntropy entropy(4);
  for (int i = 0; i < 20000; ++i) {
    Case c = draw_case(entropy, space).c;
    if (c.op != Operation::requantize) c.options.output_format = space.formats[entropy.below(space.formats.size())];
    const auto bytes = encode_case(c);
    ASSERT_TRUE(bytes.has_value());
    ASSERT_EQ(decode_case(*bytes, space), c);
  }
}

TEST(EncodeCase, DecodesToTheSameDirectCase) {
  const DrawSpace space = everything();
  SeededEntropy entropy(5);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = random_bytes(entropy);
    if (!bytes.empty()) bytes.front() = 0;
    const Case c = decode_case(bytes, space);
    const auto again = encode_case(c);
    ASSERT_TRUE(again.has_value());
    ASSERT_EQ(decode_case(*again, space), c);
  }
}

TEST(EncodeCase, DecodesToTheSameCaseOfTheCorpus) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_SOURCE_DIR "/corpus/cases")) {
    const Case c = std::get<CaseFile>(read_case_file(entry.path())).c;
    const auto bytes = encode_case(c);
    ASSERT_TRUE(bytes.has_value()) << entry.path();
    EXPECT_EQ(decode_case(*bytes, everything()), bare(c)) << entry.path();
    ++cases;
  }
  EXPECT_GT(cases, 50u);
}

TEST(EncodeCase, RefusesWhatTheLayoutCannotHold) {
  const Options options;
  const auto zeros = [&](std::size_t n) {
    return make_case(Operation::round_trip, "assay.symmetric", options, Format::f32, std::vector<Bits>(n));
  };
  EXPECT_TRUE(encode_case(zeros(kMostFuzzElements)).has_value());
  EXPECT_FALSE(encode_case(zeros(kMostFuzzElements + 1)).has_value());
  Case deep = zeros(1);
  deep.shape = {1, 1, 1, 1, 1};
  EXPECT_FALSE(encode_case(deep).has_value());
}

// The order of the fields is what the committed seeds and every fuzzer's collected corpus are written in.
TEST(EncodeCase, LayoutIsTheOneOfTheReadme) {
  Case c;
  c.op = Operation::quantize;
  c.scheme = "assay.asymmetric";
  c.options.bits = 4;
  c.options.scale_format = Format::f16;
  c.options.granularity = Granularity::per_axis;
  c.options.axis = 1;
  c.options.block = 32;
  c.shape = {1, 2};
  c.x = {0x3f800000, 0x7fc00000};
  c.given = {{0x3c00, -8}, {0x0001, 7}};
  ASSERT_EQ(check_case(c), "");
  const Bytes expected = {0, 1, 1, 0, 4,    1,    0,    1,    0,    0, 0, 1, 1,    32,   0, 0, 0,    1,
                          0, 1, 2, 0, 0x00, 0x3c, 0xf8, 0x01, 0x00, 7, 0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f};
  EXPECT_EQ(encode_case(c), expected);
}

}  // namespace
}  // namespace assay
