#include "reports/report_junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/escape.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

enum class Result { pass, fail, skipped };

struct Test {
  std::string classname{}, name{};
  Result result = Result::pass;
  std::string type{}, message{}, details{};  // of a failure; a skipped test has a message only
  std::string note{};                        // system-out: what a passed test still wants to say
  double seconds = 0;
};

struct Suite {
  std::string name;
  std::vector<Test> tests{};
  std::ptrdiff_t count(Result result) const {
    return std::count_if(tests.begin(), tests.end(), [&](const Test& t) { return t.result == result; });
  }
};

std::string str(const Json& value) { return value.get<std::string>(); }

// The text of an element keeps its own line breaks; everything between them is escaped.
std::string escape_lines(std::string_view raw) {
  std::string out;
  for (std::size_t end; (end = raw.find('\n')) != raw.npos; raw.remove_prefix(end + 1)) {
    out += escape(raw.substr(0, end)) + "\n";
  }
  return out + escape(raw);
}

std::string body(const Test& t) {
  if (t.result == Result::skipped) return fmt::format("<skipped message=\"{}\"/>", escape(t.message));
  if (t.result == Result::fail) {
    return fmt::format("<failure message=\"{}\" type=\"{}\">{}</failure>", escape(t.message), escape(t.type),
                       escape_lines(t.details));
  }
  return t.note.empty() ? std::string() : fmt::format("<system-out>{}</system-out>", escape_lines(t.note));
}

std::string xml(const Test& t) {
  const std::string inner = body(t);
  const std::string head = fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\"", escape(t.name),
                                       escape(t.classname), t.seconds);
  return inner.empty() ? head + "/>\n" : fmt::format("{}>\n      {}\n    </testcase>\n", head, inner);
}

std::string xml(const Suite& s) {
  std::string out = fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
                                escape(s.name), s.tests.size(), s.count(Result::fail), s.count(Result::skipped));
  for (const Test& t : s.tests) out += xml(t);
  return out + "  </testsuite>\n";
}

// ---------------------------------------------------------------------------------------------------- targets

std::string finding_text(const Json& f) {
  std::string out = fmt::format("{}\n{}\nlegal: {}\ngot:   {}\n", str(f.at("signature")), str(f.at("explanation")),
                                str(f.at("legal")), str(f.at("got")));
  if (f.at("known").get<bool>()) out += fmt::format("known: {}\n", str(f.at("known_reason")));
  const std::string file = str(f.at("case_file"));
  return file.empty() ? out : fmt::format("{}assay replay {}\n", out, file);
}

std::string findings_text(const Json& report, const Json& target, const Json& property, bool known) {
  std::string out;
  for (const Json& f : report.at("findings")) {
    if (f.at("target") == target && f.at("property") == property && f.at("known") == known) out += finding_text(f);
  }
  return out;
}

Test requirement_test(const Json& report, const Json& requirement, const Json& row) {
  const Json& target = row.at("target");
  const Json& id = requirement.at("id");
  Test t{.classname = "assay." + str(target), .name = str(id)};
  t.note = findings_text(report, target, id, true);
  if (row.at("verdict") == "fail") {
    t.result = Result::fail;
    t.type = "finding";
    t.message = fmt::format("{} failed of {} cases: {}", row.at("failed").get<std::uint64_t>(),
                            row.at("cases").get<std::uint64_t>(), str(requirement.at("statement")));
    t.details = findings_text(report, target, id, false) + t.note;
  } else if (row.at("verdict") == "not_judged") {
    t.result = Result::skipped;
    t.message = fmt::format("no case was judged ({} unsupported, {} not applicable)",
                            row.at("unsupported").get<std::uint64_t>(), row.at("not_applicable").get<std::uint64_t>());
  }
  return t;
}

Suite& suite_named(std::vector<Suite>& suites, const std::string& name) {
  const auto found = std::find_if(suites.begin(), suites.end(), [&](const Suite& s) { return s.name == name; });
  return found != suites.end() ? *found : suites.emplace_back(Suite{name, {}});
}

std::vector<Suite> target_suites(const Json& report) {
  std::vector<Suite> suites;
  for (const Json& requirement : report.at("requirements")) {
    for (const Json& row : requirement.at("targets")) {
      suite_named(suites, str(row.at("target"))).tests.push_back(requirement_test(report, requirement, row));
    }
    if (!requirement.at("targets").empty()) continue;
    const std::string target = str(report.at("target").at("name"));
    suite_named(suites, target)
        .tests.push_back({.classname = "assay." + target,
                          .name = str(requirement.at("id")),
                          .result = Result::skipped,
                          .message = "not run on any target"});
  }
  return suites;
}

// ---------------------------------------------------------------------------------------------------- the others

// A build server that shows only tests must not be all green when a required part never ran.
Suite audit_suite(const Json& report) {
  Test t{.classname = "assay.audit", .name = "complete"};
  for (const Json& missing : report.at("incomplete")) t.details += str(missing) + "\n";
  if (report.at("verdict") == "incomplete") {
    t.details.clear();
    for (const Json& reason : report.at("reasons")) t.details += str(reason) + "\n";
  }
  if (!t.details.empty()) {
    t.result = Result::fail;
    t.type = "incomplete";
    t.message = "something that this audit requires did not run";
  }
  return {"audit", {t}};
}

Suite fault_suite(const Json& report) {
  Suite suite{"faults", {}};
  for (const Json& f : report.at("faults")) {
    Test t{.classname = "assay.faults", .name = str(f.at("id"))};
    if (f.at("seconds_to_kill").is_number()) t.seconds = f.at("seconds_to_kill").get<double>();
    if (f.at("status") == "survived") {
      t.result = Result::fail;
      t.type = "survivor";
      t.message = "no property noticed this planted fault";
      t.details = fmt::format("models: {}\nexpected killer: {}\n", str(f.at("models")), str(f.at("expected")));
    } else if (f.at("status") == "killed_by_others") {
      t.note = fmt::format("killed, but not by the expected property {}", str(f.at("expected")));
    }
    suite.tests.push_back(std::move(t));
  }
  return suite;
}

// The configuration is part of the name: CI systems tell tests apart by class and name alone.
std::string input_name(const Json& i) {
  return fmt::format("{}:{} {} {}", str(i.at("file")), str(i.at("tensor")), str(i.at("scheme")),
                     i.at("options").dump());
}

Suite input_suite(const Json& report) {
  Suite suite{"inputs", {}};
  for (const Json& i : report.at("inputs")) {
    Test t{.classname = "assay.inputs." + str(i.at("target")), .name = input_name(i)};
    if (i.at("verdict") == "fail") {
      t.result = Result::fail;
      t.type = "illegal";
      t.message =
          fmt::format("illegal results: {} scales, {} zero points, {} codes, {} values, {} counts",
                      i.at("illegal_scales").dump(), i.at("illegal_zero_points").dump(), i.at("illegal_codes").dump(),
                      i.at("illegal_values").dump(), i.at("illegal_counts").dump());
      t.details = fmt::format("{} elements in {} blocks\n", i.at("elements").dump(), i.at("blocks").dump());
    }
    suite.tests.push_back(std::move(t));
  }
  return suite;
}

}  // namespace

std::string report_junit(const nlohmann::ordered_json& report) {
  std::vector<Suite> suites = target_suites(report);
  for (Suite& suite : std::vector<Suite>{audit_suite(report), fault_suite(report), input_suite(report)}) {
    if (!suite.tests.empty()) suites.push_back(std::move(suite));
  }
  std::size_t tests = 0;
  std::ptrdiff_t failed = 0, skipped = 0;
  std::string body;
  for (const Suite& s : suites) {
    tests += s.tests.size();
    failed += s.count(Result::fail);
    skipped += s.count(Result::skipped);
    body += xml(s);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"assay\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n{}</testsuites>\n",
      tests, failed, skipped, body);
}

}  // namespace assay
