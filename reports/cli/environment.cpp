#include "reports/cli/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <optional>

#include "properties/float_environment.h"
#include "reports/cli/build_info.h"
#include "targets/adapters/quantizer_adapter.h"

namespace assay::cli {
namespace {

// What follows the separator in the first line of a file that starts with `key`.
std::optional<std::string> find_value(const char* file, std::string_view key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t last = line.find_last_not_of(" \t\"");
    if (first != std::string::npos && last >= first) return line.substr(first, last - first + 1);
  }
  return std::nullopt;
}

std::string value_in(const char* file, std::string_view key, char separator) {
  return find_value(file, key, separator).value_or("unknown");
}

// /proc/cpuinfo is the kernel's: an emulator of user programs shows its host's, and "vendor_id" is a line of x86 only.
std::string cpu_name() {
  constexpr char kFile[] = "/proc/cpuinfo";
  const std::string model = value_in(kFile, "model name", ':');
#ifdef __aarch64__
  if (find_value(kFile, "vendor_id", ':')) return fmt::format("aarch64, emulated on {}", model);
  const auto implementer = find_value(kFile, "CPU implementer", ':'), part = find_value(kFile, "CPU part", ':');
  if (model == "unknown" && implementer && part) return fmt::format("implementer {}, part {}", *implementer, *part);
#endif
  return model;
}

std::string system_name() {
  utsname name{};
  if (uname(&name) != 0) return value_in("/etc/os-release", "PRETTY_NAME", '=');
  return fmt::format("{}, {} {} {}", value_in("/etc/os-release", "PRETTY_NAME", '='), name.sysname, name.release,
                     name.machine);
}

}  // namespace

Environment this_environment() {
  Environment e;
  e.assay_version = kVersion;
  e.commit = kCommit;
  e.compiler = kCompiler;
  e.flags = kFlags;
  e.cpu = cpu_name();
  e.os = system_name();
  e.isas_compiled = compiled_isas();
  e.floating_point = float_environment_text();
  return e;
}

}  // namespace assay::cli
