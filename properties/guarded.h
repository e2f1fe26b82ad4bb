// Memory whose neighbours are pages that trap, and a way to survive the trap: how in_bounds sees one byte too many.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "properties/ask.h"

namespace assay {

/// Buffers that end (or start) exactly at an inaccessible page. Sealed buffers become read-only.
class GuardedMemory final : public Memory {
 public:
  enum class Flush : std::uint8_t { end, start };
  explicit GuardedMemory(Flush flush) : flush_(flush) {}
  ~GuardedMemory() override;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* allocate(std::size_t size, std::size_t alignment) override;
  void seal(std::byte* buffer) override;

  /// "4 bytes past the end of a 12-byte buffer", or empty if the address is near none of the buffers.
  std::string locate(const void* address) const;

 private:
  struct Region {
    std::byte* base;
    std::size_t length;  // whole mapping, both guard pages included
    std::byte* buffer;
    std::size_t size;
    bool sealed;
  };
  Flush flush_;
  std::vector<Region> regions_;
};

/// Runs `work`; if it touches memory it may not, stops it there and returns the address. Objects that `work` holds at
/// that moment are not destroyed: for code under test only.
std::optional<const void*> caught_access(const std::function<void()>& work);

}  // namespace assay
