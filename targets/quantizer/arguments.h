// Checks that every public call makes of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "quantizer.h"

namespace quantizer {

/// Memory of one argument.
struct Extent {
  const void* start;
  std::size_t size;
};
inline Extent bytes(const void* start, std::size_t n) { return {start, n}; }
template <class T>
Extent array(const T* start, std::size_t n) {
  return {start, n * sizeof(T)};
}

/// bad_overlap if an output shares memory with an input or with another output; inputs may share memory.
Status check_apart(std::initializer_list<Extent> inputs, std::initializer_list<Extent> outputs);

/// False if the product overflows.
bool multiply(std::size_t a, std::size_t b, std::size_t& product);

/// Blocks along the columns, and along the rows, of a layout by rows or tiles; block and block_rows are not 0.
std::size_t blocks_per_row(const Layout& layout);
std::size_t blocks_per_column(const Layout& layout);

/// Every product that is formed later, positions and sizes in bytes, fits: no factor may hide behind a 0.
bool is_layout(const Layout& layout);

}  // namespace quantizer
