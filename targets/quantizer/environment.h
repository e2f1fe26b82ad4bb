// The default floating-point environment (round to nearest, subnormals kept, nothing trapped) for the length of a call.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace quantizer {

/// In force while it lives; then the caller's is back, unchanged. The compiler does not know that float operations
/// depend on it, so none may stand beside it: they are all in the kernels, which are called through pointers chosen at
/// run time.
class DefaultEnvironment {
 public:
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

#if defined(__SSE2__)
  DefaultEnvironment() : callers_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~DefaultEnvironment() { _mm_setcsr(callers_); }

 private:
  unsigned callers_;
#elif defined(__aarch64__)
  DefaultEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(callers_control_));
    asm volatile("mrs %0, fpsr" : "=r"(callers_flags_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}) : "memory");
  }
  ~DefaultEnvironment() {
    asm volatile("msr fpcr, %0" : : "r"(callers_control_) : "memory");
    asm volatile("msr fpsr, %0" : : "r"(callers_flags_) : "memory");
  }

 private:
  std::uint64_t callers_control_, callers_flags_;
#else
  DefaultEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&callers_); }

 private:
  std::fenv_t callers_;
#endif
};

}  // namespace quantizer
