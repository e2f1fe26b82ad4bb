#include "quantizer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "arguments.h"
#include "environment.h"
#include "float_codes.h"
#include "kernels.h"
#include "qparams.h"
#include "shares.h"
#include "walk.h"

namespace quantizer {
namespace {

// ---------------------------------------------------------------------------------------------------- checks

bool has_float_codes(const Spec& spec) { return spec.code_format != CodeFormat::integer; }

bool is_number_format(FloatFormat format) {
  return format == FloatFormat::f32 || format == FloatFormat::f16 || format == FloatFormat::bf16;
}

bool is_positive_finite_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return bits != 0 && bits < 0x7F800000u;
}

bool is_spec(const Spec& spec) {
  if (!is_number_format(spec.input_format) || !is_number_format(spec.output_format)) return false;
  switch (spec.scheme) {
    case Scheme::symmetric:
    case Scheme::asymmetric:
      if (has_float_codes(spec) || !is_number_format(spec.scale_format) || spec.bits < 2 || spec.bits > 8) return false;
      return spec.is_signed || (spec.scheme != Scheme::symmetric && !spec.narrow_range);
    case Scheme::floating:
      return has_float_codes(spec) && is_number_format(spec.scale_format);
    case Scheme::mx:
      return has_float_codes(spec) && spec.scale_format == FloatFormat::e8m0;
    case Scheme::nvfp4:
      return spec.code_format == CodeFormat::e2m1 && spec.scale_format == FloatFormat::e4m3fn &&
             is_positive_finite_float(spec.tensor_scale);
  }
  return false;
}

Status check(const Spec& spec, const Layout& layout, Isa isa) {
  if (!is_spec(spec)) return Status::bad_spec;
  if (!is_layout(layout)) return Status::bad_layout;
  return is_isa(isa) ? Status::ok : Status::bad_isa;
}

std::size_t width_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::f32:
      return 4;
    case FloatFormat::f16:
    case FloatFormat::bf16:
      return 2;
    default:
      return 1;
  }
}

Extent floats(FloatFormat format, const void* start, std::size_t n) { return {start, n * width_of(format)}; }

// ---------------------------------------------------------------------------------------------------- scales

Pattern load_scale(const Spec& spec, const void* scales, std::size_t block) {
  Pattern pattern = 0;  // the machine is little-endian, or the narrower ones would land at its upper end
  const std::size_t width = width_of(spec.scale_format);
  const auto* const from = static_cast<const unsigned char*>(scales) + block * width;
  for (std::size_t i = 0; i < width; ++i) pattern |= Pattern{from[i]} << (8 * i);
  return pattern;
}

void store_scale(const Spec& spec, void* scales, std::size_t block, Pattern scale) {
  const std::size_t width = width_of(spec.scale_format);
  auto* const to = static_cast<unsigned char*>(scales) + block * width;
  for (std::size_t i = 0; i < width; ++i) to[i] = static_cast<unsigned char>(scale >> (8 * i));
}

bool is_zero_point(const Spec& spec, std::int32_t zero_point) {
  if (has_float_codes(spec)) return zero_point == 0;
  const CodeRange codes = code_range(spec);
  return zero_point >= codes.qmin && zero_point <= codes.qmax;
}

Status check_qparams(const Spec& spec, const Layout& layout, const void* scales, const std::int32_t* zero_points) {
  for (std::size_t block = 0; block < block_count(layout); ++block) {
    if (!is_positive_finite(spec.scale_format, load_scale(spec, scales, block))) return Status::bad_scale;
    if (!is_zero_point(spec, zero_points[block])) return Status::bad_zero_point;
  }
  return Status::ok;
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

// What every panel of a call shares.
struct Call {
  const Spec& spec;
  const Layout& layout;
  Isa isa;
  const Kernels& kernels;
};

/// One block's parameters, for whichever kind of codes.
struct BlockScale {
  Affine affine;
  FloatBlock floats;
};

BlockScale load_block(const Spec& spec, std::size_t block, const void* scales, const std::int32_t* zero_points) {
  const Pattern scale = load_scale(spec, scales, block);
  if (has_float_codes(spec)) return {{}, {spec.code_format, scale_in_full(spec, scale)}};
  const CodeRange codes = code_range(spec);
  return {{to_float(spec.scale_format, scale), zero_points[block], codes.qmin, codes.qmax}, {}};
}

template <class Element>
void extend_range(const Call& call, const Element* x, std::size_t n, Range& range) {
  as_floats(call.kernels, call.spec.input_format, x, n, [&](const float* elements, std::size_t, std::size_t size) {
    call.kernels.extend_range(elements, size, range);
  });
}

template <class Element>
std::size_t count_out_of_reach(const Call& call, const QParams& chosen, const Element* x, std::size_t n) {
  std::size_t count = 0;
  as_floats(call.kernels, call.spec.input_format, x, n, [&](const float* elements, std::size_t, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) count += out_of_reach(call.spec, chosen, elements[i]) ? 1 : 0;
  });
  return count;
}

template <class Element>
void quantize_run(const Call& call, const Element* x, std::size_t n, const BlockScale& block, std::uint8_t* codes,
                  Counts& counts) {
  as_floats(call.kernels, call.spec.input_format, x, n,
            [&](const float* elements, std::size_t start, std::size_t size) {
              if (has_float_codes(call.spec)) {
                quantize_to_floats(call.isa, elements, size, block.floats, codes + start, counts);
              } else {
                call.kernels.quantize(elements, size, block.affine, codes + start, counts);
              }
            });
}

void dequantize_run(const Call& call, const std::uint8_t* codes, std::size_t n, const BlockScale& block, void* values) {
  if (has_float_codes(call.spec)) {
    dequantize_floats(call.isa, codes, n, block.floats, call.spec.output_format, values);
  } else {
    call.kernels.dequantize(codes, call.spec.is_signed, n, block.affine, call.spec.output_format, values);
  }
}

template <class Element>
void choose_panel(const Call& call, const Element* x, std::size_t first, std::size_t count, void* scales,
                  std::int32_t* zero_points, Counts* counts) {
  Element buffer[kPanel * kPiece];
  Range ranges[kPanel];
  std::fill_n(ranges, count, Range{});  // not all: a panel is mostly one block, which may be short
  for_each_piece(call.layout, first, count, [&](const Piece& piece) {
    const Element* const elements = piece.gather(x, buffer);
    for (std::size_t i = 0; i < count; ++i) extend_range(call, elements + i * kPiece, piece.size(), ranges[i]);
  });
  for (std::size_t i = 0; i < count; ++i) {
    const QParams chosen = choose(call.spec, ranges[i].hi, ranges[i].lo);
    store_scale(call.spec, scales, first + i, chosen.scale);
    zero_points[first + i] = chosen.zero_point;
    if (counts == nullptr) continue;
    counts->nan += ranges[i].nan;
    counts->inf += ranges[i].inf;
    if (!chosen.saturates) continue;
    for_each_piece(call.layout, first + i, 1, [&](const Piece& piece) {
      counts->saturated += count_out_of_reach(call, chosen, piece.gather(x, buffer), piece.size());
    });
  }
}

template <class Element>
void quantize_panel(const Call& call, const Element* x, std::size_t first, std::size_t count, const void* scales,
                    const std::int32_t* zero_points, void* codes, Counts& counts) {
  Element buffer[kPanel * kPiece];
  std::uint8_t code_buffer[kPanel * kPiece];
  BlockScale blocks[kPanel];
  for (std::size_t i = 0; i < count; ++i) blocks[i] = load_block(call.spec, first + i, scales, zero_points);
  auto* const bytes = static_cast<std::uint8_t*>(codes);
  for_each_piece(call.layout, first, count, [&](const Piece& piece) {
    const Element* const from = piece.gather(x, buffer);
    std::uint8_t* const to = piece.place(bytes, code_buffer);
    for (std::size_t i = 0; i < count; ++i)
      quantize_run(call, from + i * kPiece, piece.size(), blocks[i], to + i * kPiece, counts);
    piece.scatter(code_buffer, bytes);
  });
}

template <class Value>
void dequantize_panel(const Call& call, const void* codes, std::size_t first, std::size_t count, const void* scales,
                      const std::int32_t* zero_points, Value* values) {
  Value buffer[kPanel * kPiece];
  std::uint8_t code_buffer[kPanel * kPiece];
  BlockScale blocks[kPanel];
  for (std::size_t i = 0; i < count; ++i) blocks[i] = load_block(call.spec, first + i, scales, zero_points);
  const auto* const bytes = static_cast<const std::uint8_t*>(codes);
  for_each_piece(call.layout, first, count, [&](const Piece& piece) {
    const std::uint8_t* const from = piece.gather(bytes, code_buffer);
    Value* const to = piece.place(values, buffer);
    for (std::size_t i = 0; i < count; ++i)
      dequantize_run(call, from + i * kPiece, piece.size(), blocks[i], to + i * kPiece);
    piece.scatter(buffer, values);
  });
}

// ---------------------------------------------------------------------------------------------------- shares

/// As for_each_share, with work(begin, end, counts); the sum of what is counted.
template <class Work>
Counts in_shares(const Shares& shares, const Executor* executor, Work work) {
  Counts counted[kShares] = {};
  for_each_share(shares, executor,
                 [&](std::size_t share, std::size_t begin, std::size_t end) { work(begin, end, counted[share]); });
  Counts sum;
  for (std::size_t share = 0; share < shares.count; ++share) {
    sum.nan += counted[share].nan;
    sum.inf += counted[share].inf;
    sum.saturated += counted[share].saturated;
  }
  return sum;
}

/// One block of consecutive elements: shares are of elements, not of blocks.
bool is_one_run(const Layout& layout) {
  return layout.kind == Layout::Kind::channels && layout.channels == 1 && layout.outer == 1;
}

Shares shares_of_blocks(const Layout& layout, const Executor* executor) {
  return shares_of(block_count(layout), panel_size(layout), element_count(layout), executor);
}

/// Whichever of two numbers of one sign lies farther from 0. By patterns: floats would be compared in the caller's
/// environment, where subnormals may count as 0.
float farther(float a, float b) {
  const auto magnitude = [](float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu; };
  return magnitude(a) < magnitude(b) ? b : a;
}

/// Of consecutive elements, found share by share.
template <class Element>
Range range_of_run(const Call& call, const Element* x, std::size_t n, const Executor* executor) {
  const Shares shares = shares_of(n, kRun, n, executor);
  Range ranges[kShares] = {};
  in_shares(shares, executor, [&](std::size_t begin, std::size_t end, Counts&) {
    extend_range(call, x + begin, end - begin, ranges[begin / std::max<std::size_t>(shares.size, 1)]);
  });
  Range all = {};
  for (std::size_t share = 0; share < shares.count; ++share) {
    all.hi = farther(all.hi, ranges[share].hi);
    all.lo = farther(all.lo, ranges[share].lo);
    all.nan += ranges[share].nan;
    all.inf += ranges[share].inf;
  }
  return all;
}

template <class Element>
Counts choose_run(const Call& call, const Element* x, std::size_t n, void* scales, std::int32_t* zero_points,
                  const Executor* executor) {
  const Range range = range_of_run(call, x, n, executor);
  const QParams chosen = choose(call.spec, range.hi, range.lo);
  store_scale(call.spec, scales, 0, chosen.scale);
  zero_points[0] = chosen.zero_point;
  Counts counts = {range.nan, range.inf, 0};
  if (!chosen.saturates) return counts;
  counts.saturated =
      in_shares(shares_of(n, kRun, n, executor), executor, [&](std::size_t begin, std::size_t end, Counts& counted) {
        counted.saturated += count_out_of_reach(call, chosen, x + begin, end - begin);
      }).saturated;
  return counts;
}

template <class Element>
Counts quantize_whole_run(const Call& call, const Element* x, std::size_t n, const void* scales,
                          const std::int32_t* zero_points, void* codes, const Executor* executor) {
  const BlockScale block = load_block(call.spec, 0, scales, zero_points);
  return in_shares(shares_of(n, kRun, n, executor), executor, [&](std::size_t begin, std::size_t end, Counts& counts) {
    quantize_run(call, x + begin, end - begin, block, static_cast<std::uint8_t*>(codes) + begin, counts);
  });
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- public

const char* const* isas() { return kernel_list().names; }

const char* const* compiled_isas() { return kernel_list().compiled; }

Status choose_tensor_scale(const Spec& spec, std::size_t n, const void* x, float* tensor_scale, Isa isa,
                           const Executor* executor) {
  const Layout layout = per_tensor(n);
  Spec any_scale = spec;  // the one that is asked for
  any_scale.tensor_scale = 1;
  if (spec.scheme != Scheme::nvfp4) return Status::bad_spec;
  if (const Status status = check(any_scale, layout, isa); status != Status::ok) return status;
  if (const Status status = check_apart({floats(spec.input_format, x, n)}, {array(tensor_scale, 1)});
      status != Status::ok) {
    return status;
  }
  const Call call{spec, layout, isa, kernel_list().kernels[isa.index]};
  with_type(spec.input_format, x, [&](const auto* elements) {
    const Range range = range_of_run(call, elements, n, executor);
    *tensor_scale = tensor_scale_for(farther(range.hi, range.lo));
  });
  return Status::ok;
}

Status choose_qparams(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                      Counts* counts, Isa isa, const Executor* executor) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status = check_apart({floats(spec.input_format, x, n)},
                                        {floats(spec.scale_format, scales, blocks), array(zero_points, blocks)});
      status != Status::ok) {
    return status;
  }
  const Call call{spec, layout, isa, kernel_list().kernels[isa.index]};
  Counts found;
  with_type(spec.input_format, x, [&](const auto* elements) {
    if (is_one_run(layout)) {
      found = choose_run(call, elements, n, scales, zero_points, executor);
      return;
    }
    found = in_shares(shares_of_blocks(layout, executor), executor,
                      [&](std::size_t begin, std::size_t end, Counts& counted) {
                        for_each_panel(layout, begin, end, [&](std::size_t first, std::size_t count) {
                          choose_panel(call, elements, first, count, scales, zero_points, &counted);
                        });
                      });
  });
  if (counts != nullptr) *counts = found;
  return Status::ok;
}

Status quantize(const Spec& spec, const Layout& layout, const void* x, const void* scales,
                const std::int32_t* zero_points, void* codes, Counts* counts, Isa isa, const Executor* executor) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status = check_apart(
          {floats(spec.input_format, x, n), floats(spec.scale_format, scales, blocks), array(zero_points, blocks)},
          {bytes(codes, n)});
      status != Status::ok) {
    return status;
  }
  if (const Status status = check_qparams(spec, layout, scales, zero_points); status != Status::ok) return status;
  const Call call{spec, layout, isa, kernel_list().kernels[isa.index]};
  Counts found;
  with_type(spec.input_format, x, [&](const auto* elements) {
    if (is_one_run(layout)) {
      found = quantize_whole_run(call, elements, n, scales, zero_points, codes, executor);
      return;
    }
    found = in_shares(shares_of_blocks(layout, executor), executor,
                      [&](std::size_t begin, std::size_t end, Counts& counted) {
                        for_each_panel(layout, begin, end, [&](std::size_t first, std::size_t count) {
                          quantize_panel(call, elements, first, count, scales, zero_points, codes, counted);
                        });
                      });
  });
  if (counts != nullptr) *counts = found;
  return Status::ok;
}

Status dequantize(const Spec& spec, const Layout& layout, const void* codes, const void* scales,
                  const std::int32_t* zero_points, void* values, Isa isa, const Executor* executor) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status =
          check_apart({bytes(codes, n), floats(spec.scale_format, scales, blocks), array(zero_points, blocks)},
                      {floats(spec.output_format, values, n)});
      status != Status::ok) {
    return status;
  }
  if (const Status status = check_qparams(spec, layout, scales, zero_points); status != Status::ok) return status;
  const Call call{spec, layout, isa, kernel_list().kernels[isa.index]};
  with_type(spec.output_format, values, [&](auto* typed) {
    if (is_one_run(layout)) {
      const BlockScale block = load_block(spec, 0, scales, zero_points);
      in_shares(shares_of(n, kRun, n, executor), executor, [&](std::size_t begin, std::size_t end, Counts&) {
        dequantize_run(call, static_cast<const std::uint8_t*>(codes) + begin, end - begin, block, typed + begin);
      });
      return;
    }
    in_shares(shares_of_blocks(layout, executor), executor, [&](std::size_t begin, std::size_t end, Counts&) {
      for_each_panel(layout, begin, end, [&](std::size_t first, std::size_t count) {
        dequantize_panel(call, codes, first, count, scales, zero_points, typed);
      });
    });
  });
  return Status::ok;
}

Status quantize_dynamic(const Spec& spec, const Layout& layout, const void* x, void* scales, std::int32_t* zero_points,
                        void* codes, Counts* counts, Isa isa, const Executor* executor) {
  if (const Status status = check(spec, layout, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout), blocks = block_count(layout);
  if (const Status status =
          check_apart({floats(spec.input_format, x, n)},
                      {floats(spec.scale_format, scales, blocks), array(zero_points, blocks), bytes(codes, n)});
      status != Status::ok) {
    return status;
  }
  const Call call{spec, layout, isa, kernel_list().kernels[isa.index]};
  Counts found;
  with_type(spec.input_format, x, [&](const auto* elements) {
    if (is_one_run(layout)) {
      choose_run(call, elements, n, scales, zero_points, executor);
      found = quantize_whole_run(call, elements, n, scales, zero_points, codes, executor);
      return;
    }
    found = in_shares(shares_of_blocks(layout, executor), executor,
                      [&](std::size_t begin, std::size_t end, Counts& counted) {
                        for_each_panel(layout, begin, end, [&](std::size_t first, std::size_t count) {
                          choose_panel(call, elements, first, count, scales, zero_points, nullptr);
                          quantize_panel(call, elements, first, count, scales, zero_points, codes, counted);
                        });
                      });
  });
  if (counts != nullptr) *counts = found;
  return Status::ok;
}

}  // namespace quantizer
