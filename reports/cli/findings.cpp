#include "reports/cli/findings.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/cli/console.h"

namespace assay::cli {
namespace {

using Json = nlohmann::json;

// The day that decides whether an acceptance has run out, "YYYY-MM-DD". SOURCE_DATE_EPOCH, where it is set, makes the
// same inputs give the same report on any day.
std::string today() {
  std::time_t now = std::time(nullptr);
  if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH"))
    now = static_cast<std::time_t>(std::strtoll(fixed, nullptr, 10));
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

bool is_day(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
}

KnownFinding known_finding(const std::string& file, std::size_t index, const Json& row) {
  const auto refuse = [&](std::string_view problem) {
    throw Failure{Exit::input, fmt::format("{}: item {}: {}", file, index, problem)};
  };
  if (!row.is_object()) refuse("is not an object with signature, reason, link and expires");
  const auto text = [&](const char* key) {
    if (!row.contains(key) || !row[key].is_string() || row[key].get<std::string>().empty())
      refuse(fmt::format("key '{}' is missing or no text", key));
    return row[key].get<std::string>();
  };
  KnownFinding known{text("signature"), text("reason"), text("link"), text("expires")};
  if (row.size() != 4) refuse("has other keys than signature, reason, link and expires");
  if (!is_day(known.expires)) refuse(fmt::format("key 'expires' is '{}', not a day like 2027-01-31", known.expires));
  return known;
}

}  // namespace

std::vector<KnownFinding> read_known_findings(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::stringstream text;
  text << in.rdbuf();
  const Json list = Json::parse(text.str(), nullptr, false);
  if (!list.is_array()) throw Failure{Exit::input, fmt::format("{}: is not a JSON list", path.string())};
  std::vector<KnownFinding> known;
  for (const Json& row : list) known.push_back(known_finding(path.string(), known.size(), row));
  return known;
}

void Findings::add(const Property& property, const Target& target, const Case& c, const Verdict& verdict) {
  Finding finding;
  finding.target = target.name;
  finding.property = property.id;
  finding.example = c;
  finding.verdict = verdict;
  if (!seen_.insert(signature(finding)).second) return;
  finding = minimized_finding(property, target, c, verdict);
  finding.case_file = fmt::format("cases/{}", file_name_of(signature(finding)));
  accept_if_known(finding);
  list_.push_back(std::move(finding));
}

void Findings::accept_if_known(Finding& finding) const {
  for (const KnownFinding& known : known_) {
    if (known.signature != signature(finding) || known.expires < today()) continue;
    finding.known = true;
    finding.known_reason = fmt::format("{} ({}, until {})", known.reason, known.link, known.expires);
  }
}

}  // namespace assay::cli
