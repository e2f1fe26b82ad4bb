#include "reports/report_html.h"

#include "reports/html_inputs.h"
#include "reports/html_parts.h"
#include "reports/html_style.h"

namespace assay {
namespace {

using namespace page;

std::uint64_t total(const Json& list, const char* key) {
  std::uint64_t sum = 0;
  for (const Json& item : list) sum += count(item.at(key));
  return sum;
}

std::size_t with(const Json& list, const char* key, const Json& value) {
  return static_cast<std::size_t>(
      std::count_if(list.begin(), list.end(), [&](const Json& item) { return item.at(key) == value; }));
}

Html listed(const Json& strings) {
  return html("<ul class=\"plain\">{}</ul>\n", join(strings, "", [](const Json& s) { return html("<li>{}</li>", s); }));
}

Html pair(std::string_view name, const Html& value) { return html("<dt>{}</dt><dd>{}</dd>\n", name, value); }
Html codes(const Json& strings, std::string_view none) {
  return strings.empty() ? html("{}", none)
                         : join(strings, ", ", [](const Json& s) { return html("<code>{}</code>", s); });
}
Html or_dash(const Json& text) { return html("{}", str(text).empty() ? "–" : str(text)); }

/// "quantizer@avx2" may break after the name, so that a column of targets stays narrow.
Html target_name(const std::string& name) {
  const std::size_t at = name.find('@');
  return at == name.npos ? html("{}", name) : html("{}<wbr>{}", name.substr(0, at), name.substr(at));
}

// Every target of the requirement rows, in the order of first appearance.
std::vector<std::string> targets_of(const Json& report) {
  std::vector<std::string> names;
  for (const Json& r : report.at("requirements")) {
    for (const Json& row : r.at("targets")) {
      const std::string name = str(row.at("target"));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// ---------------------------------------------------------------------------------------------------- verdict

struct Look {
  std::string_view colour, sign, word;
};
Look look_of(const std::string& verdict) {
  if (verdict == "pass") return {"ok", "✓", "Pass"};
  if (verdict == "pass_with_waivers") return {"warn", "!", "Pass with waivers"};
  if (verdict == "fail") return {"bad", "✗", "Fail"};
  return {"warn", "○", "Incomplete"};
}

std::string sentence(const Json& report) {
  const std::string verdict = str(report.at("verdict"));
  if (verdict == "fail") return "This build must not be signed off:";
  if (verdict == "incomplete")
    return "Nothing failed, but the audit is not complete, so it does not support a release:";
  const auto& requirements = report.at("requirements");
  std::string text =
      fmt::format("Every requirement was judged: {} hold in {} on {}", plural(requirements.size(), "claim"),
                  plural(total(requirements, "cases"), "case"), plural(targets_of(report).size(), "target"));
  if (verdict == "pass_with_waivers") text += ", apart from the accepted findings listed below";
  if (!report.at("faults").empty()) {
    text += fmt::format(", and {} were noticed", "all " + plural(report.at("faults").size(), "planted fault"));
  }
  return text + ".";
}

Html figure(std::string_view name, const std::string& value, const std::string& small) {
  return html("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", name, value, small);
}

Html figures(const Json& report) {
  const Json &requirements = report.at("requirements"), &findings = report.at("findings"),
             &faults = report.at("faults"), &inputs = report.at("inputs");
  const std::size_t passed = with(requirements, "verdict", "pass");
  const std::size_t not_judged = with(requirements, "verdict", "not_judged");
  const std::size_t known = with(findings, "known", true);
  const std::size_t survived = with(faults, "status", "survived");
  Html out = figure("Requirements passed", fmt::format("{} of {}", passed, requirements.size()),
                    fmt::format("{} not judged", not_judged));
  out +=
      figure("Cases judged", grouped(total(requirements, "cases")), grouped(total(requirements, "failed")) + " failed");
  out += figure("New findings", grouped(findings.size() - known), fmt::format("{} known and accepted", known));
  out += figure("Planted faults caught",
                faults.empty() ? "–" : fmt::format("{} of {}", faults.size() - survived, faults.size()),
                faults.empty() ? "none was planted" : fmt::format("{} survived", survived));
  out += figure(
      "Input tensor runs", inputs.empty() ? "–" : grouped(inputs.size()),
      inputs.empty() ? "no input given" : fmt::format("{} with illegal results", with(inputs, "verdict", "fail")));
  return html("<dl class=\"figures\">\n{}</dl>\n", out);
}

Html verdict_box(const Json& report) {
  const Look look = look_of(str(report.at("verdict")));
  const Html reasons = report.at("reasons").empty() ? Html{} : listed(report.at("reasons"));
  return html(
      "<div class=\"verdict {}\" id=\"verdict\">\n<h2><span aria-hidden=\"true\">{}</span> "
      "{}</h2>\n<p>{}</p>\n{}{}</div>\n",
      look.colour, look.sign, look.word, sentence(report), reasons, figures(report));
}

// ---------------------------------------------------------------------------------------------------- identity

Json isas_not_run(const Json& environment) {
  Json missing = Json::array();
  const Json& run = environment.at("isas_run");
  for (const Json& isa : environment.at("isas_compiled")) {
    if (std::find(run.begin(), run.end(), isa) == run.end()) missing.push_back(isa);
  }
  return missing;
}

// What the tables below leave blank is said here in words, beside what the auditor declared.
Json blanks(const Json& report) {
  Json list = Json::array();
  const Json missing = isas_not_run(report.at("environment"));
  if (!missing.empty()) {
    std::string names;
    for (const Json& isa : missing) names += (names.empty() ? "" : ", ") + str(isa);
    list.push_back("Compiled, but not run on this machine: " + names + ".");
  }
  for (const Json& r : report.at("requirements")) {
    if (r.at("cases") == 0) list.push_back(fmt::format("Requirement {}: no case was judged.", str(r.at("id"))));
  }
  if (report.at("faults").empty())
    list.push_back("Detection power: no fault was planted, so nothing shows that the alarm rings.");
  if (report.at("inputs").empty()) list.push_back("Real tensors: no input file was given.");
  if (report.at("certificates").empty())
    list.push_back(
        "Exhaustive proof: no certificate is part of this report; all requirements rest on the cases counted below.");
  return list;
}

Html not_covered_section(const Json& report) {
  Html body;
  if (!report.at("incomplete").empty()) {
    body += html("<h3 class=\"warn\">Required, but did not run</h3>\n{}", listed(report.at("incomplete")));
    body += html("<h3>Outside this audit</h3>\n");
  }
  Json lines = report.at("not_covered");
  for (const Json& line : blanks(report)) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  body += lines.empty() ? html("<p>Nothing was declared to be left out.</p>\n") : listed(lines);
  return section("not-covered", "What was not covered", body);
}

Html identity_section(const Json& report) {
  const Json &target = report.at("target"), &environment = report.at("environment");
  Html body;
  body += pair("Target", html("<code>{}</code> {}", target.at("name"), target.at("version")));
  body += pair("Schemes", codes(target.at("schemes"), "–"));
  body += pair("Assay", html("{}, commit <code>{}</code>", environment.at("assay_version"), environment.at("commit")));
  body += pair("Compiler", or_dash(environment.at("compiler")));
  body += pair("Flags", html("<code>{}</code>", environment.at("flags")));
  body += pair("CPU", or_dash(environment.at("cpu")));
  body += pair("Operating system", or_dash(environment.at("os")));
  body += pair("Instruction sets run", codes(environment.at("isas_run"), "none"));
  body += pair("Compiled, not run", codes(isas_not_run(environment), "none"));
  body += pair("Floating point at start", or_dash(environment.at("floating_point")));
  // Digits ungrouped: a seed is copied into a command.
  body += pair("Seed", html("<code>{}</code>", report.at("seed").dump()));
  body += pair("Effort", or_dash(report.at("effort")));
  body += pair("Oracle cross checks", html("{} answers, no difference", report.at("oracle_cross_checks")));
  body += pair("Report format", html("<code>{}</code>", report.at("schema")));
  return section("identity", "What was audited", html("<dl class=\"pairs\">\n{}</dl>\n", body));
}

// ---------------------------------------------------------------------------------------------------- requirements

Html failed_cell(const Json& r) {
  if (r.at("cases") == 0) return html("<td class=\"num none\">–</td>");
  if (r.at("failed") == 0) return html("<td class=\"num\">0</td>");
  return html("<td class=\"num bad\"><b>{}</b></td>", r.at("failed"));
}

Html requirement_row(const Json& r) {
  const bool judged = r.at("cases") != 0;
  const std::string id = str(r.at("id"));
  Html row = html("<th scope=\"row\"><code>{}</code></th><td class=\"wide\">{}", id, r.at("statement"));
  if (!str(r.at("source")).empty()) row += html("<small>From: {}</small>", r.at("source"));
  row += html("</td><td class=\"middle\">{}</td>", judged ? str(r.at("method")) : "–");
  row += judged ? html("<td class=\"num\">{}</td>", r.at("cases")) : html("<td class=\"num none\">○ none</td>");
  row += failed_cell(r);
  row += html("<td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td>", r.at("unsupported"),
              r.at("not_applicable"), badge(str(r.at("verdict"))));
  return html("<tr id=\"{}\">{}</tr>\n", anchor("requirement", id), row);
}

Html requirements_section(const Json& report) {
  const Html head = html(
      "<tr><th>Requirement</th><th>Claim</th><th>Method</th><th class=\"num\">Cases judged</th><th "
      "class=\"num\">Failed</th>"
      "<th class=\"num\">Unsupported</th><th class=\"num\">Not applicable</th><th>Verdict</th></tr>");
  Html body = html(
      "<p class=\"soft\">Cases are judged on exact bits; there is no tolerance. Unsupported and not applicable cases "
      "were "
      "drawn but not judged.</p>\n");
  body +=
      table("Requirements", head, html("<tbody>\n{}</tbody>", join(report.at("requirements"), "", requirement_row)));
  return section("requirements", "Requirements", body);
}

// Cases that were drawn without being judged explain a zero; without them the pair simply was not run.
Html not_judged_cell(const Json& row) {
  const std::uint64_t unsupported = count(row.at("unsupported")), not_applicable = count(row.at("not_applicable"));
  if (unsupported + not_applicable == 0) return html("<td class=\"num none\">○ none</td>");
  return html("<td class=\"num none\">○ none<small>{}</small></td>",
              unsupported > 0 ? grouped(unsupported) + " unsupported" : grouped(not_applicable) + " not applicable");
}

Html matrix_cell(const Json& row) {
  const std::string verdict = str(row.at("verdict"));
  if (verdict == "not_judged") return not_judged_cell(row);
  const std::string cases = safe(row.at("cases"));
  if (verdict == "pass") return html("<td class=\"num\"><span class=\"ok\">✓</span> {}</td>", cases);
  return html("<td class=\"num {}\">{} {}<small>{} failed</small></td>", verdict == "fail" ? "bad" : "warn",
              verdict == "fail" ? "✗" : "!", cases, row.at("failed"));
}

Html matrix_row(const Json& requirement, const std::vector<std::string>& targets) {
  const std::string id = str(requirement.at("id"));
  Html row = html("<th scope=\"row\"><a href=\"#{}\"><code>{}</code></a></th>", anchor("requirement", id), id);
  for (const std::string& target : targets) {
    const Json& rows = requirement.at("targets");
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Json& r) { return r.at("target") == target; });
    row += found == rows.end() ? html("<td class=\"num none\">–<small>not run</small></td>") : matrix_cell(*found);
  }
  return html("<tr>{}</tr>\n", row);
}

Html matrix_section(const Json& report) {
  const std::vector<std::string> targets = targets_of(report);
  if (targets.empty()) return section("targets", "Cases by target", html("<p>No target was run.</p>\n"));
  Html head = html("<th>Requirement</th>");
  for (const std::string& target : targets) head += html("<th class=\"num\">{}</th>", target_name(target));
  Html rows;
  for (const Json& r : report.at("requirements")) rows += matrix_row(r, targets);
  Html body = html("<p class=\"soft\">Judged cases of each requirement on each instruction set or variant.</p>\n");
  body += table("Cases by target", html("<tr>{}</tr>", head), html("<tbody>\n{}</tbody>", rows));
  return section("targets", "Cases by target", body);
}

Html kinds_section(const Json& report) {
  const Json& kinds = report.at("case_kinds");
  if (kinds.empty()) return {};
  std::uint64_t sum = 0, most = 0;
  for (const auto& [kind, cases] : kinds.items()) {
    sum += count(cases);
    most = std::max(most, count(cases));
  }
  Html rows;
  for (const auto& [kind, cases] : kinds.items()) {
    const double share = sum == 0 ? 0 : static_cast<double>(count(cases)) / static_cast<double>(sum);
    const double of_most = most == 0 ? 0 : static_cast<double>(count(cases)) / static_cast<double>(most);
    rows += html("<tr><th scope=\"row\">{}</th><td class=\"num\">{}</td><td class=\"num\">{} %</td><td>{}</td></tr>\n",
                 kind, cases, fmt::format("{:.1f}", 100 * share), meter(of_most, 1));
  }
  const Html head =
      html("<tr><th>Kind of case</th><th class=\"num\">Drawn</th><th class=\"num\">Share</th><th></th></tr>");
  return section(
      "case-kinds", "What the cases were aimed at",
      html("<div class=\"narrow\">{}</div>", table("Kinds of cases", head, html("<tbody>\n{}</tbody>", rows))));
}

// ---------------------------------------------------------------------------------------------------- combinations

// What stands in one cell of the table: the fewest cases that any target was judged on, or why there are none.
Html combination_cell(const Json& c) {
  if (!c.at("empty_because").is_null())
    return html("<td class=\"num none\"><abbr title=\"{}\">○</abbr></td>", c.at("empty_because"));
  std::uint64_t least = UINT64_MAX;
  for (const auto& [target, cases] : c.at("judged").items()) least = std::min(least, count(cases));
  return html("<td class=\"num\">{}</td>", grouped(least));
}

Html combinations_of_scheme(const Json& all, const std::string& scheme) {
  std::vector<std::pair<std::string, std::string>> columns;
  std::vector<std::string> codes;
  std::map<std::string, Html> cells;
  const auto once = [](auto& list, const auto& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  };
  for (const Json& c : all) {
    if (c.at("scheme") != scheme) continue;
    once(columns, std::pair{str(c.at("format")), str(c.at("granularity"))});
    once(codes, str(c.at("codes")));
    cells[str(c.at("codes")) + str(c.at("format")) + str(c.at("granularity"))] = combination_cell(c);
  }
  Html head = html("<th>Codes</th>");
  for (const auto& [format, granularity] : columns)
    head += html("<th class=\"num\">{}<small>{}</small></th>", format, granularity);
  Html rows;
  for (const std::string& code : codes) {
    Html row = html("<th scope=\"row\"><code>{}</code></th>", code);
    for (const auto& [format, granularity] : columns) {
      const auto found = cells.find(code + format + granularity);
      row += found == cells.end() ? html("<td class=\"num none\">–</td>") : found->second;
    }
    rows += html("<tr>{}</tr>\n", row);
  }
  return html("<h3><code>{}</code></h3>\n{}", scheme,
              table(fmt::format("Cases of {}", scheme), html("<tr>{}</tr>", head), html("<tbody>\n{}</tbody>", rows)));
}

Html combinations_section(const Json& report) {
  const Json& all = report.at("combinations");
  if (all.empty()) return section("combinations", "Case space", html("<p>No case was drawn.</p>\n"));
  std::vector<std::string> schemes;
  std::map<std::string, std::uint64_t> empty;
  for (const Json& c : all) {
    if (std::find(schemes.begin(), schemes.end(), str(c.at("scheme"))) == schemes.end())
      schemes.push_back(str(c.at("scheme")));
    if (!c.at("empty_because").is_null()) ++empty[str(c.at("empty_because"))];
  }
  Html body = html(
      "<p class=\"soft\">Cases judged in every combination of codes, input format and granularity, on the target or "
      "instruction set that saw the fewest. A column “codes” is decoding alone.</p>\n");
  for (const auto& [reason, cells] : empty)
    body += html("<p class=\"warn\"><b>○ {} empty:</b> {}.</p>\n", plural(cells, "combination"), reason);
  for (const std::string& scheme : schemes) body += combinations_of_scheme(all, scheme);
  return section("combinations", "Case space", body);
}

// ---------------------------------------------------------------------------------------------------- findings

Html finding_body(const Json& f) {
  const Json& example = f.at("example");
  Json options = Json::array();
  for (const auto& [key, value] : example.at("options").items()) options.push_back(option_text(key, value));
  Html body;
  body += pair("Legal", html("<span class=\"mono\">{}</span>", f.at("legal")));
  body += pair("Got", html("<span class=\"mono\">{}</span>", f.at("got")));
  body += pair("What happened", html("{}", f.at("explanation")));
  body += pair("Minimised case", html("{} of {}, shape {}, scheme <code>{}</code><br><small>{}</small>",
                                      example.at("op"), example.at("format"), shape_text(example.at("shape")),
                                      f.at("scheme"), join(options, " ", [](const Json& o) { return html("{}", o); })));
  if (!example.at("x").empty()) {
    const std::uint64_t more = count(example.at("x_count")) - example.at("x").size();
    body += pair("Input", html("<span class=\"mono\">{}</span>{}",
                               join(example.at("x"), "<br>", [](const Json& x) { return html("{}", x); }),
                               more > 0 ? html("<br><small>and {} more in the case file</small>", more) : Html{}));
  }
  if (!str(example.at("why")).empty()) body += pair("Shows", html("{}", example.at("why")));
  if (f.at("known") == true) body += pair("Accepted because", or_dash(f.at("known_reason")));
  const bool written = !str(f.at("case_file")).empty();
  body += pair("Case file", written ? html("<code>{}</code>", f.at("case_file")) : html("not written"));
  if (written) body += pair("Reproduce", html("<pre class=\"command\">assay replay {}</pre>", f.at("case_file")));
  return html("<dl class=\"pairs\">\n{}</dl>\n", body);
}

Html finding_group(const std::vector<const Json*>& group) {
  const Json& first = *group.front();
  const std::string signature = str(first.at("signature"));
  const bool known = std::all_of(group.begin(), group.end(), [](const Json* f) { return f->at("known") == true; });
  Html body = html("<h3><code>{}</code> {}</h3>\n<p>{}{}</p>\n", signature,
                   known ? badge("pass_with_waivers") : badge("fail"), first.at("statement"),
                   group.size() > 1 ? html(" <span class=\"soft\">Seen {} times.</span>", group.size()) : Html{});
  for (const Json* f : group) body += finding_body(*f);
  return html("<article class=\"finding\" id=\"{}\">\n{}</article>\n", anchor("finding", signature), body);
}

Html findings_section(const Json& report) {
  // New ones first; within each, the order of the evidence.
  std::vector<std::vector<const Json*>> groups;
  for (const bool known : {false, true}) {
    for (const Json& f : report.at("findings")) {
      if (f.at("known") != known) continue;
      const auto same = [&](const auto& group) {
        return group.front()->at("signature") == f.at("signature") && group.front()->at("known") == known;
      };
      const auto found = std::find_if(groups.begin(), groups.end(), same);
      if (found == groups.end()) {
        groups.push_back({&f});
      } else {
        found->push_back(&f);
      }
    }
  }
  const Html body = groups.empty() ? html("<p>None.</p>\n") : join(groups, "", finding_group);
  return section("findings", "Findings", body);
}

// ---------------------------------------------------------------------------------------------------- faults

Html seen_as(const Json& first) {
  if (first.is_null()) return html("–");
  return html("{}<small class=\"mono\">legal {}</small><small class=\"mono\">got {}</small>", first.at("kind"),
              first.at("legal"), first.at("got"));
}

// Many properties see a gross fault: the first says what it is, the rest folds away.
Html killers(const Json& names) {
  constexpr std::size_t kShown = 2;
  if (names.size() <= kShown) return codes(names, "none");
  return html("<details><summary><code>{}</code> and {} more</summary>{}</details>", names.front(), names.size() - 1,
              codes(names, "none"));
}

Html fault_row(const Json& f) {
  const std::string id = str(f.at("id")), status = str(f.at("status"));
  const bool as_expected = status == "killed";
  return html(
      "<tr id=\"{}\"><td>{}</td><th scope=\"row\"><code>{}</code></th><td "
      "class=\"middle\">{}</td><td><code>{}</code></td>"
      "<td class=\"middle\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td "
      "class=\"middle\">{}</td></tr>\n",
      anchor("fault", id), badge(status), id, f.at("models"), f.at("expected"), killers(f.at("killed_by")),
      as_expected ? safe(f.at("cases_to_kill")) : "–", as_expected ? safe(f.at("seconds_to_kill")) : "–",
      seen_as(f.at("first")));
}

Html faults_section(const Json& report) {
  const Json& faults = report.at("faults");
  if (faults.empty()) return section("faults", "Detection power", html("<p>No fault was planted in this audit.</p>\n"));
  Html rows;
  for (const std::string_view status : {"survived", "killed_by_others", "killed"}) {
    for (const Json& f : faults) {
      if (f.at("status") == status) rows += fault_row(f);
    }
  }
  const Html head = html(
      "<tr><th>Result</th><th>Planted fault</th><th>Models</th><th>Must be killed by</th><th>Killed by</th>"
      "<th class=\"num\">Cases to kill</th><th class=\"num\">Seconds</th><th>Seen as</th></tr>");
  Html body = html(
      "<p>Each fault was planted on purpose, after a public bug. A pass is worth as much as the faults that it would "
      "have "
      "stopped. Cases and seconds count until the property named for the fault noticed it.</p>\n");
  body += table("Planted faults", head, html("<tbody>\n{}</tbody>", rows));
  return section("faults", "Detection power", body);
}

// ---------------------------------------------------------------------------------------------------- the rest

Html oracle_section(const Json& report) {
  Html body = html(
      "<p>What is legal is computed three times: from the scheme’s formula in exact rational arithmetic; by searching "
      "codes and "
      "scales for the nearest reconstruction, without dividing; and in 128-bit integers. A finding is shown only after "
      "the "
      "rational definition confirmed it.</p>\n");
  body += count(report.at("oracle_cross_checks")) > 0
              ? html("<p>In this audit the three were compared in {} answers and never differed.</p>\n",
                     report.at("oracle_cross_checks"))
              : html("<p class=\"warn\"><b>○ No answer was cross-checked in this audit.</b></p>\n");
  return section("oracle", "How the oracle is checked", body);
}

Html reproduce_section(const Json& report) {
  const Html body = html(
      "<pre class=\"command\">{}</pre>\n<p class=\"soft after\">At commit <code>{}</code> with seed <code>{}</code>. "
      "The same "
      "evidence gives this page byte for byte; timings are measured anew. All data of this page is in "
      "report.json.</p>\n",
      report.at("reproduce"), report.at("environment").at("commit"), report.at("seed").dump());
  return section("reproduce", "How to reproduce", body);
}

Html approvals_section() {
  Html rows;
  for (int i = 0; i < 3; ++i) rows += html("<tr><td></td><td></td><td></td><td></td></tr>\n");
  return section("approvals", "Approvals",
                 html("<div class=\"sign\">{}</div>\n",
                      table("Approvals", html("<tr><th>Name</th><th>Role</th><th>Date</th><th>Signature</th></tr>"),
                            html("<tbody>\n{}</tbody>", rows))));
}

Html navigation() {
  static constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
      {"not-covered", "Not covered"}, {"identity", "Identity"},       {"requirements", "Requirements"},
      {"targets", "Targets"},         {"combinations", "Case space"}, {"findings", "Findings"},
      {"faults", "Detection power"},  {"inputs", "Inputs"},           {"oracle", "Oracle"},
      {"reproduce", "Reproduce"},     {"approvals", "Approvals"}};
  return html("<nav aria-label=\"Sections\">{}</nav>\n", join(kPlaces, "\n", [](const auto& place) {
                return html("<a href=\"#{}\">{}</a>", place.first, place.second);
              }));
}

}  // namespace

std::string report_html(const nlohmann::ordered_json& report) {
  const Json& target = report.at("target");
  Html body =
      html("<header>\n<p>Assay · numerical correctness of a quantizer</p>\n<h1>{}</h1>\n<p>Version {}</p>\n</header>\n",
           target.at("name"), or_dash(target.at("version")));
  body += verdict_box(report);
  body += navigation();
  body += not_covered_section(report);
  body += identity_section(report);
  body += requirements_section(report);
  body += matrix_section(report);
  body += combinations_section(report);
  body += kinds_section(report);
  body += findings_section(report);
  body += faults_section(report);
  body += inputs_section(report);
  body += oracle_section(report);
  body += reproduce_section(report);
  body += approvals_section();
  return html(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}: {}</title>\n<style>{}</style>\n</head>\n"
             "<body>\n<main>\n{}</main>\n</body>\n</html>\n",
             target.at("name"), look_of(str(report.at("verdict"))).word, Html{std::string(kStyle)}, body)
      .markup;
}

}  // namespace assay
