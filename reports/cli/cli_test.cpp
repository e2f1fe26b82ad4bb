// The command as a user meets it: what it prints where, and its exit codes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Result {
  int code;
  std::string out, err;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("assay_cli_test.{}", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // `arguments` as a shell reads them.
  Result assay(const std::string& arguments, const std::string& input = {}) {
    write("stdin", input);
    const std::string command =
        fmt::format("cd '{}' && {} {} <stdin >stdout 2>stderr", folder_.string(), ASSAY_COMMAND, arguments);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read(folder_ / "stdout"), read(folder_ / "stderr")};
  }

  void write(const std::string& name, const std::string& content) { std::ofstream(folder_ / name) << content; }

  // One sentence on stderr, nothing on stdout.
  void refused(const std::string& arguments, int code, const std::string& sentence) {
    const Result r = assay(arguments);
    EXPECT_EQ(r.code, code) << arguments << "\n" << r.err;
    EXPECT_EQ(r.out, "") << arguments;
    EXPECT_NE(r.err.find(sentence), std::string::npos) << arguments << "\n" << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << arguments << "\n" << r.err;
  }

  fs::path folder_;
};

const std::string kCases = ASSAY_SOURCE_DIR "/corpus/cases";
const std::string kTie = kCases + "/qb57_tie_away_from_zero.json";

// ------------------------------------------------------------------------------------------- wrong command lines

TEST_F(Cli, RefusesWhatItDoesNotKnowAndProposesTheNearest) {
  refused("", 2, "no verb is given");
  refused("adit", 2, "unknown verb 'adit'; the nearest is 'audit'");
  refused("audit --traget x", 2, "unknown flag '--traget'; the nearest is '--target'");
  refused("audit --target quantizr", 2, "unknown target 'quantizr'; the nearest is 'quantizer'");
  refused("audit --target fault:truncate", 2, "the nearest is 'fault:truncates'");
  refused("audit --scheme assay.symetric", 2, "unknown scheme 'assay.symetric'; the nearest is 'assay.symmetric'");
  refused("audit --effort releas", 2, "unknown effort 'releas'; the nearest is 'release'");
  refused("audit --set bit=4", 2, "unknown option 'bit'; the nearest is 'bits'");
  refused("audit --set bits=9", 2, "option bits: '9' is not a whole number from 2 to 8");
  refused("audit --set bits", 2, "--set takes key=value, not 'bits'");
  refused("audit --set signed=false --scheme assay.symmetric", 2, "assay.symmetric needs signed codes");
  refused("audit --seed x", 2, "--seed = x");
  refused("audit extra", 2, "audit takes no argument 'extra' there");
  refused("oracle --scheme assay.asymetric", 2, "the nearest is 'assay.asymmetric'");
  refused("oracle --scheme assay.symmetric --set signed=false", 2, "assay.symmetric needs signed codes");
  refused("replay", 2, "CASE is required");
  refused(fmt::format("replay {} --property legal_code", kTie), 2, "the nearest is 'legal_codes'");
  refused(fmt::format("replay {} --target nobody", kTie), 2, "unknown target 'nobody'");
  refused("minimize", 2, "CASE is required");
  refused(fmt::format("minimize {} --target recorded", kTie), 2, "no smaller case");
  refused("explain", 2, "CASE is required");
  refused(fmt::format("explain {} --element 2", kTie), 2, "the case has 2 elements, counted from 0");
  refused(fmt::format("explain {} again", kTie), 2, "explain takes no argument 'again' there");
  refused("list target", 2, "unknown list 'target'; the nearest is 'targets'");
}

TEST_F(Cli, RefusesInputThatCannotBeRead) {
  write("broken.json", "{\"op\":\"round_trip\",\"x\":[\"3f80000\"]}");
  write("broken.npy", "not numpy");
  fs::create_directories(folder_ / "empty");
  refused("replay nowhere.json", 3, "nowhere.json: cannot be read");
  refused("replay broken.json", 3, "broken.json: key 'x', item 0");
  refused("replay empty", 3, "empty: holds no case file");
  refused("explain broken.json", 3, "broken.json: key 'x', item 0");
  refused("minimize nowhere.json", 3, "nowhere.json: cannot be read");
  refused("audit --input nowhere.safetensors --out out", 3, "nowhere.safetensors");
  refused("audit --input broken.npy --out out", 3, "broken.npy");
  EXPECT_FALSE(fs::exists(folder_ / "out")) << "nothing is begun for input that cannot be read";
}

TEST_F(Cli, RefusesAFolderThatCannotBeMade) {
  write("file", "");
  refused("audit --effort quick --out file/out", 2, "--out file/out: the folder cannot be made");
}

TEST_F(Cli, HelpGoesToStdout) {
  for (const std::string verb : {"", "audit ", "oracle ", "replay ", "minimize ", "explain ", "list "}) {
    const Result r = assay(verb + "--help");
    EXPECT_EQ(r.code, 0) << verb;
    EXPECT_NE(r.out.find("Exit codes"), std::string::npos) << verb;
    EXPECT_EQ(r.err, "") << verb;
  }
}

// ------------------------------------------------------------------------------------------- oracle

TEST_F(Cli, OracleAnswersLineByLineToTheLetter) {
  // amax 1 over qmax 7 is 1/7, in f16 0x3092 = 1170 * 2^-13; -0.5 is 3.5005... steps down, so code -4 after rounding.
  const Result r = assay("oracle --scheme assay.symmetric --set bits=4 --set scale_format=f16",
                         "{\"x\":[\"3f800000\",\"bf000000\",\"00000000\"]}\n"
                         "{\"op\":\"choose_qparams\",\"x\":[\"00000001\"]}\n"
                         "{\"op\":\"quantize\",\"x\":[\"3f800000\"],\"scale\":\"2004\",\"zero_point\":0}\n"
                         "{\"op\":\"dequantize\",\"codes\":[3],\"scale\":\"2004\",\"zero_point\":0}\n"
                         "{\"x\":[\"7f800000\",\"7fc00000\",\"ff800000\"]}\n"
                         "{\"options\":{\"granularity\":\"per_block\",\"block\":2},\"x\":[\"3f800000\",\"bf000000\","
                         "\"40000000\"]}\n");
  EXPECT_EQ(
      r.out,
      "{\"scale\":{\"format\":\"f16\",\"bits\":\"3092\"},\"zero_point\":0,\"codes\":[7,-4,0],\"values\":{"
      "\"format\":\"f32\",\"bits\":[\"3f7ff000\",\"bf124000\",\"00000000\"]},\"nan\":0,\"inf\":0,\"saturated\":0}\n"
      "{\"scale\":{\"format\":\"f16\",\"bits\":\"0001\"},\"zero_point\":0,\"nan\":0,\"inf\":0,\"saturated\":0}\n"
      "{\"scale\":{\"format\":\"f16\",\"bits\":\"2004\"},\"zero_point\":0,\"codes\":[7],\"nan\":0,\"inf\":0,"
      "\"saturated\":1}\n"
      "{\"scale\":{\"format\":\"f16\",\"bits\":\"2004\"},\"zero_point\":0,\"values\":{\"format\":\"f32\",\"bits\":["
      "\"3cc0c000\"]},\"nan\":0,\"inf\":0,\"saturated\":0}\n"
      "{\"scale\":{\"format\":\"f16\",\"bits\":\"3c00\"},\"zero_point\":0,\"codes\":[7,0,-8],\"values\":{"
      "\"format\":\"f32\",\"bits\":[\"40e00000\",\"00000000\",\"c1000000\"]},\"nan\":1,\"inf\":2,\"saturated\":0}\n"
      "{\"scale\":{\"format\":\"f16\",\"bits\":[\"3092\",\"3492\"]},\"zero_point\":[0,0],\"codes\":[7,-4,7],"
      "\"values\":{\"format\":\"f32\",\"bits\":[\"3f7ff000\",\"bf124000\",\"3ffff000\"]},\"nan\":0,\"inf\":0,"
      "\"saturated\":0}\n");
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.code, 0);
}

TEST_F(Cli, OracleGoesOnAfterALineItCannotTake) {
  const Result r = assay("oracle", "nonsense\n{\"x\":[\"3f800000\"]}\n{\"x\":[]}\n");
  EXPECT_EQ(r.code, 3);
  std::istringstream lines(r.out);
  std::string line;
  std::vector<Json> answers;
  while (std::getline(lines, line)) answers.push_back(Json::parse(line));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[0].contains("error"));
  EXPECT_EQ(answers[1]["codes"], Json({127}));
  EXPECT_TRUE(answers[2].contains("error"));
}

TEST_F(Cli, TheThreeOraclesAnswerTheCorpusAlike) {
  std::string lines;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    Json j = Json::parse(read(entry.path()));
    j.erase("faulty");
    lines += j.dump() + "\n";
  }
  const Result exact = assay("oracle", lines);
  EXPECT_EQ(exact.code, 0);
  EXPECT_EQ(assay("oracle --oracle search", lines).out, exact.out);
  EXPECT_EQ(assay("oracle --oracle fast", lines).out, exact.out);
}

// ------------------------------------------------------------------------------------------- cases

TEST_F(Cli, ExplainShowsATieWithBothBreakpoints) {
  const Result r = assay(fmt::format("explain {}", kTie));
  EXPECT_EQ(r.code, 0);
  for (const char* part :
       {"5/2", "code 2 from 0x1.8p+0 [3fc00000], threshold 3/2", "code 3 from 0x1.400002p+1 [40200001], threshold 5/2",
        "halfway between 2 and 3", "the even one", "Who answered what", "recorded", "element 0: code 3"}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << part << "\n" << r.out;
  }
  const Json j = Json::parse(assay(fmt::format("explain --json {}", kTie)).out);
  EXPECT_EQ(j["blocks"][0]["elements"][0]["code"], 2);
  EXPECT_EQ(j["blocks"][0]["elements"][0]["above"]["bits"], "40200001");
}

TEST_F(Cli, ReplayHoldsOnTheQuantizerAndFailsOnTheRecordedAnswer) {
  const Result holds = assay(fmt::format("replay {}", kTie));
  EXPECT_EQ(holds.code, 0);
  EXPECT_EQ(holds.out.find("FAILS"), std::string::npos);
  const Result fails = assay(fmt::format("replay {} --target recorded --json", kTie));
  EXPECT_EQ(fails.code, 1);
  EXPECT_EQ(Json::parse(fails.out)["trials"][0]["failures"].back()["property"], "legal_codes");
}

TEST_F(Cli, ReplayOfNothingToJudgeIsIncomplete) {
  refused(fmt::format("replay {}/ragged_last_block.json --target recorded", kCases), 5, "nothing was judged");
}

TEST_F(Cli, ReplayRunsTheOthersWhenOneFileIsBroken) {
  write("a.json", "{");
  const Result r = assay(fmt::format("replay a.json {}", kTie));
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.out.find("holds"), std::string::npos);
  EXPECT_NE(r.err.find("a.json: not JSON at byte"), std::string::npos);
}

TEST_F(Cli, MinimizeWritesACaseThatFailsTheSameWay) {
  const std::string large = kCases + "/ragged_last_block.json";
  const Result r =
      assay(fmt::format("minimize {} --target fault:truncates --property round_trip -o small.json", large));
  EXPECT_EQ(r.code, 1) << r.err;
  const Json small = Json::parse(read(folder_ / "small.json"));
  EXPECT_LT(small["x"].size(), Json::parse(read(large))["x"].size());
  EXPECT_EQ(small["found"]["target"], "fault:truncates");
  const Result again = assay("replay small.json");
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.out.find("the recorded finding round_trip"), std::string::npos);
  EXPECT_NE(again.out.find("occurs again"), std::string::npos);
  EXPECT_EQ(assay(fmt::format("minimize {}", large)).code, 0);
}

TEST_F(Cli, ACaseFoundOnATargetThatIsNotHereIsReplayedOnTheQuantizer) {
  Json j = Json::parse(read(kTie));
  j["found"] = {{"target", "quantizer@neon9"}, {"property", "legal_codes"}, {"kind", "code"}};
  write("far.json", j.dump());
  const Result r = assay("replay far.json");
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("found on quantizer@neon9, which is not here"), std::string::npos);
}

TEST_F(Cli, ListsEachKindAsTextAndAsJson) {
  for (const std::string kind : {"targets", "schemes", "properties", "faults", "isas"}) {
    const Result text = assay(fmt::format("list {}", kind));
    const Result json = assay(fmt::format("list {} --json", kind));
    EXPECT_EQ(text.code, 0);
    const Json rows = Json::parse(json.out);
    EXPECT_GE(rows.size(), 2u) << kind;
    for (const Json& row : rows)
      EXPECT_NE(text.out.find(row["name"].get<std::string>()), std::string::npos) << kind << row;
  }
  EXPECT_NE(assay("list targets").out.find("quantizer@scalar"), std::string::npos);
}

// ------------------------------------------------------------------------------------------- audit

TEST_F(Cli, AuditOfTheQuantizerPassesAndLeavesItsReports) {
  // Ten ordinary weights, one NaN and one infinity, as a raw file.
  std::ofstream raw(folder_ / "weights.f32", std::ios::binary);
  for (int i = 0; i < 10; ++i) {
    const float x = 0.1f * static_cast<float>(i) - 0.37f;
    raw.write(reinterpret_cast<const char*>(&x), sizeof x);
  }
  for (const std::uint32_t special : {0x7fc00000u, 0x7f800000u})
    raw.write(reinterpret_cast<const char*>(&special), sizeof special);
  raw.close();
  const Result r = assay("audit --effort quick --input weights.f32 --out out");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_EQ(r.out.substr(0, 4), "PASS");
  EXPECT_TRUE(fs::exists(folder_ / "out/report.html"));
  EXPECT_NE(read(folder_ / "out/junit.xml").find("<testsuites"), std::string::npos);
  const Json report = Json::parse(read(folder_ / "out/report.json"));
  EXPECT_EQ(report["verdict"], "pass");
  EXPECT_EQ(report["target"]["name"], "quantizer");
  ASSERT_FALSE(report["inputs"].empty());
  EXPECT_EQ(report["inputs"][0]["elements"], 12);
  EXPECT_EQ(report["inputs"][0]["nan"], 1);
  EXPECT_EQ(report["inputs"][0]["inf"], 1);
  for (const Json& requirement : report["requirements"]) EXPECT_GT(requirement["cases"], 0) << requirement["id"];
  for (const Json& fault : report["faults"]) EXPECT_EQ(fault["status"], "killed") << fault["id"];
}

TEST_F(Cli, AuditOfAFaultFailsWithCasesThatReplay) {
  const Result r = assay("audit --effort quick --target fault:truncates --out out --json");
  EXPECT_EQ(r.code, 1);
  const Json report = Json::parse(r.out);
  EXPECT_EQ(report, Json::parse(read(folder_ / "out/report.json")));
  ASSERT_FALSE(report["findings"].empty());
  for (const Json& finding : report["findings"]) {
    const Result again = assay(fmt::format("replay 'out/{}' --property {}", finding["case_file"].get<std::string>(),
                                           finding["property"].get<std::string>()));
    EXPECT_EQ(again.code, 1) << finding["signature"];
    EXPECT_NE(again.out.find("occurs again"), std::string::npos) << finding["signature"] << again.out;
  }
  // The next audit into the same folder takes its predecessor's cases away, and nothing else.
  write("out/cases/mine.json", "{}");
  assay("audit --effort quick --out out");
  EXPECT_TRUE(fs::exists(folder_ / "out/cases/mine.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "out/cases"), fs::directory_iterator()), 1);
}

TEST_F(Cli, AuditOfRealWeightsSeesAFaultOnThem) {
  std::ofstream raw(folder_ / "weights.f32", std::ios::binary);
  for (int i = 0; i < 9000; ++i) {  // more than one block's worth, so that the failing block is cut down
    const float x = 0.001f * static_cast<float>(i * 7919 % 4001) - 2.0f;
    raw.write(reinterpret_cast<const char*>(&x), sizeof x);
  }
  raw.close();
  const Result r = assay("audit --effort quick --target fault:truncates --input weights.f32 --out out");
  EXPECT_EQ(r.code, 1);
  const Json report = Json::parse(read(folder_ / "out/report.json"));
  for (const Json& input : report["inputs"]) {
    EXPECT_EQ(input["verdict"], "fail") << input["scheme"];
    EXPECT_GT(input["worst_error_steps"].get<double>(), 0.5);
  }
}

TEST_F(Cli, TheSameSeedGivesTheSameCases) {
  const auto kinds = [&](int seed) {
    return Json::parse(assay(fmt::format("audit --effort quick --seed {} --json --out out", seed)).out)["case_kinds"];
  };
  const Json first = kinds(7);
  EXPECT_EQ(first, kinds(7));
  EXPECT_NE(first, kinds(8));
}

TEST_F(Cli, AnEmptyCorpusMakesTheAuditIncomplete) {
  fs::create_directories(folder_ / "corpus");
  const Result r = assay("audit --effort quick --corpus corpus --out out");
  EXPECT_EQ(r.code, 5);
  EXPECT_NE(r.out.find("no case in corpus/cases"), std::string::npos) << r.out;
}

TEST_F(Cli, AcceptedFindingsAreCountedAndDoNotFailUntilTheyExpire) {
  fs::create_directories(folder_ / "corpus");
  fs::copy(kCases, folder_ / "corpus/cases");
  const std::string audit = "audit --effort quick --target fault:infinity_to_qmin --corpus corpus --out out";
  assay(audit);
  const Json first = Json::parse(read(folder_ / "out/report.json"));
  Json known = Json::array();
  for (const Json& finding : first["findings"]) {
    known.push_back({{"signature", finding["signature"]},
                     {"reason", "the caller sends no infinities"},
                     {"link", "https://example.org/1"},
                     {"expires", "2999-12-31"}});
  }
  ASSERT_FALSE(known.empty());
  write("corpus/known.json", known.dump());
  EXPECT_EQ(assay(audit).code, 0);
  EXPECT_EQ(Json::parse(read(folder_ / "out/report.json"))["verdict"], "pass_with_waivers");
  known[0]["expires"] = "2020-01-01";
  write("corpus/known.json", known.dump());
  EXPECT_EQ(assay(audit).code, 1);
  known[0].erase("reason");
  write("corpus/known.json", known.dump());
  const Result malformed = assay(audit);
  EXPECT_EQ(malformed.code, 3);
  EXPECT_NE(malformed.err.find("item 0: key 'reason' is missing"), std::string::npos) << malformed.err;
}

}  // namespace
