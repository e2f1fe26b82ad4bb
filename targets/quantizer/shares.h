// The work of one call cut into shares, for whoever runs them: this thread, or those of the caller's executor.
#pragma once

#include <algorithm>
#include <cstddef>

#include "environment.h"
#include "quantizer.h"

namespace quantizer {

inline constexpr std::size_t kShares = 64;  ///< at most, of one call
inline constexpr std::size_t kRun = 16;     ///< a share of consecutive elements is a multiple of it

/// A call's work in equal consecutive shares.
struct Shares {
  std::size_t count, size, total;
  std::size_t begin(std::size_t share) const { return share * size; }
  std::size_t end(std::size_t share) const { return std::min(total, (share + 1) * size); }
};

/// `total` things, of which `multiple` stay together, made of `elements` elements.
inline Shares shares_of(std::size_t total, std::size_t multiple, std::size_t elements, const Executor* executor) {
  if (executor == nullptr || total == 0) return {1, total, total};
  const std::size_t least = std::max<std::size_t>(executor->least_elements, 1);
  const std::size_t wanted = std::clamp<std::size_t>(elements / least, 1, kShares);
  const std::size_t units = total / multiple + (total % multiple != 0 ? 1 : 0);
  const std::size_t size = (units / wanted + (units % wanted != 0 ? 1 : 0)) * multiple;
  return {total / size + (total % size != 0 ? 1 : 0), size, total};
}

/// Calls work(share, begin, end) for every share, in the default floating-point environment of its thread.
template <class Work>
void for_each_share(const Shares& shares, const Executor* executor, Work work) {
  const auto task = [&](std::size_t share) {
    const DefaultEnvironment environment;
    work(share, shares.begin(share), shares.end(share));
  };
  if (executor == nullptr || shares.count < 2) {
    for (std::size_t share = 0; share < shares.count; ++share) task(share);
    return;
  }
  using Task = decltype(task);
  executor->run(
      executor->context, shares.count, [](void* argument, std::size_t i) { (*static_cast<const Task*>(argument))(i); },
      const_cast<void*>(static_cast<const void*>(&task)));
}

}  // namespace quantizer
