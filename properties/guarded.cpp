#include "properties/guarded.h"

#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

// The leak checker's switches, where one is linked in.
extern "C" void __lsan_disable() __attribute__((weak));
extern "C" void __lsan_enable() __attribute__((weak));

namespace assay {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

thread_local sigjmp_buf resume_point;
thread_local const void* volatile fault_address = nullptr;

void on_fault(int, siginfo_t* info, void*) {
  fault_address = info->si_addr;
  siglongjmp(resume_point, 1);
}

// Work that is stopped in the middle leaves behind what it holds: these leaks are no news.
class LeaksExpected {
 public:
  LeaksExpected() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksExpected() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  LeaksExpected(const LeaksExpected&) = delete;
  LeaksExpected& operator=(const LeaksExpected&) = delete;
};

// Puts the process's own handlers (a sanitizer's, a fuzzer's) back when it goes.
class FaultHandlers {
 public:
  FaultHandlers() {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &segv_);
    sigaction(SIGBUS, &action, &bus_);
  }
  ~FaultHandlers() {
    sigaction(SIGSEGV, &segv_, nullptr);
    sigaction(SIGBUS, &bus_, nullptr);
  }
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;

 private:
  struct sigaction segv_ = {}, bus_ = {};
};

// Mappings that are free again: making one costs several system calls, and a property makes twenty a case.
class FreeMappings {
 public:
  ~FreeMappings() {
    for (const auto& [base, length] : free_) munmap(base, length);
  }
  std::byte* take(std::size_t length) {
    const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& f) { return f.second == length; });
    if (found == free_.end()) return nullptr;
    std::byte* const base = found->first;
    free_.erase(found);
    return base;
  }
  void give(std::byte* base, std::size_t length) {
    constexpr std::size_t kMost = 32;
    free_.emplace_back(base, length);
    if (free_.size() <= kMost) return;
    munmap(free_.front().first, free_.front().second);
    free_.erase(free_.begin());
  }

 private:
  std::vector<std::pair<std::byte*, std::size_t>> free_;
};
thread_local FreeMappings free_mappings;

}  // namespace

GuardedMemory::~GuardedMemory() {
  const std::size_t page = page_size();
  for (const Region& r : regions_) {
    if (r.sealed) mprotect(r.base + page, r.length - 2 * page, PROT_READ | PROT_WRITE);
    free_mappings.give(r.base, r.length);
  }
}

std::byte* GuardedMemory::allocate(std::size_t size, std::size_t) {
  const std::size_t page = page_size();
  const std::size_t inside = (size + page - 1) / page * page;
  const std::size_t length = inside + 2 * page;
  std::byte* base = free_mappings.take(length);
  if (base == nullptr) {
    void* const fresh = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) throw std::bad_alloc();
    base = static_cast<std::byte*>(fresh);
    if (inside > 0) mprotect(base + page, inside, PROT_READ | PROT_WRITE);
  }
  std::byte* buffer = base + page + (flush_ == Flush::end ? inside - size : 0);
  regions_.push_back({base, length, buffer, size, false});
  return buffer;
}

void GuardedMemory::seal(std::byte* buffer) {
  const std::size_t page = page_size();
  for (Region& r : regions_) {
    if (r.buffer != buffer || r.length == 2 * page) continue;
    mprotect(r.base + page, r.length - 2 * page, PROT_READ);
    r.sealed = true;
  }
}

std::string GuardedMemory::locate(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  for (const Region& r : regions_) {
    if (at < r.base || at >= r.base + r.length) continue;
    if (at >= r.buffer + r.size) return fmt::format("{} bytes past a {}-byte buffer", at - (r.buffer + r.size), r.size);
    if (at < r.buffer) return fmt::format("{} bytes before a {}-byte buffer", r.buffer - at, r.size);
    return fmt::format("a write at byte {} of a {}-byte input", at - r.buffer, r.size);
  }
  return {};
}

std::optional<const void*> caught_access(const std::function<void()>& work) {
  const LeaksExpected leaks;
  const FaultHandlers handlers;
  if (sigsetjmp(resume_point, 1) != 0) return fault_address;
  work();
  return std::nullopt;
}

}  // namespace assay
