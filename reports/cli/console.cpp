#include "reports/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <system_error>

#include "properties/nearest_name.h"
#include "properties/oracle_target.h"
#include "targets/all_targets.h"

namespace assay::cli {
namespace {

constexpr std::string_view kSchemePrefix = "scheme:";

std::vector<std::string_view> views(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

const SchemeInfo* scheme_behind(std::string_view target) {
  return target.starts_with(kSchemePrefix) ? scheme_named(target.substr(kSchemePrefix.size())) : nullptr;
}

[[noreturn]] void unknown_target(std::string_view name) {
  const std::vector<std::string> names = all_target_names();
  misused(unknown("target", name, views(names)));
}

std::string with_commas(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

}  // namespace

void misused(std::string sentence) { throw Failure{Exit::usage, std::move(sentence)}; }

void Progress::start(std::string what, std::uint64_t total) {
  clear();
  what_ = std::move(what);
  done_ = 0;
  total_ = total;
  shown_ = std::chrono::steady_clock::now();
}

void Progress::step(std::uint64_t count) {
  done_ += count;
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (now - shown_ < (terminal ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000))) return;
  shown_ = now;
  show();
}

void Progress::show() {
  constexpr std::uint64_t kWidth = 24;
  const std::uint64_t total = total_ == 0 ? 1 : total_;
  if (isatty(STDERR_FILENO) == 0) {
    fmt::print(stderr, "{}: {} of {}\n", what_, with_commas(done_), with_commas(total_));
    return;
  }
  const std::string bar(done_ * kWidth / total, '#');
  fmt::print(stderr, "\r\033[K[{:<{}}] {:3}%  {}", bar, kWidth, done_ * 100 / total, what_);
  std::fflush(stderr);
  on_screen_ = true;
}

void Progress::clear() {
  if (!on_screen_) return;
  fmt::print(stderr, "\r\033[K");
  on_screen_ = false;
}

std::vector<std::string> all_target_names() {
  std::vector<std::string> names = target_names();
  for (const SchemeInfo& scheme : schemes()) names.push_back(fmt::format("{}{}", kSchemePrefix, scheme.name));
  return names;
}

std::vector<Target> rows_of(std::string_view name) {
  if (const SchemeInfo* scheme = scheme_behind(name)) return {oracle_target(exact_oracle(), scheme->name)};
  std::vector<Target> rows = target_rows(name);
  if (rows.empty()) unknown_target(name);
  return rows;
}

Target target_of(std::string_view name) {
  if (const SchemeInfo* scheme = scheme_behind(name)) return oracle_target(exact_oracle(), scheme->name);
  if (std::optional<Target> target = target_named(name)) return *std::move(target);
  unknown_target(name);
}

const SchemeInfo& scheme_of(std::string_view name) {
  if (const SchemeInfo* scheme = scheme_named(name)) return *scheme;
  std::vector<std::string_view> names;
  for (const SchemeInfo& scheme : schemes()) names.push_back(scheme.name);
  misused(unknown("scheme", name, names));
}

std::string unknown(std::string_view kind, std::string_view wrong, std::span<const std::string_view> names) {
  return fmt::format("unknown {} '{}'; the nearest is '{}'", kind, wrong, nearest_name(wrong, names));
}

Settings settings_of(const std::vector<std::string>& texts) {
  std::vector<std::string_view> keys;
  Options scratch;
  const auto list = option_list(scratch);
  for (const auto& [key, value] : list) keys.push_back(key);
  Settings settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) misused(fmt::format("--set takes key=value, not '{}'", text));
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) misused(unknown("option", key, keys));
    const std::string problem = set_option(scratch, key, value);
    if (!problem.empty()) misused(problem);
    settings.emplace_back(key, value);
  }
  return settings;
}

Options with_settings(Options options, const Settings& settings) {
  for (const auto& [key, value] : settings) set_option(options, key, value);
  return options;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path draft = fmt::format("{}.{}.tmp", path.string(), getpid());
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(draft, path, error);
  if (out && !error) return;
  std::error_code ignored;
  std::filesystem::remove(draft, ignored);
  misused(fmt::format("{} cannot be written; is the folder there, writable, and the disk not full?", path.string()));
}

std::string counted(std::uint64_t n, std::string_view singular) {
  return fmt::format("{} {}{}", with_commas(n), singular, n == 1 ? "" : "s");
}

}  // namespace assay::cli
