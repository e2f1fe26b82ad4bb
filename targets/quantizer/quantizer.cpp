#include "quantizer.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "kernels.h"
#include "qparams.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace quantizer {
namespace {

// ---------------------------------------------------------------------------------------------------- environment

/// The default floating-point environment while it lives. The compiler does not know that float operations depend on
/// it, so none may stand beside it: they are all in the kernels, which are called through pointers chosen at run time.
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

// ---------------------------------------------------------------------------------------------------- checks

bool multiply(std::size_t a, std::size_t b, std::size_t& product) {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) return false;
  product = a * b;
  return true;
}

std::size_t blocks_per_row(const Layout& layout) {
  return layout.cols / layout.block + (layout.cols % layout.block != 0 ? 1 : 0);
}

/// Every product that is formed later, positions and sizes in bytes, fits: no factor may hide behind a 0.
bool is_layout(const Layout& layout) {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  if (layout.kind == Layout::Kind::rows) {
    if (layout.block == 0) return false;
    std::size_t blocks = 0;
    return multiply(layout.rows, layout.cols, elements) && multiply(elements, sizeof(float), bytes) &&
           multiply(layout.rows, blocks_per_row(layout), blocks);
  }
  std::size_t stride = 0;
  return multiply(layout.channels, layout.inner, stride) && multiply(stride, layout.outer, elements) &&
         multiply(elements, sizeof(float), bytes) && multiply(layout.channels, sizeof(std::int32_t), bytes);
}

Status check(const Spec& spec, const Layout& layout, Isa isa) {
  if (spec.bits < 2 || spec.bits > 8) return Status::bad_spec;
  if (!spec.is_signed && (spec.symmetric || spec.narrow_range)) return Status::bad_spec;
  if (!is_layout(layout)) return Status::bad_layout;
  if (isa.index < 0 || isa.index >= kernel_list().size) return Status::bad_isa;
  return Status::ok;
}

/// Memory of one argument.
struct Extent {
  const void* start;
  std::size_t size;
};

std::size_t width_of(FloatFormat format) { return format == FloatFormat::f32 ? sizeof(float) : sizeof(std::uint16_t); }

Extent floats(FloatFormat format, const void* start, std::size_t n) { return {start, n * width_of(format)}; }
Extent bytes(const void* start, std::size_t n) { return {start, n}; }
Extent integers(const std::int32_t* start, std::size_t n) { return {start, n * sizeof *start}; }

bool share_memory(const Extent& a, const Extent& b) {
  const auto a_start = reinterpret_cast<std::uintptr_t>(a.start), b_start = reinterpret_cast<std::uintptr_t>(b.start);
  return a.size != 0 && b.size != 0 && a_start < b_start + b.size && b_start < a_start + a.size;
}

/// Inputs may share memory with each other.
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

// ---------------------------------------------------------------------------------------------------- scales

Pattern load_scale(const Spec& spec, const void* scales, std::size_t block) {
  if (spec.scale_format == FloatFormat::f32) {
    std::uint32_t pattern;
    std::memcpy(&pattern, static_cast<const char*>(scales) + block * sizeof pattern, sizeof pattern);
    return pattern;
  }
  std::uint16_t pattern;
  std::memcpy(&pattern, static_cast<const char*>(scales) + block * sizeof pattern, sizeof pattern);
  return pattern;
}

void store_scale(const Spec& spec, void* scales, std::size_t block, Pattern scale) {
  if (spec.scale_format == FloatFormat::f32) {
    std::memcpy(static_cast<char*>(scales) + block * sizeof scale, &scale, sizeof scale);
    return;
  }
  const auto pattern = static_cast<std::uint16_t>(scale);
  std::memcpy(static_cast<char*>(scales) + block * sizeof pattern, &pattern, sizeof pattern);
}

Status check_qparams(const Spec& spec, const Layout& layout, const void* scales, const std::int32_t* zero_points) {
  const CodeRange codes = code_range(spec);
  for (std::size_t block = 0; block < block_count(layout); ++block) {
    if (!is_positive_finite(spec.scale_format, load_scale(spec, scales, block))) return Status::bad_scale;
    if (zero_points[block] < codes.qmin || zero_points[block] > codes.qmax) return Status::bad_zero_point;
  }
  return Status::ok;
}

// ---------------------------------------------------------------------------------------------------- walk

// Kernels want consecutive elements. Where channels come in runs shorter than a few vectors, a panel of neighbouring
// channels, which share cache lines, is sorted into buffers first, row by row, so that each cache line is touched once.
constexpr std::size_t kShortRun = 64;
constexpr std::size_t kPiece = 256;  ///< elements of one block that are sorted at a time
constexpr std::size_t kPanel = 16;

bool has_short_runs(const Layout& layout) {
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

/// Calls visit(first, count) for the panels in order.
template <class Visit>
void for_each_panel(const Layout& layout, Visit visit) {
  const std::size_t blocks = block_count(layout);
  for (std::size_t first = 0; first < blocks;) {
    const std::size_t count = std::min(has_short_runs(layout) ? kPanel : 1, blocks - first);
    visit(first, count);
    first += count;
  }
}

// ---------------------------------------------------------------------------------------------------- panels

/// Calls work(floats, i, n) for elements i .. i + n - 1 of `from`: all of them as they are if they are floats, else
/// piece by piece as floats.
template <class Work>
void as_floats(const Kernels&, FloatFormat, const float* from, std::size_t n, Work work) {
  work(from, std::size_t{0}, n);
}
template <class Work>
void as_floats(const Kernels& kernels, FloatFormat format, const std::uint16_t* from, std::size_t n, Work work) {
  constexpr std::size_t kMost = 1024;  // stays in the nearest cache
  float floats[kMost];
  for (std::size_t i = 0; i < n; i += kMost) {
    const std::size_t size = std::min(kMost, n - i);
    kernels.widen(from + i, format, size, floats);
    work(floats, i, size);
  }
}

/// Calls visit with x as what it is: floats or 16-bit patterns.
template <class Visit>
void with_type(FloatFormat format, const void* x, Visit visit) {
  if (format == FloatFormat::f32) {
    visit(static_cast<const float*>(x));
  } else {
    visit(static_cast<const std::uint16_t*>(x));
  }
}
template <class Visit>
void with_type(FloatFormat format, void* values, Visit visit) {
  if (format == FloatFormat::f32) {
    visit(static_cast<float*>(values));
  } else {
    visit(static_cast<std::uint16_t*>(values));
  }
}

template <class Element>
void choose_panel(const Spec& spec, const Layout& layout, const Kernels& kernels, const Element* x, std::size_t first,
                  std::size_t count, void* scales, std::int32_t* zero_points, Counts* counts) {
  Element buffer[kPanel * kPiece];
  Range ranges[kPanel];
  std::fill_n(ranges, count, Range{});  // not all: a panel is mostly one block, which may be short
  for_each_piece(layout, first, count, [&](const Piece& piece) {
    const Element* const elements = piece.gather(x, buffer);
    for (std::size_t i = 0; i < count; ++i) {
      as_floats(kernels, spec.input_format, elements + i * kPiece, piece.size(),
                [&](const float* floats, std::size_t, std::size_t n) { kernels.extend_range(floats, n, ranges[i]); });
    }
  });
  for (std::size_t i = 0; i < count; ++i) {
    const QParams chosen = choose(spec, ranges[i].hi, ranges[i].lo);
    store_scale(spec, scales, first + i, chosen.scale);
    zero_points[first + i] = chosen.zero_point;
    if (counts == nullptr) continue;
    counts->nan += ranges[i].nan;
    counts->inf += ranges[i].inf;
    if (!chosen.saturates) continue;
    for_each_piece(layout, first + i, 1, [&](const Piece& piece) {
      as_floats(kernels, spec.input_format, piece.gather(x, buffer), piece.size(),
                [&](const float* floats, std::size_t, std::size_t n) {
                  counts->saturated += static_cast<std::size_t>(std::count_if(
                      floats, floats + n, [&](const float& element) { return out_of_reach(spec, chosen, element); }));
                });
    });
  }
}

void load_affine(const Spec& spec, std::size_t first, std::size_t count, const void* scales,
                 const std::int32_t* zero_points, Affine* affine) {
  const CodeRange codes = code_range(spec);
  for (std::size_t i = 0; i < count; ++i) {
    affine[i] = {to_float(spec.scale_format, load_scale(spec, scales, first + i)), zero_points[first + i], codes.qmin,
                 codes.qmax};
  }
}

template <class Element>
void quantize_panel(const Spec& spec, const Layout& layout, const Kernels& kernels, const Element* x, std::size_t first,
                    std::size_t count, const void* scales, const std::int32_t* zero_points, void* codes,
                    Counts& counts) {
  Element buffer[kPanel * kPiece];
  std::uint8_t code_buffer[kPanel * kPiece];
  Affine affine[kPanel];
  load_affine(spec, first, count, scales, zero_points, affine);
  auto* const bytes = static_cast<std::uint8_t*>(codes);
  for_each_piece(layout, first, count, [&](const Piece& piece) {
    const Element* const from = piece.gather(x, buffer);
    std::uint8_t* const to = piece.place(bytes, code_buffer);
    for (std::size_t i = 0; i < count; ++i) {
      as_floats(kernels, spec.input_format, from + i * kPiece, piece.size(),
                [&](const float* floats, std::size_t start, std::size_t n) {
                  kernels.quantize(floats, n, affine[i], to + i * kPiece + start, counts);
                });
    }
    piece.scatter(code_buffer, bytes);
  });
}

template <class Value>
void dequantize_panel(const Spec& spec, const Layout& layout, const Kernels& kernels, const void* codes,
                      std::size_t first, std::size_t count, const void* scales, const std::int32_t* zero_points,
                      Value* values) {
  Value buffer[kPanel * kPiece];
  std::uint8_t code_buffer[kPanel * kPiece];
  Affine affine[kPanel];
  load_affine(spec, first, count, scales, zero_points, affine);
  const auto* const bytes = static_cast<const std::uint8_t*>(codes);
  for_each_piece(layout, first, count, [&](const Piece& piece) {
    const std::uint8_t* const from = piece.gather(bytes, code_buffer);
    Value* const to = piece.place(values, buffer);
    for (std::size_t i = 0; i < count; ++i) {
      kernels.dequantize(from + i * kPiece, spec.is_signed, piece.size(), affine[i], spec.output_format,
                         to + i * kPiece);
    }
    piece.scatter(buffer, values);
  });
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- public

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

std::size_t element_count(const Layout& layout) {
  if (layout.kind == Layout::Kind::rows) return layout.rows * layout.cols;
  return layout.outer * layout.channels * layout.inner;
}

std::size_t block_count(const Layout& layout) {
  if (layout.kind == Layout::Kind::channels) return layout.channels;
  return layout.block == 0 ? 0 : layout.rows * blocks_per_row(layout);
}

const char* message(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::bad_spec:
      return "bits outside 2..8, or unsigned codes with symmetric or narrow_range";
    case Status::bad_layout:
      return "a block of 0 elements, or sizes whose product overflows";
    case Status::bad_scale:
      return "a scale is not positive and finite";
    case Status::bad_zero_point:
      return "a zero point is no code";
    case Status::bad_isa:
      return "no such instruction set";
    case Status::bad_overlap:
      return "an output shares memory with an input or another output";
  }
  return "unknown status";
}

const char* const* isas() { return kernel_list().names; }

const char* const* compiled_isas() { return kernel_list().compiled; }

Status choose_qparams(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                      Counts* counts, Isa isa) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status = check_apart({floats(spec.input_format, x, n)},
                                        {floats(spec.scale_format, scales, blocks), integers(zero_points, blocks)});
      status != Status::ok) {
    return status;
  }
  if (counts != nullptr) *counts = {};
  const Kernels& kernels = kernel_list().kernels[isa.index];
  const DefaultEnvironment environment;
  with_type(spec.input_format, x, [&](const auto* elements) {
    for_each_panel(layout, [&](std::size_t first, std::size_t count) {
      choose_panel(spec, layout, kernels, elements, first, count, scales, zero_points, counts);
    });
  });
  return Status::ok;
}

Status quantize(const Spec& spec, const Layout& layout, const void* x, const void* scales,
                const std::int32_t* zero_points, void* codes, Counts* counts, Isa isa) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status = check_apart(
          {floats(spec.input_format, x, n), floats(spec.scale_format, scales, blocks), integers(zero_points, blocks)},
          {bytes(codes, n)});
      status != Status::ok) {
    return status;
  }
  if (const Status status = check_qparams(spec, layout, scales, zero_points); status != Status::ok) return status;
  Counts found;
  const Kernels& kernels = kernel_list().kernels[isa.index];
  const DefaultEnvironment environment;
  with_type(spec.input_format, x, [&](const auto* elements) {
    for_each_panel(layout, [&](std::size_t first, std::size_t count) {
      quantize_panel(spec, layout, kernels, elements, first, count, scales, zero_points, codes, found);
    });
  });
  if (counts != nullptr) *counts = found;
  return Status::ok;
}

Status dequantize(const Spec& spec, const Layout& layout, const void* codes, const void* scales,
                  const std::int32_t* zero_points, void* values, Isa isa) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status =
          check_apart({bytes(codes, n), floats(spec.scale_format, scales, blocks), integers(zero_points, blocks)},
                      {floats(spec.output_format, values, n)});
      status != Status::ok) {
    return status;
  }
  if (const Status status = check_qparams(spec, layout, scales, zero_points); status != Status::ok) return status;
  const Kernels& kernels = kernel_list().kernels[isa.index];
  const DefaultEnvironment environment;
  with_type(spec.output_format, values, [&](auto* typed) {
    for_each_panel(layout, [&](std::size_t first, std::size_t count) {
      dequantize_panel(spec, layout, kernels, codes, first, count, scales, zero_points, typed);
    });
  });
  return Status::ok;
}

Status quantize_dynamic(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                        void* codes, Counts* counts, Isa isa) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status =
          check_apart({floats(spec.input_format, x, n)},
                      {floats(spec.scale_format, scales, blocks), integers(zero_points, blocks), bytes(codes, n)});
      status != Status::ok) {
    return status;
  }
  Counts found;
  const Kernels& kernels = kernel_list().kernels[isa.index];
  const DefaultEnvironment environment;
  with_type(spec.input_format, x, [&](const auto* elements) {
    for_each_panel(layout, [&](std::size_t first, std::size_t count) {
      choose_panel(spec, layout, kernels, elements, first, count, scales, zero_points, nullptr);
      quantize_panel(spec, layout, kernels, elements, first, count, scales, zero_points, codes, found);
    });
  });
  if (counts != nullptr) *counts = found;
  return Status::ok;
}

}  // namespace quantizer
