#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "properties/property.h"
#include "reports/cli/verbs.h"
#include "targets/adapters/quantizer_adapter.h"
#include "targets/faults/faults.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

Json targets_json() {
  Json rows = Json::array();
  for (const std::string& name : all_target_names()) {
    const Target target = target_of(name);
    rows.push_back({{"name", name}, {"isa", target.isa}, {"version", target.version}, {"schemes", target.schemes}});
  }
  return rows;
}

Json schemes_json() {
  Json rows = Json::array();
  for (const SchemeInfo& s : schemes()) {
    rows.push_back(
        {{"name", s.name}, {"summary", s.summary}, {"source", s.source}, {"rounding_points", s.rounding_points}});
  }
  return rows;
}

Json properties_json() {
  Json rows = Json::array();
  for (const Property& p : catalogue())
    rows.push_back({{"name", p.id}, {"statement", p.statement}, {"source", p.requirement}});
  return rows;
}

Json faults_json() {
  Json rows = Json::array();
  for (const Fault& f : faults()) rows.push_back({{"name", f.id}, {"killed_by", f.expected}, {"models", f.models}});
  return rows;
}

Json isas_json() {
  const std::vector<Target> runnable = quantizer_targets();
  Json rows = Json::array();
  for (const std::string& isa : compiled_isas()) {
    const bool runs = std::any_of(runnable.begin(), runnable.end(), [&](const Target& t) { return t.isa == isa; });
    rows.push_back({{"name", isa}, {"runs_here", runs}});
  }
  return rows;
}

struct Kind {
  std::string_view name;
  Json (*rows)();
};
constexpr Kind kKinds[] = {{"targets", targets_json},
                           {"schemes", schemes_json},
                           {"properties", properties_json},
                           {"faults", faults_json},
                           {"isas", isas_json}};

std::string cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) text += fmt::format("{}{}", text.empty() ? "" : ", ", cell(item));
  return text;
}

// One line a row under a line of headings; the last column may be long.
void print_table(const Json& rows) {
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& [key, value] : rows.front().items()) lines[0].push_back(key);
  for (const Json& row : rows) {
    lines.emplace_back();
    for (const Json& value : row) lines.back().push_back(cell(value));
  }
  for (const std::vector<std::string>& line : lines) {
    std::string text;
    for (std::size_t column = 0; column < line.size(); ++column) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[column].size());
      text += column + 1 == line.size() ? line[column] : fmt::format("{:<{}}", line[column], width + 2);
    }
    fmt::print("{}\n", text);
  }
}

void print_blocks(const Json& rows) {
  for (const Json& row : rows) {
    fmt::print("{}\n", cell(row.front()));
    for (auto field = std::next(row.begin()); field != row.end(); ++field) fmt::print("  {}\n", cell(*field));
  }
}

}  // namespace

Exit list(const ListArguments& arguments) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    names.push_back(kind.name);
    if (kind.name != arguments.kind) continue;
    const Json rows = kind.rows();
    if (arguments.json)
      fmt::print("{}\n", rows.dump(2));
    else if (kind.name == "schemes" || kind.name == "properties")
      print_blocks(rows);
    else
      print_table(rows);
    return Exit::holds;
  }
  misused(unknown("list", arguments.kind, names));
}

}  // namespace assay::cli
