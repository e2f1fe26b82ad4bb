// The floating-point environment of this thread: what a caller may have set before a quantizer runs, and what must be
// as it was afterwards.
#pragma once

#include <cfenv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay {

/// Rounding mode, flush modes and exception masks, without the exception flags; 0 where this suite cannot read them.
std::uint64_t float_control();

/// "round to nearest even, flush to zero off, denormals are zero off".
std::string float_environment_text();

/// An environment that a caller may be in.
struct CallerEnvironment {
  std::string_view name;
  void (*enter)();
};
/// Every rounding mode but the default one, and subnormals flushed where the machine can.
std::span<const CallerEnvironment> caller_environments();

/// Puts the environment back that it found, flags included.
class KeepFloatEnvironment {
 public:
  KeepFloatEnvironment() { std::fegetenv(&found_); }
  ~KeepFloatEnvironment() { std::fesetenv(&found_); }
  KeepFloatEnvironment(const KeepFloatEnvironment&) = delete;
  KeepFloatEnvironment& operator=(const KeepFloatEnvironment&) = delete;

 private:
  std::fenv_t found_;
};

}  // namespace assay
