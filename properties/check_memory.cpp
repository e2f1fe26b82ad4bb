// Memory, repetition and the caller's floating-point environment.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/checks.h"
#include "properties/float_environment.h"
#include "properties/guarded.h"

namespace assay {
Verdict in_bounds(const Target& target, const Case& c, const Oracle&) {
  bool asked = false;
  for (const Path path : {Path::separate, Path::fused}) {
    for (const auto flush : {GuardedMemory::Flush::end, GuardedMemory::Flush::start}) {
      GuardedMemory memory(flush);
      Status status = Status::ok;
      const auto caught = caught_access([&] { status = ask(target, c, path, memory).status; });
      if (caught) return fail("out_of_bounds", "no access outside the buffers", memory.locate(*caught));
      asked = asked || status != Status::unsupported;
    }
  }
  return asked ? pass() : unsupported();
}

Verdict deterministic(const Target& target, const Case& c, const Oracle&) {
  const Path path = usual_path(target, c);
  PlainMemory zeros(std::byte{0x00}), ones(std::byte{0xff});
  const Reply first = ask(target, c, path, zeros);
  if (auto verdict = no_answer(first)) return *verdict;
  const Reply second = ask(target, c, path, ones);
  return difference(c, first, second, "second_call").value_or(pass());
}

namespace {

// The signals that exact arithmetic never raises on the way to a code: rounding is inexact, and may underflow.
std::optional<Verdict> alarms_raised(std::string_view where) {
  if (std::fetestexcept(FE_INVALID) != 0)
    return fail("raises_invalid", "no invalid operation", fmt::format("the invalid flag, {}", where));
  if (std::fetestexcept(FE_DIVBYZERO) != 0)
    return fail("divides_by_zero", "no division by zero", fmt::format("the division by zero flag, {}", where));
  return std::nullopt;
}

// One question in one caller's environment.
std::optional<Verdict> in_environment(const Target& target, const Case& c, Path path, const Reply& expected,
                                      const CallerEnvironment& caller) {
  PlainMemory memory;
  const KeepFloatEnvironment keep;
  caller.enter();
  const std::uint64_t before = float_control();
  const Reply got = ask_in_this_environment(target, c, path, memory);
  const std::uint64_t after = float_control();
  if (before != after) {
    return fail("environment_changed", fmt::format("the control word {:08x} as before, {}", before, caller.name),
                fmt::format("{:08x}", after));
  }
  auto verdict = difference(c, expected, got, "environment");
  if (verdict) verdict->got += fmt::format(" when called {}", caller.name);
  return verdict;
}

}  // namespace

Verdict environment_kept(const Target& target, const Case& c, const Oracle&) {
  const Path path = usual_path(target, c);
  PlainMemory memory;
  const KeepFloatEnvironment keep;
  std::feclearexcept(FE_ALL_EXCEPT);
  const std::uint64_t before = float_control();
  const Reply expected = ask_in_this_environment(target, c, path, memory);
  const std::uint64_t after = float_control();
  if (auto verdict = no_answer(expected)) return *verdict;
  if (auto verdict = alarms_raised("in the default environment")) return *verdict;
  if (before != after) {
    return fail("environment_changed", fmt::format("the control word {:08x} as before", before),
                fmt::format("{:08x}", after));
  }
  for (const CallerEnvironment& caller : caller_environments()) {
    if (auto verdict = in_environment(target, c, path, expected, caller)) return *verdict;
  }
  return pass();
}

}  // namespace assay
