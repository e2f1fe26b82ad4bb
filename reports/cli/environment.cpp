#include "reports/cli/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cfenv>
#include <fstream>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

std::string floating_point_state() {
  const int mode = std::fegetround();
  std::string text = mode == FE_TONEAREST    ? "round to nearest even"
                     : mode == FE_UPWARD     ? "round up"
                     : mode == FE_DOWNWARD   ? "round down"
                     : mode == FE_TOWARDZERO ? "round toward zero"
                                             : "unknown rounding mode";
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
  const unsigned control = _mm_getcsr();
  text += fmt::format(", flush to zero {}, denormals are zero {}", (control & kFlushToZero) ? "on" : "off",
                      (control & kDenormalsAreZero) ? "on" : "off");
#endif
  return text;
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
  e.floating_point = floating_point_state();
  return e;
}

}  // namespace assay::cli
