// Reports from evidence built by hand: what decides the verdict, what each output must list, and that no string of a
// stranger's file can break out of its place.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include "reports/html_parts.h"
#include "reports/report_html.h"
#include "reports/report_json.h"
#include "reports/report_junit.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// ---------------------------------------------------------------------------------------------------- evidence

const std::vector<std::string> kTargets = {"quantizer@scalar", "quantizer@avx2"};

std::string first_property() { return std::string(catalogue().front().id); }

Finding a_finding() {
  Finding f;
  f.target = kTargets[1];
  f.property = first_property();
  f.example.shape = {2};
  f.example.x = {0x3f800000, 0x7f800000};
  f.verdict = {Outcome::fail, "wraps", "127 [7f]", "-128 [80]", 1};
  f.case_file = "cases/wraps.json";
  return f;
}

FaultEvidence a_fault(const std::string& id) {
  return {.id = id,
          .models = "a public bug",
          .expected = first_property(),
          .killed_by = {first_property()},
          .cases_to_kill = 1234,
          .seconds_to_kill = 0.25,
          .first = a_finding()};
}

InputEvidence an_input(const std::string& target) {
  InputEvidence i;
  i.file = "model.safetensors";
  i.tensor = "layer.weight";
  i.target = target;
  i.scheme = "assay.symmetric";
  i.shape = {4, 8};
  i.elements = 32;
  i.blocks = 1;
  i.worst_error_steps = 0.4375;
  i.nanoseconds_per_element = target == kTargets[0] ? 3.5 : 0.25;
  i.code_counts.assign(256, 0);
  i.code_counts[128] = 32;
  return i;
}

Evidence passing() {
  Evidence e;
  e.environment = {"0.1.0",          "abc123", "a compiler",       "-O2",
                   "a cpu",          "an os",  {"scalar", "avx2"}, {"scalar", "avx2", "neon"},
                   "to nearest even"};
  e.target = "quantizer";
  e.target_version = "1.2.3";
  e.schemes = {"assay.symmetric"};
  e.effort = "quick";
  e.command = "./run audit --seed 7";
  e.seed = 7;
  e.not_covered = {"Big-endian machines."};
  for (const Property& p : catalogue()) {
    for (const std::string& t : kTargets) e.properties.push_back({t, std::string(p.id), {100, 0, 2, 3}, {10, 0, 0, 1}});
  }
  e.faults = {a_fault("drops_last_lane"), a_fault("rounds_half_up")};
  for (const std::string& t : kTargets) e.inputs.push_back(an_input(t));
  e.oracle_cross_checks = 4321;
  e.case_kinds = {{"constant block", 30}, {"breakpoint", 70}};
  return e;
}

template <typename Change>
Json changed(Change change) {
  Evidence e = passing();
  change(e);
  return report_json(e);
}

// ---------------------------------------------------------------------------------------------------- verdict

TEST(ReportVerdict, PassesWhenAllHolds) {
  const Json report = report_json(passing());
  EXPECT_EQ(verdict_of(report), "pass");
  EXPECT_TRUE(report["reasons"].empty());
}

TEST(ReportVerdict, FailsOnWhateverIsWrong) {
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.findings = {a_finding()}; })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.faults[1].killed_by.clear(); })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.inputs[0].illegal_scales = 1; })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.inputs[0].illegal_zero_points = 1; })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.inputs[1].illegal_codes = 1; })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.inputs[1].illegal_values = 1; })), "fail");
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.inputs[1].illegal_counts = 1; })), "fail");
}

TEST(ReportVerdict, FailedCaseWithoutFindingStillFails) {
  const Json report = changed([](Evidence& e) { e.properties[0].corpus.fail = 1; });
  EXPECT_EQ(verdict_of(report), "fail");
  EXPECT_EQ(report["requirements"][0]["verdict"], "fail");
}

TEST(ReportVerdict, FindingWithoutRowIsNotLost) {
  const Json report = changed([](Evidence& e) {
    e.findings = {a_finding()};
    e.findings[0].property = "not_in_the_catalogue";
  });
  EXPECT_EQ(verdict_of(report), "fail");
  EXPECT_EQ(report["requirements"].back()["id"], "not_in_the_catalogue");
  EXPECT_EQ(report["requirements"].back()["verdict"], "fail");
  EXPECT_NE(report_junit(report).find("name=\"not_in_the_catalogue\""), std::string::npos);
}

TEST(ReportVerdict, KnownFindingIsAWaiver) {
  const Json report = changed([](Evidence& e) {
    e.findings = {a_finding()};
    e.findings[0].known = true;
    e.findings[0].known_reason = "documented";
    e.properties[1].drawn.fail = 4;
  });
  EXPECT_EQ(verdict_of(report), "pass_with_waivers");
  EXPECT_EQ(report["requirements"][0]["verdict"], "pass_with_waivers");
}

TEST(ReportVerdict, IncompleteWhenSomethingDidNotRun) {
  EXPECT_EQ(verdict_of(changed([](Evidence& e) { e.incomplete = {"neon"}; })), "incomplete");
  EXPECT_EQ(verdict_of(report_json(Evidence{})), "incomplete");
  const Json absent = changed([](Evidence& e) { e.properties.erase(e.properties.begin(), e.properties.begin() + 2); });
  EXPECT_EQ(verdict_of(absent), "incomplete");
  EXPECT_EQ(absent["requirements"][0]["verdict"], "not_judged");
  const Json zero = changed([](Evidence& e) {
    e.properties[0] = {kTargets[0], first_property(), {0, 0, 0, 60}, {}};
    e.properties[1] = {kTargets[1], first_property(), {0, 0, 0, 60}, {}};
  });
  EXPECT_EQ(verdict_of(zero), "incomplete");
  EXPECT_EQ(zero["requirements"][0]["method"], "none");
}

// A quantizer with one instruction set has nothing to agree with: that is a gap to print, not a part that did not run.
TEST(ReportVerdict, WhatTheTargetDoesNotOfferIsAGap) {
  const Json one = changed([](Evidence& e) {
    for (std::size_t t = 0; t < kTargets.size(); ++t) e.properties[t].drawn = e.properties[t].corpus = {0, 0, 50, 60};
  });
  EXPECT_EQ(verdict_of(one), "pass");
  EXPECT_EQ(one["requirements"][0]["verdict"], "not_judged");
  EXPECT_NE(report_html(one).find(first_property() + ": no case was judged"), std::string::npos);
  const Json nothing = changed([](Evidence& e) {
    for (PropertyEvidence& row : e.properties) row.drawn = row.corpus = {0, 0, 50, 60};
  });
  EXPECT_EQ(verdict_of(nothing), "incomplete");
}

TEST(ReportVerdict, OneJudgedTargetIsEnough) {
  const auto silence_one = [](Evidence& e) { e.properties[0] = {kTargets[0], first_property(), {0, 0, 0, 60}, {}}; };
  EXPECT_EQ(verdict_of(changed(silence_one)), "pass");
}

TEST(ReportVerdict, FailOutranksIncompleteAndKeepsItsReasons) {
  const Json report = changed([](Evidence& e) {
    e.incomplete = {"neon did not run"};
    e.faults[0].killed_by.clear();
  });
  EXPECT_EQ(verdict_of(report), "fail");
  EXPECT_EQ(report["reasons"].size(), 2u);
}

// ---------------------------------------------------------------------------------------------------- report.json

TEST(ReportJson, CountsAddUp) {
  const Json first = report_json(passing())["requirements"][0];
  EXPECT_EQ(first["cases"], 220);
  EXPECT_EQ(first["unsupported"], 4);
  EXPECT_EQ(first["not_applicable"], 8);
  EXPECT_EQ(first["targets"][1]["drawn"]["pass"], 100);
  EXPECT_EQ(first["method"], "generated cases, corpus replay");
}

TEST(ReportJson, FindingTellsTheStory) {
  const Json f = changed([](Evidence& e) { e.findings = {a_finding()}; })["findings"][0];
  EXPECT_EQ(f["signature"], signature(a_finding()));
  EXPECT_EQ(f["scheme"], "assay.symmetric");
  for (const char* part : {"quantizer@avx2", "127 [7f]", "-128 [80]", "index 1", "wraps"}) {
    EXPECT_NE(f["explanation"].get<std::string>().find(part), std::string::npos) << part;
  }
  EXPECT_EQ(f["example"]["x"].size(), 2u);
}

TEST(ReportJson, FaultStatus) {
  const Json report = changed([](Evidence& e) {
    e.faults[0].killed_by.clear();
    e.faults[1].killed_by = {"another"};
    e.faults.push_back(a_fault("third"));
  });
  EXPECT_EQ(report["faults"][0]["status"], "survived");
  EXPECT_EQ(report["faults"][1]["status"], "killed_by_others");
  EXPECT_TRUE(report["faults"][1]["first"].is_null());
  EXPECT_EQ(report["faults"][2]["status"], "killed");
}

TEST(ReportJson, OptionsKeepTheirTypes) {
  const Json options = report_json(passing())["inputs"][0]["options"];
  EXPECT_EQ(options["bits"], 8);
  EXPECT_EQ(options["scale_format"], "f32");
}

TEST(ReportJson, NumbersThatAreNotFiniteAreNull) {
  const Json report = changed([](Evidence& e) {
    e.inputs[0].worst_error_steps = std::numeric_limits<double>::quiet_NaN();
    e.inputs[0].worst_error = std::numeric_limits<double>::infinity();
  });
  EXPECT_TRUE(report["inputs"][0]["worst_error_steps"].is_null());
  EXPECT_TRUE(report["inputs"][0]["worst_error"].is_null());
  EXPECT_FALSE(report_html(report).empty());
}

// What of `value` the schema does not describe, and what the schema requires and `value` lacks.
void compare(const Json& schema, const Json& root, const Json& value, const std::string& path,
             std::set<std::string>& bad) {
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"].get<std::string>().substr(std::string("#/definitions/").size());
    return compare(root["definitions"][name], root, value, path, bad);
  }
  if (schema.contains("oneOf")) return value.is_null() ? void() : compare(schema["oneOf"][0], root, value, path, bad);
  if (schema.contains("enum")) {
    const Json& all = schema["enum"];
    if (std::find(all.begin(), all.end(), value) == all.end()) bad.insert(path + " = " + value.dump());
  }
  if (schema.contains("items")) {
    for (const Json& item : value) compare(schema["items"], root, item, path + "[]", bad);
  }
  if (!schema.contains("properties")) return;
  for (const Json& key : schema["required"]) {
    if (!value.contains(key.get<std::string>())) bad.insert(path + "." + key.get<std::string>() + " is missing");
  }
  for (const auto& [key, item] : value.items()) {
    if (!schema["properties"].contains(key)) {
      bad.insert(path + "." + key + " is not described");
    } else {
      compare(schema["properties"][key], root, item, path + "." + key, bad);
    }
  }
}

TEST(ReportJson, SchemaDescribesEveryKey) {
  std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "report.schema.json");
  const Json schema = Json::parse(file);
  std::set<std::string> bad;
  compare(schema, schema, report_json(passing()), "", bad);
  compare(schema, schema, report_json(Evidence{}), "", bad);
  compare(schema, schema, changed([](Evidence& e) { e.findings = {a_finding()}; }), "", bad);
  EXPECT_TRUE(bad.empty()) << *bad.begin();
}

// ---------------------------------------------------------------------------------------------------- all outputs

TEST(Reports, SameEvidenceSameBytes) {
  const Json a = report_json(passing()), b = report_json(passing());
  EXPECT_EQ(a.dump(2), b.dump(2));
  EXPECT_EQ(report_html(a), report_html(b));
  EXPECT_EQ(report_junit(a), report_junit(b));
}

TEST(Reports, SameFromTheFileReadBack) {
  const Json report = changed([](Evidence& e) { e.findings = {a_finding()}; });
  const Json read = Json::parse(report.dump(2));
  EXPECT_EQ(report_html(read), report_html(report));
  EXPECT_EQ(report_junit(read), report_junit(report));
}

// Every opened element is closed in order: enough to see markup that an unescaped string broke.
std::string unbalanced(const std::string& markup) {
  static const std::set<std::string> kVoid = {"meta", "br", "wbr"};
  static const std::regex kTag("<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:[^<>\"]|\"[^<\"]*\")*?)(/?)>");
  std::vector<std::string> open;
  for (auto tag = std::sregex_iterator(markup.begin(), markup.end(), kTag); tag != std::sregex_iterator(); ++tag) {
    const std::string name = (*tag)[2];
    if ((*tag)[4] == "/" || kVoid.count(name)) continue;
    if ((*tag)[1] != "/") {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> at " + std::to_string(tag->position());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

std::string first_control_character(const std::string& text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) return fmt::format("\\x{:02x}", c);
  }
  return "";
}

const std::string kHostile =
    "<script>alert('1')</script>&\"\x01\x1b]\n</td>--><!--{}\xff\xe2\x80\xae"
    "end";

Evidence hostile() {
  Evidence e = passing();
  e.environment = {kHostile, kHostile, kHostile, kHostile, kHostile, kHostile, {kHostile}, {kHostile, "x" + kHostile},
                   kHostile};
  e.target = e.target_version = e.effort = e.command = kHostile;
  e.schemes = e.not_covered = e.incomplete = {kHostile};
  e.case_kinds = {{kHostile, 1}};
  e.properties.push_back({kHostile, kHostile, {1, 1, 0, 0}, {}});
  Finding f = a_finding();
  f.target = f.property = f.case_file = f.known_reason = kHostile;
  f.example.scheme = f.example.source = f.example.why = kHostile;
  f.verdict.kind = f.verdict.legal = f.verdict.got = kHostile;
  e.findings = {f, f};
  e.findings[1].known = true;
  e.faults.push_back({.id = kHostile,
                      .models = kHostile,
                      .expected = kHostile,
                      .killed_by = {kHostile},
                      .cases_to_kill = 1,
                      .seconds_to_kill = 1,
                      .first = f});
  InputEvidence i = an_input(kHostile);
  i.file = i.tensor = i.scheme = kHostile;
  i.illegal_codes = 1;
  e.inputs.push_back(i);
  return e;
}

TEST(Reports, HostileStringsStayText) {
  const Json report = report_json(hostile());
  EXPECT_NO_THROW(static_cast<void>(report.dump()));
  for (const std::string& markup : {report_html(report), report_junit(report)}) {
    EXPECT_EQ(markup.find("<script"), std::string::npos);
    EXPECT_EQ(markup.find("<!--"), std::string::npos);
    EXPECT_EQ(markup.find("\xe2\x80\xae"), std::string::npos);
    EXPECT_NE(markup.find("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\\x01"), std::string::npos);
    EXPECT_EQ(first_control_character(markup), "");
    EXPECT_EQ(unbalanced(markup), "");
  }
}

TEST(Reports, MarkupIsBalanced) {
  for (const Evidence& e : {passing(), Evidence{}}) {
    EXPECT_EQ(unbalanced(report_html(report_json(e))), "");
    EXPECT_EQ(unbalanced(report_junit(report_json(e))), "");
  }
}

// ---------------------------------------------------------------------------------------------------- report.html

std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(ReportHtml, NeedsNothingFromOutside) {
  const std::string page = report_html(report_json(hostile()));
  for (const char* part : {"<link", "src=", "url(", "@import", "<script", "href=\"h"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST(ReportHtml, SaysFirstWhatWasNotCovered) {
  const std::string page = report_html(report_json(passing()));
  std::size_t before = 0;
  for (const char* id : {"verdict", "not-covered", "identity", "requirements", "targets", "case-kinds", "findings",
                         "faults", "inputs", "oracle", "reproduce", "approvals"}) {
    const std::size_t at = page.find(fmt::format("id=\"{}\"", id));
    ASSERT_NE(at, page.npos) << id;
    EXPECT_GT(at, before) << id;
    before = at;
  }
  EXPECT_NE(page.find("<li>Big-endian machines.</li>"), page.npos);
  EXPECT_NE(page.find("not run on this machine: neon."), page.npos);
}

TEST(ReportHtml, IdsAreUniqueAndLinksLeadSomewhere) {
  const std::string page = report_html(changed([](Evidence& e) { e.findings = {a_finding(), a_finding()}; }));
  static const std::regex kId(" id=\"([^\"]*)\""), kLink("href=\"#([^\"]*)\"");
  std::set<std::string> ids;
  for (auto m = std::sregex_iterator(page.begin(), page.end(), kId); m != std::sregex_iterator(); ++m) {
    EXPECT_TRUE(ids.insert((*m)[1]).second) << (*m)[1];
  }
  for (auto m = std::sregex_iterator(page.begin(), page.end(), kLink); m != std::sregex_iterator(); ++m) {
    EXPECT_TRUE(ids.count((*m)[1])) << (*m)[1];
  }
}

TEST(ReportHtml, ListsEveryRequirementTargetFaultAndFinding) {
  const std::string page = report_html(changed([](Evidence& e) { e.findings = {a_finding(), a_finding()}; }));
  for (const Property& p : catalogue()) {
    EXPECT_NE(page.find("id=\"" + page::anchor("requirement", p.id) + "\""), page.npos) << p.id;
  }
  for (const char* part : {"quantizer<wbr>@avx2", "drops_last_lane", "rounds_half_up", "1,234", "Seen 2 times",
                           "assay replay cases/wraps.json", "127 [7f]", "-128 [80]", "./run audit --seed 7", "4,321"}) {
    EXPECT_NE(page.find(part), page.npos) << part;
  }
  EXPECT_EQ(occurrences(page, "<article"), 1u);
}

TEST(ReportHtml, SurvivorsComeFirst) {
  const std::string page = report_html(changed([](Evidence& e) { e.faults[1].killed_by.clear(); }));
  EXPECT_LT(page.find("id=\"fault:rounds_half_up\""), page.find("id=\"fault:drops_last_lane\""));
}

TEST(ReportHtml, ZeroCasesDoNotLookPassed) {
  const std::string page = report_html(changed([](Evidence& e) {
    e.properties[0] = {kTargets[0], first_property(), {0, 0, 0, 60}, {}};
    e.properties[1] = {kTargets[1], first_property(), {}, {}};
  }));
  const std::size_t row = page.find("id=\"" + page::anchor("requirement", first_property()) + "\"");
  const std::string text = page.substr(row, page.find("</tr>", row) - row);
  EXPECT_NE(text.find("○ none"), text.npos);
  EXPECT_NE(text.find("not judged"), text.npos);
  EXPECT_EQ(text.find("✓"), text.npos);
  EXPECT_NE(page.find("60 not applicable"), page.npos);
}

TEST(ReportHtml, TargetsThatAgreeShareOneRow) {
  EXPECT_EQ(occurrences(report_html(report_json(passing())), "class=\"histogram\""), 1u);
  const Json differ = changed([](Evidence& e) { ++e.inputs[1].code_counts[3]; });
  EXPECT_EQ(occurrences(report_html(differ), "class=\"histogram\""), 2u);
}

TEST(ReportHtml, HistogramSpeaks) {
  const std::string page = report_html(report_json(passing()));
  EXPECT_NE(page.find("aria-label=\"1 of 256 codes used; most frequent 0 (32 times, 100.0 %)"), page.npos);
}

TEST(ReportHtml, ErrorIsNeverRoundedOntoItsBound) {
  EXPECT_EQ(page::steps_text(0.4375, 0.5), "0.4375");
  EXPECT_EQ(page::steps_text(0.5, 0.5), "0.5000");
  EXPECT_LT(std::stod(page::steps_text(0.49999999, 0.5)), 0.5);
  EXPECT_GT(std::stod(page::steps_text(0.50000001, 0.5)), 0.5);
}

TEST(ReportHtml, Numbers) {
  EXPECT_EQ(page::grouped(0), "0");
  EXPECT_EQ(page::grouped(999), "999");
  EXPECT_EQ(page::grouped(1234567), "1,234,567");
  EXPECT_EQ(page::three_digits(0.3124), "0.312");
  EXPECT_EQ(page::three_digits(12.34), "12.3");
  EXPECT_EQ(page::three_digits(1234.4), "1,234");
}

// ---------------------------------------------------------------------------------------------------- junit.xml

TEST(ReportJunit, OneTestForEachRequirementOnEachTarget) {
  const std::string xml = report_junit(report_json(passing()));
  for (const std::string& t : kTargets) {
    EXPECT_NE(xml.find(fmt::format("<testsuite name=\"{}\" tests=\"{}\" failures=\"0\" errors=\"0\" skipped=\"0\">", t,
                                   catalogue().size())),
              xml.npos)
        << xml;
    EXPECT_EQ(occurrences(xml, fmt::format("classname=\"assay.{}\"", t)), catalogue().size());
  }
  EXPECT_NE(xml.find("<testsuite name=\"faults\" tests=\"2\""), xml.npos);
  EXPECT_NE(xml.find("<testsuite name=\"inputs\" tests=\"2\""), xml.npos);
  EXPECT_EQ(xml.find("<failure"), xml.npos);
}

TEST(ReportJunit, FailuresSurvivorsAndIllegalInputsFail) {
  const std::string xml = report_junit(changed([](Evidence& e) {
    e.findings = {a_finding()};
    e.properties[1].drawn.fail = 3;
    e.faults[0].killed_by.clear();
    e.inputs[0].illegal_codes = 5;
    e.incomplete = {"neon"};
  }));
  EXPECT_EQ(occurrences(xml, "<failure"), 4u);
  EXPECT_NE(xml.find("3 failed of 113 cases"), xml.npos);
  EXPECT_NE(xml.find("assay replay cases/wraps.json"), xml.npos);
  EXPECT_NE(xml.find("type=\"survivor\""), xml.npos);
  EXPECT_NE(xml.find("5 codes"), xml.npos);
  EXPECT_NE(xml.find("type=\"incomplete\""), xml.npos);
}

TEST(ReportJunit, NoJudgedCaseIsSkipped) {
  const std::string xml = report_junit(changed([](Evidence& e) {
    e.properties[0] = {kTargets[0], first_property(), {0, 0, 0, 60}, {}};
  }));
  EXPECT_EQ(occurrences(xml, "<skipped"), 1u);
  EXPECT_NE(xml.find("60 not applicable"), xml.npos);
  EXPECT_EQ(occurrences(report_junit(report_json(Evidence{})), "<skipped"), catalogue().size());
}

TEST(ReportJunit, KnownFindingPassesAndSaysSo) {
  const std::string xml = report_junit(changed([](Evidence& e) {
    e.findings = {a_finding()};
    e.findings[0].known = true;
    e.findings[0].known_reason = "documented";
  }));
  EXPECT_EQ(xml.find("<failure"), xml.npos);
  EXPECT_NE(xml.find("known: documented"), xml.npos);
}

}  // namespace
}  // namespace assay
