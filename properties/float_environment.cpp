#include "properties/float_environment.h"

#include <fmt/format.h>

#include <array>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace assay {
namespace {

#if defined(__SSE2__)
constexpr unsigned kFlags = 0x3f, kDenormalsAreZero = 1u << 6, kFlushToZero = 1u << 15;
void flush_subnormals() { _mm_setcsr(_mm_getcsr() | kDenormalsAreZero | kFlushToZero); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;  // inputs and results alike
void flush_subnormals() { asm volatile("msr fpcr, %0" : : "r"(float_control() | kFlushToZero) : "memory"); }
#endif

void round_up() { std::fesetround(FE_UPWARD); }
void round_down() { std::fesetround(FE_DOWNWARD); }
void round_toward_zero() { std::fesetround(FE_TOWARDZERO); }

constexpr std::array kCallers = {
#if defined(__SSE2__) || defined(__aarch64__)
    CallerEnvironment{"subnormals flushed to zero", flush_subnormals},
#endif
    CallerEnvironment{"rounding up", round_up},
    CallerEnvironment{"rounding down", round_down},
    CallerEnvironment{"rounding toward zero", round_toward_zero},
};

std::string_view rounding_name(int mode) {
  switch (mode) {
    case FE_TONEAREST:
      return "round to nearest even";
    case FE_UPWARD:
      return "round up";
    case FE_DOWNWARD:
      return "round down";
    case FE_TOWARDZERO:
      return "round toward zero";
  }
  return "unknown rounding mode";
}

}  // namespace

std::uint64_t float_control() {
#if defined(__SSE2__)
  return _mm_getcsr() & ~kFlags;
#elif defined(__aarch64__)
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
#else
  return 0;
#endif
}

std::string float_environment_text() {
  std::string text(rounding_name(std::fegetround()));
#if defined(__SSE2__)
  const std::uint64_t control = float_control();
  text += fmt::format(", flush to zero {}, denormals are zero {}", (control & kFlushToZero) ? "on" : "off",
                      (control & kDenormalsAreZero) ? "on" : "off");
#elif defined(__aarch64__)
  text += fmt::format(", flush to zero {}", (float_control() & kFlushToZero) ? "on" : "off");
#endif
  return text;
}

std::span<const CallerEnvironment> caller_environments() { return kCallers; }

}  // namespace assay
