#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "reports/cli/audit.h"
#include "reports/cli/verbs.h"
#include "reports/report_html.h"
#include "reports/report_json.h"
#include "reports/report_junit.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

const Effort& effort_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Effort& effort : efforts()) {
    if (effort.name == name) return effort;
    names.push_back(effort.name);
  }
  misused(unknown("effort", name, names));
}

std::vector<InputConfiguration> configurations_of(const AuditArguments& arguments,
                                                  const std::vector<std::string>& schemes) {
  std::vector<InputConfiguration> chosen;
  if (arguments.settings.empty()) {
    for (InputConfiguration& usual : usual_configurations()) {
      if (std::find(schemes.begin(), schemes.end(), usual.scheme) != schemes.end()) chosen.push_back(std::move(usual));
    }
    return chosen;
  }
  std::string refused;
  const Settings settings = settings_of(arguments.settings);
  for (const std::string& name : schemes) {
    if (scheme_of(name).codes != CodeKind::integer) continue;
    const Options options = with_settings(scheme_of(name).defaults, settings);
    const std::string problem = check_scheme_options(scheme_of(name), options);
    if (problem.empty())
      chosen.push_back({name, options});
    else
      refused = problem;
  }
  if (chosen.empty()) misused(fmt::format("--set: {}", refused));
  return chosen;
}

std::vector<TensorFile> open_inputs(const std::vector<std::string>& paths) {
  std::vector<TensorFile> files;
  for (const std::string& path : paths) {
    auto opened = open_float_tensors(path);
    if (const FileError* error = std::get_if<FileError>(&opened)) throw Failure{Exit::input, error->message};
    files.push_back(std::get<TensorFile>(std::move(opened)));
  }
  return files;
}

// Quoted for a shell only where it has to be.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./=:@+,") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_of(const AuditArguments& a) {
  std::string command = "assay audit";
  const auto add = [&](std::string_view flag, const std::string& value) {
    command += fmt::format(" {} {}", flag, quoted(value));
  };
  for (const std::string& target : a.targets) add("--target", target);
  for (const std::string& scheme : a.schemes) add("--scheme", scheme);
  for (const std::string& input : a.inputs) add("--input", input);
  for (const std::string& setting : a.settings) add("--set", setting);
  add("--effort", a.effort);
  add("--seed", std::to_string(a.seed));
  add("--out", a.out);
  return command;
}

AuditPlan plan_of(const AuditArguments& a) {
  AuditPlan plan;
  plan.targets = a.targets.empty() ? std::vector<std::string>{"quantizer"} : a.targets;
  for (const std::string& name : plan.targets) rows_of(name);  // unknown names end the audit before it starts
  for (const std::string& name : a.schemes) {
    if (std::find(plan.schemes.begin(), plan.schemes.end(), scheme_of(name).name) == plan.schemes.end())
      plan.schemes.push_back(name);
  }
  if (plan.schemes.empty()) {
    for (const SchemeInfo& scheme : schemes()) plan.schemes.emplace_back(scheme.name);
  }
  plan.effort = effort_of(a.effort);
  plan.seed = a.seed;
  plan.corpus = a.corpus;
  plan.configurations = configurations_of(a, plan.schemes);
  plan.inputs = open_inputs(a.inputs);
  plan.command = command_of(a);
  return plan;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) misused(fmt::format("--out {}: the folder cannot be made: {}", folder.string(), error.message()));
}

// Case files of the report that lay in the folder before: they would look like findings of this one.
void remove_old_cases(const std::filesystem::path& out) {
  std::ifstream in(out / "report.json", std::ios::binary);
  if (!in) return;
  const Json old = Json::parse(in, nullptr, false);
  if (!old.is_object() || !old.contains("findings") || !old["findings"].is_array()) return;
  for (const Json& finding : old["findings"]) {
    if (!finding.is_object() || !finding.contains("case_file") || !finding["case_file"].is_string()) continue;
    const std::filesystem::path file = finding["case_file"].get<std::string>();
    std::error_code ignored;
    if (file.parent_path() == "cases") std::filesystem::remove(out / file, ignored);
  }
}

void write_reports(const std::filesystem::path& out, const Evidence& evidence, const Json& report) {
  remove_old_cases(out);
  if (!evidence.findings.empty()) make_folder(out / "cases");
  for (const Finding& finding : evidence.findings)
    write_file(out / finding.case_file, case_json_pretty(case_file_of(finding)));
  write_file(out / "report.html", report_html(report));
  write_file(out / "junit.xml", report_junit(report));
  write_file(out / "report.json", fmt::format("{}\n", report.dump(2)));  // last: it says that the rest is there
}

// ------------------------------------------------------------------------------------------- the summary

std::string upper(std::string text) {
  for (char& c : text) c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void print_properties(const Evidence& evidence, const Json& report) {
  std::vector<std::string_view> rows;
  for (const PropertyEvidence& row : evidence.properties) {
    if (rows.empty() || rows.back() != row.target) rows.push_back(row.target);
  }
  std::uint64_t judged = 0, failed = 0;
  std::size_t hold = 0;
  std::vector<std::string> silent;
  for (const Json& requirement : report.at("requirements")) {
    judged += requirement.at("cases").get<std::uint64_t>();
    failed += requirement.at("failed").get<std::uint64_t>();
    hold += requirement.at("verdict") == "pass";
    if (requirement.at("verdict") == "not_judged") silent.push_back(requirement.at("id").get<std::string>());
  }
  fmt::print("  properties  {} of {} hold on {}: {}, {} failed\n", hold, report.at("requirements").size(),
             fmt::join(rows, ", "), counted(judged, "judged case"), failed);
  if (!silent.empty())
    fmt::print("              not judged, since the target does not offer it: {}\n", fmt::join(silent, ", "));
}

void print_faults(const Evidence& evidence) {
  std::vector<std::string> survivors;
  for (const FaultEvidence& fault : evidence.faults) {
    if (fault.killed_by.empty()) survivors.push_back(fault.id);
  }
  fmt::print("  faults      {} of {} planted faults killed{}\n", evidence.faults.size() - survivors.size(),
             evidence.faults.size(), survivors.empty() ? "" : fmt::format("; alive: {}", fmt::join(survivors, ", ")));
}

void print_inputs(const Evidence& evidence) {
  if (evidence.inputs.empty()) return;
  std::set<std::pair<std::string_view, std::string_view>> tensors;
  const InputEvidence* worst = &evidence.inputs.front();
  std::uint64_t illegal = 0, elements = 0, saturated = 0;
  for (const InputEvidence& input : evidence.inputs) {
    tensors.emplace(input.file, input.tensor);
    illegal += input.illegal_scales + input.illegal_zero_points + input.illegal_codes + input.illegal_values +
               input.illegal_counts;
    elements += input.elements;
    saturated += input.counts.saturated;
    if (input.worst_error_steps > worst->worst_error_steps) worst = &input;
  }
  fmt::print("  weights     {} in {} ({}): {} illegal, {} saturated\n", counted(tensors.size(), "tensor"),
             counted(evidence.inputs.size(), "run"), counted(elements, "element"), illegal, saturated);
  fmt::print("              worst error {:.9g} of a step, {} element {}, {}\n", worst->worst_error_steps, worst->tensor,
             worst->worst_element, worst->scheme);
}

void print_findings(const Evidence& evidence, const std::filesystem::path& out) {
  for (const Finding& finding : evidence.findings) {
    fmt::print("\n{} {}\n  legal  {}\n  got    {}\n  replay assay replay {}\n",
               finding.known ? "known finding" : "FINDING", signature(finding), finding.verdict.legal,
               finding.verdict.got, quoted((out / finding.case_file).string()));
  }
}

void print_summary(const Evidence& evidence, const Json& report, const std::filesystem::path& out) {
  fmt::print("{}  {} {}, effort {}, seed {}\n", upper(verdict_of(report)), evidence.target, evidence.target_version,
             evidence.effort, evidence.seed);
  for (const Json& reason : report.at("reasons")) fmt::print("  because     {}\n", reason.get<std::string>());
  print_properties(evidence, report);
  print_faults(evidence);
  print_inputs(evidence);
  fmt::print("  oracle      three definitions agreed on {}\n", counted(evidence.oracle_cross_checks, "case"));
  fmt::print("  not covered {}; the report lists them first\n", counted(evidence.not_covered.size(), "gap"));
  print_findings(evidence, out);
  fmt::print("\nreport: {}\n", (out / "report.html").string());
}

Exit exit_of(const Json& report) {
  const std::string verdict = verdict_of(report);
  if (verdict == "fail") return Exit::findings;
  return verdict == "incomplete" ? Exit::incomplete : Exit::holds;
}

}  // namespace

Exit audit(const AuditArguments& arguments) {
  const AuditPlan plan = plan_of(arguments);
  const std::filesystem::path out = arguments.out;
  make_folder(out);
  Progress progress;
  const Evidence evidence = run_audit(plan, progress);
  const Json report = report_json(evidence);
  write_reports(out, evidence, report);
  if (arguments.json)
    fmt::print("{}\n", report.dump(2));
  else
    print_summary(evidence, report, out);
  return exit_of(report);
}

}  // namespace assay::cli
