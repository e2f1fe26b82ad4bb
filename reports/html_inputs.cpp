#include "reports/html_inputs.h"

namespace assay::page {
namespace {

/// One tensor under one configuration, with all targets whose results are the same.
struct Row {
  const Json* first;
  std::vector<const Json*> runs;
};

// Timings are not results: instruction sets differ in them and nowhere else.
constexpr std::string_view kNotResults[] = {"target", "slowest_block", "slowest_block_nanoseconds",
                                            "median_block_nanoseconds", "nanoseconds_per_element"};

bool same_result(const Json& a, const Json& b) {
  for (const auto& [key, value] : a.items()) {
    const bool result = std::find(std::begin(kNotResults), std::end(kNotResults), key) == std::end(kNotResults);
    if (result && b.at(key) != value) return false;
  }
  return true;
}

std::vector<Row> rows_of_tensor(const std::vector<const Json*>& runs) {
  std::vector<Row> rows;
  for (const Json* run : runs) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return same_result(*r.first, *run); });
    if (found == rows.end()) {
      rows.push_back({run, {run}});
    } else {
      found->runs.push_back(run);
    }
  }
  return rows;
}

/// Options that every run shares are said once, above the table.
Json shared_options(const Json& inputs) {
  Json shared = inputs.front().at("options");
  for (const Json& input : inputs) {
    for (const auto& [key, value] : input.at("options").items()) {
      if (shared.contains(key) && shared[key] != value) shared.erase(key);
    }
  }
  return shared;
}

std::string options_beyond(const Json& options, const Json& shared) {
  std::string text;
  for (const auto& [key, value] : options.items()) {
    if (!shared.contains(key)) text += fmt::format("{}{}", text.empty() ? "" : " ", option_text(key, value));
  }
  return text;
}

double numeric(const Json& value) { return value.is_number() ? value.get<double>() : 0; }

// The part of a target's name that the row does not already say.
std::string isa_of(const std::string& target) {
  const std::size_t at = target.find('@');
  return at == target.npos ? target : target.substr(at + 1);
}

Html runs_cell(const Row& row) {
  return html("<div class=\"isas\">{}</div>", join(row.runs, "", [](const Json* run) {
                return html("<span title=\"{}\">{}</span><b>{}</b>", run->at("target"), isa_of(str(run->at("target"))),
                            run->at("nanoseconds_per_element"));
              }));
}

Html error_cell(const Json& run, const Html& place) {
  if (!run.at("worst_error_steps").is_number()) return html("<td class=\"num\">–</td>");
  const double bound = numeric(run.at("bound_steps")), steps = numeric(run.at("worst_error_steps"));
  const Html beyond =
      steps > bound ? html("<small class=\"bad\">✗ beyond {}</small>", fmt::format("{}", bound)) : Html{};
  return html("<td class=\"num\">{}{}{}{}</td>", steps_text(steps, bound), meter(steps, bound), beyond, place);
}

constexpr std::pair<const char*, std::string_view> kIllegal[] = {{"illegal_scales", "scales"},
                                                                 {"illegal_zero_points", "zero points"},
                                                                 {"illegal_codes", "codes"},
                                                                 {"illegal_values", "values"},
                                                                 {"illegal_counts", "counts"}};

Html illegal_cell(const Json& run) {
  Html parts;
  for (const auto& [key, name] : kIllegal) {
    if (run.at(key) != 0) parts += html("<small class=\"bad\">{} {}</small>", run.at(key), name);
  }
  return parts.empty() ? html("<td class=\"num\"><span class=\"ok\">✓</span> 0</td>")
                       : html("<td class=\"num bad\">✗{}</td>", parts);
}

// The run whose slowest block stands out most against its own median.
Html slowest_cell(const Row& row) {
  const auto ratio = [](const Json* run) {
    const double median = numeric(run->at("median_block_nanoseconds"));
    return median > 0 ? numeric(run->at("slowest_block_nanoseconds")) / median : 0;
  };
  const Json* worst = *std::max_element(row.runs.begin(), row.runs.end(),
                                        [&](const Json* a, const Json* b) { return ratio(a) < ratio(b); });
  if (ratio(worst) == 0 || row.first->at("blocks") == 1) return html("<td class=\"num\">–</td>");
  return html("<td class=\"num\">{} × median<small>block {}, {}</small><small>{} ns</small></td>",
              three_digits(ratio(worst)), worst->at("slowest_block"), isa_of(str(worst->at("target"))),
              worst->at("slowest_block_nanoseconds"));
}

CodeUse code_use(const Json& run) {
  return {run.at("code_counts").get<std::vector<std::uint64_t>>(), run.at("qmin").get<std::int64_t>()};
}

// All three always, zeros too: a reader must see that they were counted.
Html special_cell(const Json& run) {
  Html lines;
  for (const char* key : {"nan", "inf", "saturated"}) {
    lines += html("<small class=\"{}\">{} {}</small>", run.at(key) == 0 ? "soft" : "warn", run.at(key), key);
  }
  return html("<td class=\"num\">{}</td>", lines);
}

Html input_row(const Row& row, const Json& shared) {
  const Json& run = *row.first;
  Html out = html("<th scope=\"row\" class=\"middle\"><code>{}</code><small>{}</small></th>", run.at("scheme"),
                  options_beyond(run.at("options"), shared));
  out += html("<td class=\"middle\">{}</td><td class=\"num\">{}</td>", runs_cell(row), run.at("blocks"));
  out += error_cell(run, html("<small>at element {}</small>", run.at("worst_element")));
  out += html("<td class=\"num\">{}<small>rms {}</small></td>", run.at("worst_block"), run.at("worst_block_rms_steps"));
  out += special_cell(run);
  out += illegal_cell(run);
  out += slowest_cell(row);
  out += html("<td>{}</td>", histogram(code_use(run)));
  return html("<tr>{}</tr>\n", out);
}

Html tensor_body(const std::vector<const Json*>& runs, const Json& shared) {
  const Json& run = *runs.front();
  const std::string name = str(run.at("file")) + ":" + str(run.at("tensor"));
  const Html head = html(
      "<tr class=\"group\"><th colspan=\"9\" scope=\"rowgroup\"><code>{}</code> <span class=\"soft\">{} · {} · "
      "{}</span></th></tr>\n",
      run.at("tensor"), run.at("format"), shape_text(run.at("shape")), plural(count(run.at("elements")), "element"));
  return html("<tbody id=\"{}\">\n{}{}</tbody>\n", anchor("input", name), head,
              join(rows_of_tensor(runs), "", [&](const Row& row) { return input_row(row, shared); }));
}

/// Values of `key` in the order of first appearance, each with its runs.
using Groups = std::vector<std::pair<std::string, std::vector<const Json*>>>;
Groups grouped_by(const std::vector<const Json*>& runs, const char* key) {
  Groups groups;
  for (const Json* run : runs) {
    const std::string name = str(run->at(key));
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == name; });
    if (found == groups.end()) {
      groups.push_back({name, {run}});
    } else {
      found->second.push_back(run);
    }
  }
  return groups;
}

Html file_table(const std::string& file, const std::vector<const Json*>& runs, const Json& shared) {
  const Html head = html(
      "<tr><th>Configuration</th><th>Same bits on<small>ns per element</small></th><th class=\"num\">Blocks</th>"
      "<th class=\"num\">Worst error<small>steps, bound 0.5</small></th><th class=\"num\">Worst block<small>rms in "
      "steps</small></th>"
      "<th class=\"num\">Counted</th><th "
      "class=\"num\">Illegal</th>"
      "<th class=\"num\">Slowest block</th><th>Use of codes</th></tr>");
  Html bodies;
  for (const auto& [tensor, tensor_runs] : grouped_by(runs, "tensor")) bodies += tensor_body(tensor_runs, shared);
  return html("<h3><code>{}</code></h3>\n{}", file, table("Tensors of " + file, head, bodies));
}

Html illegal_total(std::uint64_t illegal) {
  return illegal == 0 ? html("<span class=\"ok\">✓ none</span>") : html("<span class=\"bad\">✗ {}</span>", illegal);
}

Html target_summary_row(const std::string& target, const std::vector<const Json*>& runs) {
  std::uint64_t elements = 0, illegal = 0;
  double nanoseconds = 0;
  for (const Json* run : runs) {
    elements += count(run->at("elements"));
    for (const auto& [key, name] : kIllegal) illegal += count(run->at(key));
    nanoseconds += numeric(run->at("nanoseconds_per_element")) * static_cast<double>(count(run->at("elements")));
  }
  const Json& worst = **std::max_element(runs.begin(), runs.end(), [](const Json* a, const Json* b) {
    return numeric(a->at("worst_error_steps")) < numeric(b->at("worst_error_steps"));
  });
  return html(
      "<tr><th scope=\"row\"><code>{}</code></th><td class=\"num\">{}</td><td class=\"num\">{}</td>{}"
      "<td class=\"num\">{}</td><td>{}</td></tr>\n",
      target, runs.size(), elements, error_cell(worst, html("<small>{}</small>", worst.at("tensor"))),
      elements == 0 ? "–" : three_digits(nanoseconds / static_cast<double>(elements)), illegal_total(illegal));
}

}  // namespace

Html inputs_section(const Json& report) {
  const Json& inputs = report.at("inputs");
  if (inputs.empty()) return section("inputs", "Input tensors", html("<p>No input file was given.</p>\n"));
  std::vector<const Json*> runs;
  for (const Json& input : inputs) runs.push_back(&input);
  const Html head = html(
      "<tr><th>Target</th><th class=\"num\">Runs</th><th class=\"num\">Elements</th><th class=\"num\">Worst error"
      "<small>steps, bound 0.5</small></th><th class=\"num\">ns per element<small>mean</small></th><th>Illegal "
      "results</th></tr>");
  Html rows;
  for (const auto& [target, target_runs] : grouped_by(runs, "target")) rows += target_summary_row(target, target_runs);
  Html body = table("Inputs by target", head, html("<tbody>\n{}</tbody>", rows));
  const Json shared = shared_options(inputs);
  body += html(
      "<p class=\"soft after\">Below, one line for each configuration of a tensor, and one more wherever targets "
      "disagree. A step is "
      "the block’s scale; lower is better. Columns of “use of codes” are linear in the count, and a code used once "
      "still "
      "shows; the numbers are in report.json.{}</p>\n",
      shared.empty() ? Html{} : html(" All runs share <code>{}</code>.", options_beyond(shared, Json::object())));
  for (const auto& [file, file_runs] : grouped_by(runs, "file")) body += file_table(file, file_runs, shared);
  return section("inputs", "Input tensors", body);
}

}  // namespace assay::page
