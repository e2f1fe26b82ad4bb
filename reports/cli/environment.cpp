#include "reports/cli/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>

#include "properties/float_environment.h"
#include "reports/cli/build_info.h"
#include "targets/adapters/quantizer_adapter.h"

namespace assay::cli {
namespace {

// The value of the first line of a file that starts with `key`, up to the separator's other side.
std::string value_in(const char* file, std::string_view key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t last = line.find_last_not_of(" \t\"");
    if (first != std::string::npos && last >= first) return line.substr(first, last - first + 1);
  }
  return "unknown";
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
  e.cpu = value_in("/proc/cpuinfo", "model name", ':');
  e.os = system_name();
  e.isas_compiled = compiled_isas();
  e.floating_point = float_environment_text();
  return e;
}

}  // namespace assay::cli
