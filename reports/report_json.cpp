#include "reports/report_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBoundSteps = 0.5;        // a correct code is never further than half a scale from its input
constexpr std::size_t kShownElements = 8;  // a minimised case rarely has more; the case file has them all

// ---------------------------------------------------------------------------------------------------- values

// File and tensor names come from strangers' files; a byte that is not UTF-8 would make dump() throw.
Json text(std::string_view raw) {
  return Json::parse(Json(std::string(raw)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json texts(const std::vector<std::string>& raw) {
  Json list = Json::array();
  for (const std::string& s : raw) list.push_back(text(s));
  return list;
}

// JSON has no NaN and no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// The option table prints text; numbers and booleans become JSON ones, all else stays a string.
Json options_json(const Options& options) {
  Json object = Json::object();
  for (const auto& [key, value] : option_list(options)) {
    Json parsed = Json::parse(value, nullptr, false);
    object[key] = parsed.is_discarded() ? text(value) : parsed;
  }
  return object;
}

std::string counted(std::uint64_t n, std::string_view singular) {
  return fmt::format("{} {}{}", n, singular, n == 1 ? "" : "s");
}

std::string without_full_stop(std::string_view sentence) {
  while (!sentence.empty() && sentence.back() == '.') sentence.remove_suffix(1);
  return std::string(sentence);
}

std::string statement_of(std::string_view property) {
  const Property* found = property_named(property);
  return found ? std::string(found->statement) : std::string();
}

// ---------------------------------------------------------------------------------------------------- requirements

Json tally_json(const Tally& t) {
  return {{"pass", t.pass}, {"fail", t.fail}, {"unsupported", t.unsupported}, {"not_applicable", t.not_applicable}};
}

Tally sum(const Tally& a, const Tally& b) {
  return {a.pass + b.pass, a.fail + b.fail, a.unsupported + b.unsupported, a.not_applicable + b.not_applicable};
}

struct FindingCount {
  std::uint64_t fresh = 0, known = 0;
};

FindingCount count_findings(const Evidence& evidence, const std::string& target, const std::string& property) {
  FindingCount count;
  for (const Finding& f : evidence.findings) {
    if (f.target == target && f.property == property) ++(f.known ? count.known : count.fresh);
  }
  return count;
}

// A failed case without any finding counts against the target: a lost finding must not turn into a pass.
std::string_view row_verdict(const Tally& total, FindingCount findings) {
  if (findings.fresh > 0) return "fail";
  if (findings.known > 0) return "pass_with_waivers";
  if (total.fail > 0) return "fail";
  return total.judged() > 0 ? "pass" : "not_judged";
}

Json target_row(const Evidence& evidence, const PropertyEvidence& row) {
  const Tally total = sum(row.drawn, row.corpus);
  const FindingCount findings = count_findings(evidence, row.target, row.property);
  return {{"target", text(row.target)},       {"verdict", row_verdict(total, findings)},
          {"cases", total.judged()},          {"failed", total.fail},
          {"unsupported", total.unsupported}, {"not_applicable", total.not_applicable},
          {"findings", findings.fresh},       {"known_findings", findings.known},
          {"drawn", tally_json(row.drawn)},   {"corpus", tally_json(row.corpus)}};
}

// Rows in the order of the evidence; a finding without a row gets one, so that no table can lose it.
std::vector<PropertyEvidence> rows_of(const Evidence& evidence, std::string_view property) {
  std::vector<PropertyEvidence> rows;
  for (const PropertyEvidence& row : evidence.properties) {
    if (row.property == property) rows.push_back(row);
  }
  for (const Finding& f : evidence.findings) {
    const bool present = std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.target == f.target; });
    if (f.property == property && !present) rows.push_back({f.target, f.property, {}, {}});
  }
  return rows;
}

std::string_view requirement_verdict(const Json& targets, std::uint64_t judged) {
  const auto any = [&](std::string_view verdict) {
    return std::any_of(targets.begin(), targets.end(), [&](const Json& row) { return row["verdict"] == verdict; });
  };
  if (any("fail")) return "fail";
  if (judged == 0) return "not_judged";
  return any("pass_with_waivers") ? "pass_with_waivers" : "pass";
}

std::string_view method_of(const Tally& drawn, const Tally& corpus) {
  if (drawn.judged() > 0 && corpus.judged() > 0) return "generated cases, corpus replay";
  if (drawn.judged() > 0) return "generated cases";
  if (corpus.judged() > 0) return "corpus replay";
  return "none";
}

Json requirement_json(const Evidence& evidence, std::string_view id, const Property* property) {
  Tally drawn, corpus;
  Json targets = Json::array();
  for (const PropertyEvidence& row : rows_of(evidence, id)) {
    drawn = sum(drawn, row.drawn);
    corpus = sum(corpus, row.corpus);
    targets.push_back(target_row(evidence, row));
  }
  const Tally total = sum(drawn, corpus);
  return {{"id", text(id)},
          {"statement", text(property ? property->statement : "")},
          {"source", text(property ? property->requirement : "")},
          {"verdict", requirement_verdict(targets, total.judged())},
          {"cases", total.judged()},
          {"failed", total.fail},
          {"unsupported", total.unsupported},
          {"not_applicable", total.not_applicable},
          {"method", method_of(drawn, corpus)},
          {"targets", targets}};
}

// The whole catalogue, run or not, then whatever the evidence names beyond it.
Json requirements_json(const Evidence& evidence) {
  Json list = Json::array();
  for (const Property& property : catalogue()) list.push_back(requirement_json(evidence, property.id, &property));
  std::vector<std::string> extra;
  const auto note = [&](const std::string& id) {
    if (!property_named(id) && std::find(extra.begin(), extra.end(), id) == extra.end()) extra.push_back(id);
  };
  for (const PropertyEvidence& row : evidence.properties) note(row.property);
  for (const Finding& f : evidence.findings) note(f.property);
  for (const std::string& id : extra) list.push_back(requirement_json(evidence, id, nullptr));
  return list;
}

// ---------------------------------------------------------------------------------------------------- findings

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// "index", because only the property knows whether it counts elements or blocks.
std::string place_of(const Finding& f) {
  return fmt::format("In the minimised case ({} of {} {}, {}), at index {}", to_string(f.example.op),
                     info(f.example.format).name, shape_text(f.example.shape), f.example.scheme, f.verdict.index);
}

std::string explanation(const Finding& f) {
  const std::string statement = without_full_stop(statement_of(f.property));
  const std::string claim = statement.empty() ? std::string() : fmt::format(": {}", statement);
  const std::string kind = f.verdict.kind.empty() ? std::string() : fmt::format(" ({})", f.verdict.kind);
  return fmt::format("{} breaks {}{}. {}, the scheme allows {}, and the target answered {}{}.", f.target, f.property,
                     claim, place_of(f), f.verdict.legal, f.verdict.got, kind);
}

Json example_json(const Case& c) {
  Json elements = Json::array();
  for (std::size_t i = 0; i < std::min(c.x.size(), kShownElements); ++i) elements.push_back(show(c.format, c.x[i]));
  return {{"op", to_string(c.op)},
          {"options", options_json(c.options)},
          {"format", info(c.format).name},
          {"shape", c.shape},
          {"x", elements},
          {"x_count", c.x.size()},
          {"source", text(c.source)},
          {"why", text(c.why)}};
}

Json finding_json(const Finding& f) {
  return {{"signature", text(signature(f))},      {"target", text(f.target)},
          {"property", text(f.property)},         {"statement", text(statement_of(f.property))},
          {"scheme", text(f.example.scheme)},     {"kind", text(f.verdict.kind)},
          {"case_file", text(f.case_file)},       {"legal", text(f.verdict.legal)},
          {"got", text(f.verdict.got)},           {"index", f.verdict.index},
          {"explanation", text(explanation(f))},  {"known", f.known},
          {"known_reason", text(f.known_reason)}, {"example", example_json(f.example)}};
}

Json fault_json(const FaultEvidence& f) {
  const bool survived = f.killed_by.empty();
  const bool as_expected = std::find(f.killed_by.begin(), f.killed_by.end(), f.expected) != f.killed_by.end();
  return {{"id", text(f.id)},
          {"models", text(f.models)},
          {"expected", text(f.expected)},
          {"status", survived      ? "survived"
                     : as_expected ? "killed"
                                   : "killed_by_others"},
          {"killed_by", texts(f.killed_by)},
          {"cases_to_kill", f.cases_to_kill},
          {"seconds_to_kill", number(f.seconds_to_kill)},
          {"first", as_expected ? finding_json(f.first) : Json(nullptr)}};
}

// ---------------------------------------------------------------------------------------------------- inputs

std::uint64_t illegal_results(const InputEvidence& i) {
  return i.illegal_scales + i.illegal_zero_points + i.illegal_codes + i.illegal_values + i.illegal_counts;
}

Json input_json(const InputEvidence& i) {
  const CodeRange range = code_range(i.options);
  return {{"file", text(i.file)},
          {"tensor", text(i.tensor)},
          {"target", text(i.target)},
          {"scheme", text(i.scheme)},
          {"options", options_json(i.options)},
          {"format", info(i.format).name},
          {"shape", i.shape},
          {"verdict", illegal_results(i) == 0 ? "pass" : "fail"},
          {"elements", i.elements},
          {"blocks", i.blocks},
          {"illegal_scales", i.illegal_scales},
          {"illegal_zero_points", i.illegal_zero_points},
          {"illegal_codes", i.illegal_codes},
          {"illegal_values", i.illegal_values},
          {"illegal_counts", i.illegal_counts},
          {"nan", i.counts.nan},
          {"inf", i.counts.inf},
          {"saturated", i.counts.saturated},
          {"bound_steps", kBoundSteps},
          {"worst_error_steps", number(i.worst_error_steps)},
          {"worst_error", number(i.worst_error)},
          {"worst_element", i.worst_element},
          {"worst_block", i.worst_block},
          {"worst_block_rms_steps", number(i.worst_block_rms_steps)},
          {"slowest_block", i.slowest_block},
          {"slowest_block_nanoseconds", number(i.slowest_block_nanoseconds)},
          {"median_block_nanoseconds", number(i.median_block_nanoseconds)},
          {"nanoseconds_per_element", number(i.nanoseconds_per_element)},
          {"qmin", range.qmin},
          {"qmax", range.qmax},
          {"code_counts", i.code_counts}};
}

// ---------------------------------------------------------------------------------------------------- verdict

std::vector<std::string> failures(const Evidence& evidence, const Json& requirements) {
  std::vector<std::string> reasons;
  const auto fresh =
      std::count_if(evidence.findings.begin(), evidence.findings.end(), [](const Finding& f) { return !f.known; });
  if (fresh > 0) reasons.push_back(counted(static_cast<std::uint64_t>(fresh), "new finding"));
  for (const Json& r : requirements) {
    for (const Json& row : r["targets"]) {
      if (row["verdict"] != "fail" || row["findings"] != 0) continue;
      reasons.push_back(fmt::format("{} of {} on {} without a minimised finding",
                                    counted(row["failed"].get<std::uint64_t>(), "failed case"),
                                    r["id"].get<std::string>(), row["target"].get<std::string>()));
    }
  }
  for (const FaultEvidence& f : evidence.faults) {
    if (f.killed_by.empty()) reasons.push_back(fmt::format("planted fault {} survived every property", f.id));
  }
  std::uint64_t illegal = 0;
  for (const InputEvidence& i : evidence.inputs) illegal += illegal_results(i);
  if (illegal > 0) reasons.push_back(fmt::format("{} in input tensors", counted(illegal, "illegal result")));
  return reasons;
}

std::vector<std::string> gaps(const Evidence& evidence, const Json& requirements) {
  std::vector<std::string> reasons = evidence.incomplete;
  // What the target does not offer is an answer, and stands among the gaps; what nobody asked is not, nor is a target
  // that offers nothing.
  std::uint64_t judged = 0;
  for (const Json& r : requirements) {
    judged += r["cases"].get<std::uint64_t>();
    if (r["cases"] == 0 && r["unsupported"] == 0)
      reasons.push_back(fmt::format("no case judged {}", r["id"].get<std::string>()));
  }
  if (judged == 0) reasons.push_back("the target offers nothing that a requirement asks for");
  return reasons;
}

void decide(Json& report, const Evidence& evidence) {
  std::vector<std::string> reasons = failures(evidence, report["requirements"]);
  const std::vector<std::string> missing = gaps(evidence, report["requirements"]);
  const auto known =
      std::count_if(evidence.findings.begin(), evidence.findings.end(), [](const Finding& f) { return f.known; });
  report["verdict"] = !reasons.empty()   ? "fail"
                      : !missing.empty() ? "incomplete"
                      : known > 0        ? "pass_with_waivers"
                                         : "pass";
  reasons.insert(reasons.end(), missing.begin(), missing.end());
  // Under a worse verdict an accepted finding is no reason; the findings list has it all the same.
  if (report["verdict"] == "pass_with_waivers") {
    reasons.push_back(counted(static_cast<std::uint64_t>(known), "known finding") + " accepted");
  }
  report["reasons"] = texts(reasons);
}

// Why a corner of the case space is empty; nothing if it is not.
Json reason_of(const Combination& c) {
  for (const auto& [target, cases] : c.judged) {
    if (cases > 0) return nullptr;
  }
  return c.unsupported > 0 ? "the target does not offer it" : "not drawn with this effort";
}

Json combination_json(const Combination& c) {
  Json judged = Json::object();
  for (const auto& [target, cases] : c.judged) judged[text(target).get<std::string>()] = cases;
  return {{"scheme", text(c.scheme)},           {"codes", text(c.codes)}, {"format", text(c.format)},
          {"granularity", text(c.granularity)}, {"judged", judged},       {"empty_because", reason_of(c)}};
}

Json environment_json(const Environment& e) {
  return {{"assay_version", text(e.assay_version)},
          {"commit", text(e.commit)},
          {"compiler", text(e.compiler)},
          {"flags", text(e.flags)},
          {"cpu", text(e.cpu)},
          {"os", text(e.os)},
          {"isas_run", texts(e.isas_run)},
          {"isas_compiled", texts(e.isas_compiled)},
          {"floating_point", text(e.floating_point)}};
}

template <typename Part>
Json list_of(const std::vector<Part>& parts, Json (*one)(const Part&)) {
  Json list = Json::array();
  for (const Part& part : parts) list.push_back(one(part));
  return list;
}

}  // namespace

nlohmann::ordered_json report_json(const Evidence& evidence) {
  Json report;
  report["schema"] = "assay.report/1";
  report["verdict"] = "";  // decided last; the order of keys is the order in which people read them
  report["reasons"] = Json::array();
  report["target"] = {{"name", text(evidence.target)},
                      {"version", text(evidence.target_version)},
                      {"schemes", texts(evidence.schemes)}};
  report["environment"] = environment_json(evidence.environment);
  report["effort"] = text(evidence.effort);
  report["seed"] = evidence.seed;
  report["not_covered"] = texts(evidence.not_covered);
  report["incomplete"] = texts(evidence.incomplete);
  report["requirements"] = requirements_json(evidence);
  report["case_kinds"] = Json::object();
  for (const auto& [kind, count] : evidence.case_kinds) report["case_kinds"][text(kind).get<std::string>()] = count;
  report["combinations"] = list_of(evidence.combinations, combination_json);
  report["oracle_cross_checks"] = evidence.oracle_cross_checks;
  report["findings"] = list_of(evidence.findings, finding_json);
  report["certificates"] = Json::array();
  report["faults"] = list_of(evidence.faults, fault_json);
  report["inputs"] = list_of(evidence.inputs, input_json);
  report["reproduce"] = text(evidence.command);
  decide(report, evidence);
  return report;
}

std::string verdict_of(const nlohmann::ordered_json& report) { return report.at("verdict").get<std::string>(); }

}  // namespace assay
