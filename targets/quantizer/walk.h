// How the blocks of a layout lie in memory, for those who go through them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "arguments.h"
#include "quantizer.h"

namespace quantizer {

// Kernels want consecutive elements. Where channels come in runs shorter than a few vectors, a panel of neighbouring
// channels, which share cache lines, is sorted into buffers first, row by row, so that each cache line is touched once.
inline constexpr std::size_t kShortRun = 64;
inline constexpr std::size_t kPiece = 256;  ///< elements of one block that are sorted at a time
inline constexpr std::size_t kPanel = 16;

inline bool has_short_runs(const Layout& layout) {
  return layout.kind == Layout::Kind::channels && layout.inner < kShortRun && layout.outer > 1;
}

/// std::copy_n is a call, which is much for the single element that a run mostly is.
template <class T>
void copy_run(const T* from, std::size_t run, T* to) {
  if (run == 1) {
    *to = *from;
  } else {
    std::copy_n(from, run, to);
  }
}

/// Some elements of some neighbouring blocks. Each block has `runs` runs of `run` elements, `stride` apart; that of the
/// next block follows directly. In a buffer, the blocks are kPiece elements apart.
struct Piece {
  std::size_t first, count, start, runs, run, stride;
  bool in_place;  ///< one run of one block: needs no buffer

  std::size_t size() const { return runs * run; }

  template <class T>
  const T* gather(const T* tensor, T* buffer) const {
    if (in_place) return tensor + start;
    for (std::size_t i = 0; i < runs; ++i) {
      const T* const row = tensor + start + i * stride;
      for (std::size_t j = 0; j < count; ++j) copy_run(row + j * run, run, buffer + j * kPiece + i * run);
    }
    return buffer;
  }
  /// Where results go before scatter().
  template <class T>
  T* place(T* tensor, T* buffer) const {
    return in_place ? tensor + start : buffer;
  }
  template <class T>
  void scatter(const T* buffer, T* tensor) const {
    if (in_place) return;
    for (std::size_t i = 0; i < runs; ++i) {
      T* const row = tensor + start + i * stride;
      for (std::size_t j = 0; j < count; ++j) copy_run(buffer + j * kPiece + i * run, run, row + j * run);
    }
  }
};

/// `runs` runs of a single block, in place where a run is long, else some of them at a time in a buffer.
template <class Visit>
void for_each_piece_of_tile(std::size_t block, std::size_t start, std::size_t runs, std::size_t run, std::size_t stride,
                            Visit visit) {
  const bool in_place = runs == 1 || run >= kShortRun;
  const std::size_t most = in_place ? 1 : kPiece / run;
  for (std::size_t i = 0; i < runs; i += most) {
    visit(Piece{block, 1, start + i * stride, std::min(most, runs - i), run, stride, in_place});
  }
}

/// Calls visit(piece) for pieces that make up the blocks first .. first + count - 1, which are one panel or part of it.
template <class Visit>
void for_each_piece(const Layout& layout, std::size_t first, std::size_t count, Visit visit) {
  if (layout.kind == Layout::Kind::rows) {
    const std::size_t row = first / blocks_per_row(layout);
    const std::size_t column = first % blocks_per_row(layout) * layout.block;
    const std::size_t run = std::min(layout.block, layout.cols - column);
    visit(Piece{first, 1, row * layout.cols + column, 1, run, 0, true});
    return;
  }
  if (layout.kind == Layout::Kind::tiles) {
    const std::size_t across = blocks_per_row(layout), down = blocks_per_column(layout);
    const std::size_t matrix = first / (across * down), row = first / across % down * layout.block_rows;
    const std::size_t column = first % across * layout.block;
    for_each_piece_of_tile(first, (matrix * layout.rows + row) * layout.cols + column,
                           std::min(layout.block_rows, layout.rows - row), std::min(layout.block, layout.cols - column),
                           layout.cols, visit);
    return;
  }
  if (layout.inner == 0) return;
  const bool in_place = !has_short_runs(layout);
  const std::size_t stride = layout.channels * layout.inner;
  const std::size_t most = in_place ? 1 : kPiece / layout.inner;
  for (std::size_t outer = 0; outer < layout.outer;) {
    const std::size_t runs = std::min(most, layout.outer - outer);
    visit(Piece{first, count, outer * stride + first * layout.inner, runs, layout.inner, stride, in_place});
    outer += runs;
  }
}

/// Blocks of one panel.
inline std::size_t panel_size(const Layout& layout) { return has_short_runs(layout) ? kPanel : 1; }

/// Calls visit(first, count) in order for the panels that make up the blocks begin .. end - 1; begin starts a panel.
template <class Visit>
void for_each_panel(const Layout& layout, std::size_t begin, std::size_t end, Visit visit) {
  for (std::size_t first = begin; first < end;) {
    const std::size_t count = std::min(panel_size(layout), end - first);
    visit(first, count);
    first += count;
  }
}

}  // namespace quantizer
