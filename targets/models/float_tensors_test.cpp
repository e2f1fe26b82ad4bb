// The readers of real weights: what a sound file gives, one sentence for every way in which a file can be broken, and
// no crash for anything else. Every broken file here is a sound one with one thing changed.
#include "targets/models/float_tensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string little_endian(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

std::string safetensors(const std::string& header, const std::string& data) {
  return little_endian(header.size(), 8) + header + data;
}

std::string npy(int major, const std::string& header, const std::string& data) {
  const std::string version = {static_cast<char>(major), '\0'};
  return "\x93NUMPY" + version + little_endian(header.size(), major == 1 ? 2 : 4) + header + data;
}

std::string npy_header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }   \n";
}

const std::string kTwoFloats = little_endian(0x3f800000, 4) + little_endian(0xff800000, 4);

class FloatTensors : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "assay_float_tensors_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ / name, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return directory_ / name;
  }

  TensorFile open(const std::string& name, const std::string& content) const {
    auto result = open_float_tensors(write(name, content));
    if (const auto* error = std::get_if<FileError>(&result)) {
      ADD_FAILURE() << error->message;
      return {};
    }
    return std::get<TensorFile>(std::move(result));
  }

  /// The file must be refused in one printable line that names the file and has `part` in it.
  void refuse(const fs::path& path, const std::string& part) const {
    SCOPED_TRACE(part);
    const auto result = open_float_tensors(path);
    const auto* error = std::get_if<FileError>(&result);
    ASSERT_NE(error, nullptr) << "was accepted";
    EXPECT_NE(error->message.find(part), std::string::npos) << error->message;
    EXPECT_NE(error->message.find(path.filename().string()), std::string::npos) << error->message;
    EXPECT_NE(error->message.find("; "), std::string::npos) << "says nothing about what to do: " << error->message;
    for (const char c : error->message) EXPECT_TRUE(c >= ' ' && c <= '~') << error->message;
  }
  void refuse(const std::string& name, const std::string& content, const std::string& part) const {
    refuse(write(name, content), part);
  }

  fs::path directory_;
};

// ---------------------------------------------------------------------------------------------------- sound files

TEST_F(FloatTensors, SafetensorsGivesItsFloatTensorsInFileOrder) {
  const TensorFile file =
      open("model.safetensors",
           safetensors(R"({"__metadata__":{"format":"pt"},"half":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]},)"
                       R"("single":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("brain":{"dtype":"BF16","shape":[],"data_offsets":[12,14]}}   )",
                       kTwoFloats + little_endian(0xc0003c00, 4) + little_endian(0x3f80, 2)));
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_TRUE(file.skipped.empty());
  EXPECT_EQ(file.tensors[0].name, "single");
  EXPECT_EQ(file.tensors[0].format, Format::f32);
  EXPECT_EQ(file.tensors[0].shape, Shape{2});
  EXPECT_EQ(pattern(file.tensors[0], 1), 0xff800000u);
  EXPECT_EQ(file.tensors[1].format, Format::f16);
  EXPECT_EQ(file.tensors[1].shape, (Shape{1, 2}));
  EXPECT_EQ(pattern(file.tensors[1], 0), 0x3c00u);
  EXPECT_EQ(pattern(file.tensors[1], 1), 0xc000u);
  EXPECT_EQ(file.tensors[2].format, Format::bf16);
  EXPECT_EQ(file.tensors[2].shape, Shape{1}) << "a scalar has one element, and blocks want a dimension";
  EXPECT_EQ(file.tensors[2].byte_offset, fs::file_size(file.path) - 2);
}

TEST_F(FloatTensors, SafetensorsListsWhatItSkips) {
  const TensorFile file =
      open("model.safetensors", safetensors(R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                                            R"("future":{"dtype":"F3","shape":[2],"data_offsets":[8,9]},)"
                                            R"("none":{"dtype":"F32","shape":[3,0],"data_offsets":[9,9]},)"
                                            R"("w":{"dtype":"F32","shape":[2],"data_offsets":[9,17]}})",
                                            std::string(9, '\1') + kTwoFloats));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].name, "w");
  ASSERT_EQ(file.skipped.size(), 3u);
  EXPECT_EQ(file.skipped[0].reason, "its dtype is 'I64'; F32, F16 and BF16 are read");
  EXPECT_EQ(file.skipped[1].reason, "its dtype is 'F3'; F32, F16 and BF16 are read");
  EXPECT_EQ(file.skipped[2].reason, "its shape [3, 0] has no elements");
}

TEST_F(FloatTensors, MisalignedDataIsReadWhereItStands) {
  for (int padding = 0; padding < 4; ++padding) {
    const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" + std::string(padding, ' ');
    const TensorFile file = open("model.safetensors", safetensors(header, kTwoFloats));
    ASSERT_EQ(file.tensors.size(), 1u);
    EXPECT_EQ(pattern(file.tensors[0], 0), 0x3f800000u);
    EXPECT_EQ(file.tensors[0].byte_offset, 8 + header.size());
  }
}

TEST_F(FloatTensors, NpyVersionsDtypesAndShapes) {
  for (const int major : {1, 2, 3}) {
    const TensorFile file = open("weights.npy", npy(major, npy_header("'<f4'", "False", "(2, 1)"), kTwoFloats));
    ASSERT_EQ(file.tensors.size(), 1u);
    EXPECT_EQ(file.tensors[0].name, "weights");
    EXPECT_EQ(file.tensors[0].format, Format::f32);
    EXPECT_EQ(file.tensors[0].shape, (Shape{2, 1}));
    EXPECT_EQ(pattern(file.tensors[0], 0), 0x3f800000u);
  }
  const TensorFile half = open("half.npy", npy(1, npy_header("\"<f2\"", "False", "(4,)"), kTwoFloats));
  ASSERT_EQ(half.tensors.size(), 1u);
  EXPECT_EQ(half.tensors[0].format, Format::f16);
  EXPECT_EQ(pattern(half.tensors[0], 3), 0xff80u);
  const TensorFile scalar = open("scalar.npy", npy(1, npy_header("'<f4'", "False", "()"), kTwoFloats.substr(0, 4)));
  ASSERT_EQ(scalar.tensors.size(), 1u);
  EXPECT_EQ(scalar.tensors[0].shape, Shape{1});
}

TEST_F(FloatTensors, RawFloatsAndTheMappingOutliveAMove) {
  TensorFile opened = open("raw.f32", kTwoFloats);
  const TensorFile file = std::move(opened);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].shape, Shape{2});
  EXPECT_EQ(pattern(file.tensors[0], 0), 0x3f800000u);
  EXPECT_EQ(file.tensors[0].bytes.data(), file.mapping.bytes().data());
}

// ---------------------------------------------------------------------------------------------------- broken files

TEST_F(FloatTensors, RefusesWhatIsNoReadableFile) {
  refuse(directory_ / "absent.f32", "No such file");
  refuse(directory_, "is a directory");
  ASSERT_EQ(::mkfifo((directory_ / "fifo.npy").c_str(), 0600), 0);
  refuse(directory_ / "fifo.npy", "a pipe or a device");
  refuse("empty.safetensors", "", "is empty");
  refuse("empty.npy", "", "is empty");
  refuse("empty.f32", "", "is empty");
  refuse("model.gguf", kTwoFloats, "a .safetensors, .npy or .f32 file");
  refuse("noext", kTwoFloats, "a .safetensors, .npy or .f32 file");
  refuse("ragged.f32", kTwoFloats + "x", "9 bytes");
  if (::geteuid() != 0) {  // root may read everything
    const fs::path secret = write("secret.f32", kTwoFloats);
    fs::permissions(secret, fs::perms::none);
    refuse(secret, "Permission denied");
  }
}

TEST_F(FloatTensors, PathsAreShownWithoutControlCharacters) {
  const auto result = open_float_tensors(directory_ / "a\n\x1b[31m.f32");
  EXPECT_NE(std::get<FileError>(result).message.find(R"(a\x0a\x1b[31m.f32')"), std::string::npos);
}

TEST_F(FloatTensors, RefusesBrokenSafetensorsHeaders) {
  const std::string sound = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto header = [&](const std::string& text, const std::string& part) {
    refuse("broken.safetensors", safetensors(text, kTwoFloats), part);
  };
  ASSERT_EQ(open("sound.safetensors", safetensors(sound, kTwoFloats)).tensors.size(), 1u);
  refuse("broken.safetensors", "1234567", "less than the 8");
  refuse("broken.safetensors", little_endian(~std::uint64_t{0}, 8) + sound, "more than the 100000000");
  refuse("broken.safetensors", little_endian(100'000'001, 8) + sound, "more than the 100000000");
  refuse("broken.safetensors", little_endian(sound.size() + 1, 8) + sound, "only 54 follow");
  header("", "does not start with '{'");
  header(" " + sound, "does not start with '{'");
  header("[]", "does not start with '{'");
  header("{", "not valid JSON at byte");
  header(sound + "x", "not valid JSON at byte 62");
  header(sound + std::string("\0 ", 2), "NUL at byte 62");
  header("{\"\xff\":1}", "not valid JSON");
  header(R"({"w":1e999})", "not valid JSON");
  header(R"({"w":1})", "'w' in the header has the number 1 instead of an object");
  header(R"({"w":null})", "null instead of an object");
  header(R"({"w":{"dtype":{}}})", "an object instead of a string");
  header(R"({"w":{"dtype":true}})", "a boolean instead of a string");
  header(R"({"w":{"shape":[[2]]}})", "an array instead of whole numbers");
  header(R"({"w":{"shape":"2"}})", "the string '2' instead of an array");
  header(R"({"w":{"other":1}})", "unknown key 'other'");
  header(R"({"__metadata__":{"a":1}})", "the number 1 instead of a string");
  header(R"({"__metadata__":{"a":{}}})", "an object instead of a string");
  header(R"({"__metadata__":{"a":"1","a":"1"}})", "'a' stands twice");
  header(R"({"w":{},"w":{}})", "'w' stands twice");
  header(R"({"w":{},"\u0077":{}})", "'w' stands twice");
  for (const char* field : {R"("dtype":"F32")", R"("shape":[2])", R"("data_offsets":[0,8])"}) {
    header(std::string(R"({"w":{)") + field + "," + field + "}}", "stands twice");
  }
  header(R"({"w\n":{}})", R"('w\x0a' lacks the key dtype)");
  header(R"({"w":{"dtype":"F32"}})", "lacks the key shape");
  header(R"({"w":{"dtype":"F32","shape":[2]}})", "lacks the key data_offsets");
  std::string deep = R"({"w":)";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":[)";
  header(deep, "tensor 'w' has the unknown key 'a'");
  header(R"({"w":{"shape":)" + std::string(1'000'000, '['), "an array instead of whole numbers");
}

TEST_F(FloatTensors, RefusesBrokenSafetensorsNumbers) {
  const auto entry = [&](const std::string& shape, const std::string& offsets, const std::string& part) {
    refuse("broken.safetensors",
           safetensors(R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", kTwoFloats),
           part);
  };
  entry("[-2]", "[0,8]", "the number -2 instead of whole numbers");
  entry("[2.0]", "[0,8]", "the number '2.0' instead of whole numbers");
  entry("[9223372036854775808]", "[0,8]", "the number 9223372036854775808");
  entry("[18446744073709551616]", "[0,8]", "the number '18446744073709551616'");
  entry("[4294967296,4294967296]", "[0,8]", "more elements than any file");    // 2^64 wraps to 0
  entry("[2147483648,2147483649,4]", "[0,8]", "more elements than any file");  // wraps to 2^33
  entry("[9223372036854775807,0]", "[0,0]", "more elements than any file");
  std::string ones = "[1";
  for (int i = 0; i < 100; ++i) ones += ",1";
  entry(ones + "]", "[0,8]", "more than 64 numbers");
  entry("[2]", "[0]", "instead of a start and an end");
  entry("[2]", "[0,8,8]", "instead of a start and an end");
  entry("[2]", "[8,0]", "instead of a start and an end");
  entry("[2]", "[-8,0]", "the number -8");
  entry("[3]", "[0,12]", "only 8 bytes are there");
  entry("[2]", "[9223372036854775800,9223372036854775807]", "only 8 bytes are there");
  entry("[1]", "[0,8]", "needs 32 bits");
  entry("[1]", "[0,4]", "4 bytes from byte 66 on belong to no tensor");
  entry("[1]", "[4,8]", "leaves a gap after byte 62");
  const auto two = [&](const std::string& second, const std::string& part) {
    refuse("broken.safetensors",
           safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F16",)" + second + "}}",
                       kTwoFloats),
           part);
  };
  two(R"("shape":[4],"data_offsets":[0,8])", "tensor 'b' at byte 115 overlaps");
  two(R"("shape":[3],"data_offsets":[2,8])", "overlaps the bytes before byte 119");
  two(R"("shape":[1],"data_offsets":[6,8])", "leaves a gap");
  two(R"("shape":[0],"data_offsets":[2,2])", "overlaps");
}

TEST_F(FloatTensors, RefusesBrokenNpyFiles) {
  const std::string sound = npy(1, npy_header("'<f4'", "False", "(2,)"), kTwoFloats);
  ASSERT_EQ(open("sound.npy", sound).tensors.size(), 1u);
  const auto file = [&](const std::string& content, const std::string& part) { refuse("broken.npy", content, part); };
  const auto header = [&](const std::string& text, const std::string& part) { file(npy(1, text, kTwoFloats), part); };
  file("PK\3\4" + sound, "magic string");
  file(sound.substr(0, 5), "magic string");
  file(sound.substr(0, 11), "ends at byte 11");
  file(npy(0, "", ""), "version at byte 6 is 0.0");
  file(npy(4, npy_header("'<f4'", "False", "(2,)"), kTwoFloats), "version at byte 6 is 4.0");
  file(sound.substr(0, 30), "claims");
  file("\x93NUMPY" + std::string("\2\0\xff\xff\xff\xff", 6) + sound, "claims 4294967295 bytes");
  file(sound.substr(0, sound.size() - 1), "has 7 bytes, but shape [2] of <f4 needs 8");
  file(sound + "x", "has 9 bytes, but shape [2] of <f4 needs 8");
  header("", "wants '{'");
  header("x", "wants '{'");
  header("{'descr'", "wants a quoted key and ':'");
  header("{'descr", "wants a quoted key and ':'");
  header("{'descr': '<f4", "wants a quoted dtype");
  header("{'descr': '<f4' 'shape'", "wants ',' or '}'");
  header("{'descr': '<f4'}", "lacks the key fortran_order");
  header("{}", "lacks the key descr");
  header("{'descr': '<f4', 'fortran_order': False}", "lacks the key shape");
  header("{'descr': '<f4', 'descr': '<f4'}", "key 'descr' before byte 35, which is unknown or stands there twice");
  header("{'other': 1}", "key 'other'");
  header(npy_header("[('a', '<f4')]", "False", "(2,)"), "structured dtypes are not read");
  header(npy_header("'<f8'", "False", "(1,)"), "the dtype is '<f8'");
  header(npy_header("'>f4'", "False", "(2,)"), "the dtype is '>f4'");
  header(npy_header("'|O'", "False", "(2,)"), "the dtype is '|O'");
  header(npy_header("'<f4\xff\n'", "False", "(2,)"), R"('<f4\xff\x0a')");
  header(npy_header("'<f4'", "True", "(2,)"), "Fortran order");
  header(npy_header("'<f4'", "1", "(2,)"), "wants True or False");
  header(npy_header("'<f4'", "False", "2"), "wants a tuple");
  header(npy_header("'<f4'", "False", "(2 2)"), "wants ',' or ')'");
  header(npy_header("'<f4'", "False", "(-2,)"), "wants a dimension");
  header(npy_header("'<f4'", "False", "(9223372036854775808,)"), "wants a dimension");
  header(npy_header("'<f4'", "False", "(2.0,)"), "wants ',' or ')'");
  header(npy_header("'<f4'", "False", "(4294967296, 4294967296)"), "more elements than any file");
  header(npy_header("'<f4'", "False", "(0,)"), "no elements");
  header(npy_header("'<f4'", "False", "(3,)"), "needs 12");
  std::string ones = "(";
  for (int i = 0; i < 100; ++i) ones += "1,";
  header(npy_header("'<f4'", "False", ones + ")"), "at most 64 dimensions");
  header(npy_header("'<f4'", "False", "(2,)") + "x", "wants nothing but padding");
}

// ---------------------------------------------------------------------------------------------------- hostile files

std::string mutated(std::string bytes, std::mt19937_64& random) {
  const std::string_view alphabet = "{}[]()\",:'0123456789-eE.\\ \n";
  for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
    const std::size_t at = random() % (bytes.size() + 1);
    switch (random() % 6) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        bytes.insert(at, 1, alphabet[random() % alphabet.size()]);
        break;
      case 3:
        bytes.erase(at, random() % 8);
        break;
      case 4:
        bytes.insert(at, bytes.substr(random() % (at + 1), random() % 64));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

/// Parsed from a heap block of exactly its size, so that AddressSanitizer sees a read past its end, which a mapped page
/// would hide.
void parse_mutations(const std::string& name, const std::string& sound) {
  std::mt19937_64 random(20240229);
  std::size_t accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = mutated(sound, random);
    std::vector<std::byte> bytes(text.size());
    std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    std::vector<FloatTensor> tensors;
    std::vector<SkippedTensor> skipped;
    if (!parse_float_tensors(name, bytes, tensors, skipped).empty()) continue;
    ++accepted;
    for (const FloatTensor& t : tensors) {
      const std::size_t width = static_cast<std::size_t>(info(t.format).width) / 8;
      ASSERT_EQ(t.bytes.size(), element_count(t.shape) * width);
      ASSERT_LE(t.byte_offset + t.bytes.size(), bytes.size());
      ASSERT_EQ(t.bytes.data(), bytes.data() + t.byte_offset);
      ASSERT_EQ(check_shape(t.shape, {}), "");
      pattern(t, t.bytes.size() / width - 1);
    }
  }
  EXPECT_GT(accepted, 0u) << "mutations that break everything test only the first check";
  EXPECT_LT(accepted, 5000u);
}

TEST(FloatTensorMutations, SafetensorsNeverCrashes) {
  parse_mutations("m.safetensors",
                  safetensors(R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                              R"("h":{"dtype":"F16","shape":[2],"data_offsets":[8,12]}})",
                              kTwoFloats + "abcd"));
}

TEST(FloatTensorMutations, NpyNeverCrashes) {
  parse_mutations("m.npy", npy(1, npy_header("'<f4'", "False", "(2, 1)"), kTwoFloats));
  parse_mutations("m.npy", npy(2, npy_header("'<f2'", "False", "(4,)"), kTwoFloats));
}

// ---------------------------------------------------------------------------------------------------- real files

fs::path shared_models() {
  if (const char* shared = std::getenv("ASSAY_SHARED")) return fs::path(shared) / "models";
#ifdef ASSAY_SOURCE_DIR
  return fs::path(ASSAY_SOURCE_DIR) / ".." / "shared" / "models";
#else
  return {};
#endif
}

TEST(FloatTensorModels, SileroAndItsFirstWeights) {
  const fs::path model = shared_models() / "silero_vad_16k.safetensors",
                 raw = shared_models() / "ggml_reference_input.f32";
  if (!fs::exists(model) || !fs::exists(raw)) GTEST_SKIP() << "no " << model << "; set ASSAY_SHARED to have it read";
  const auto opened = open_float_tensors(model), floats = open_float_tensors(raw);
  ASSERT_TRUE(std::holds_alternative<TensorFile>(opened)) << std::get<FileError>(opened).message;
  ASSERT_TRUE(std::holds_alternative<TensorFile>(floats)) << std::get<FileError>(floats).message;
  const auto& file = std::get<TensorFile>(opened);
  EXPECT_TRUE(file.skipped.empty());
  const auto conv1 = std::ranges::find(file.tensors, "conv1.weight", &FloatTensor::name);
  ASSERT_NE(conv1, file.tensors.end());
  EXPECT_EQ(conv1->shape, (Shape{128, 129, 3}));
  // The raw file is a copy of the first weights of that tensor.
  const std::span<const std::byte> copy = std::get<TensorFile>(floats).tensors.at(0).bytes;
  ASSERT_EQ(copy.size(), 65536u);
  EXPECT_TRUE(std::ranges::equal(copy, conv1->bytes.first(copy.size())));
}

}  // namespace
}  // namespace assay
