#include "arguments.h"

#include <limits>

namespace quantizer {
namespace {

std::size_t divide_up(std::size_t a, std::size_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool share_memory(const Extent& a, const Extent& b) {
  const auto a_start = reinterpret_cast<std::uintptr_t>(a.start), b_start = reinterpret_cast<std::uintptr_t>(b.start);
  return a.size != 0 && b.size != 0 && a_start < b_start + b.size && b_start < a_start + a.size;
}

bool is_layout_of_blocks(const Layout& layout) {
  const bool tiles = layout.kind == Layout::Kind::tiles;
  if (layout.block == 0 || (tiles && layout.block_rows == 0)) return false;
  const std::size_t matrices = tiles ? layout.matrices : 1;
  std::size_t matrix = 0, elements = 0, size = 0, blocks = 0;
  if (!multiply(layout.rows, layout.cols, matrix) || !multiply(matrix, matrices, elements)) return false;
  if (!multiply(elements, sizeof(float), size)) return false;
  const std::size_t down = tiles ? blocks_per_column(layout) : layout.rows;
  return multiply(down, blocks_per_row(layout), matrix) && multiply(matrix, matrices, blocks) &&
         multiply(blocks, sizeof(std::int32_t), size);
}

}  // namespace

bool multiply(std::size_t a, std::size_t b, std::size_t& product) {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) return false;
  product = a * b;
  return true;
}

std::size_t blocks_per_row(const Layout& layout) { return divide_up(layout.cols, layout.block); }
std::size_t blocks_per_column(const Layout& layout) { return divide_up(layout.rows, layout.block_rows); }

bool is_layout(const Layout& layout) {
  if (layout.kind != Layout::Kind::channels) return is_layout_of_blocks(layout);
  std::size_t stride = 0, elements = 0, size = 0;
  return multiply(layout.channels, layout.inner, stride) && multiply(stride, layout.outer, elements) &&
         multiply(elements, sizeof(float), size) && multiply(layout.channels, sizeof(std::int32_t), size);
}

Status check_apart(std::initializer_list<Extent> inputs, std::initializer_list<Extent> outputs) {
  for (const Extent* output = outputs.begin(); output != outputs.end(); ++output) {
    for (const Extent& input : inputs) {
      if (share_memory(*output, input)) return Status::bad_overlap;
    }
    for (const Extent* other = outputs.begin(); other != output; ++other) {
      if (share_memory(*output, *other)) return Status::bad_overlap;
    }
  }
  return Status::ok;
}

// ---------------------------------------------------------------------------------------------------- layouts

Layout per_tensor(std::size_t n) { return per_channel(1, 1, n); }

Layout per_channel(std::size_t outer, std::size_t channels, std::size_t inner) {
  Layout layout;
  layout.kind = Layout::Kind::channels;
  layout.outer = outer;
  layout.channels = channels;
  layout.inner = inner;
  return layout;
}

Layout per_block(std::size_t rows, std::size_t cols, std::size_t block) {
  Layout layout;
  layout.kind = Layout::Kind::rows;
  layout.rows = rows;
  layout.cols = cols;
  layout.block = block;
  return layout;
}

Layout per_tile(std::size_t matrices, std::size_t rows, std::size_t cols, std::size_t block_rows, std::size_t block) {
  Layout layout = per_block(rows, cols, block);
  layout.kind = Layout::Kind::tiles;
  layout.matrices = matrices;
  layout.block_rows = block_rows;
  return layout;
}

std::size_t element_count(const Layout& layout) {
  switch (layout.kind) {
    case Layout::Kind::channels:
      return layout.outer * layout.channels * layout.inner;
    case Layout::Kind::rows:
      return layout.rows * layout.cols;
    case Layout::Kind::tiles:
      return layout.matrices * layout.rows * layout.cols;
  }
  return 0;
}

std::size_t block_count(const Layout& layout) {
  if (layout.kind == Layout::Kind::channels) return layout.channels;
  if (layout.block == 0) return 0;
  if (layout.kind == Layout::Kind::rows) return layout.rows * blocks_per_row(layout);
  return layout.block_rows == 0 ? 0 : layout.matrices * blocks_per_column(layout) * blocks_per_row(layout);
}

// ---------------------------------------------------------------------------------------------------- words

const char* message(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::bad_spec:
      return "bits, signs or formats that do not go together";
    case Status::bad_layout:
      return "a block of 0 elements, sizes whose product overflows, or a layout that the call does not take";
    case Status::bad_scale:
      return "a scale is not positive and finite";
    case Status::bad_zero_point:
      return "a zero point is no code";
    case Status::bad_isa:
      return "no such instruction set";
    case Status::bad_overlap:
      return "an output shares memory with an input or another output";
    case Status::bad_multiplier:
      return "a multiplier, divisor, shift or scale is outside its range";
  }
  return "unknown status";
}

}  // namespace quantizer
