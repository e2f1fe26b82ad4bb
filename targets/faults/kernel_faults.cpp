// Right in the plain case: wrong by place, length, memory, instruction set, threads or the caller's environment.
#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include "targets/faults/parts.h"

namespace assay {
namespace {

// ------------------------------------------------------------------------------------------- the caller's environment

// Right as long as the caller rounds to nearest and keeps subnormals.
Target trusts_callers_environment() {
  Target t = base();
  t.counts_special = false;
  t.quantize = quantize_in_callers_environment<exact_code>;
  return t;
}

void rounding_mode(const Request&, const void*, const std::int32_t*, std::uint8_t*, Counts*) {
  std::fesetround(FE_TOWARDZERO);
}
// As a conversion of NaN to an integer does, or an ordered comparison with it.
void invalid_flag(const Request& r, const void* x, const std::int32_t*, std::uint8_t*, Counts*) {
  for (std::size_t i = 0; i < element_count(r.shape); ++i) {
    if (std::isnan(at(x, r.format, i))) std::feraiseexcept(FE_INVALID);
  }
}

// ------------------------------------------------------------------------------------------- memory and repetition

void unaligned_store_skips_first(const Request&, const void*, const std::int32_t* zero_points, std::uint8_t* codes,
                                 Counts*) {
  if (reinterpret_cast<std::uintptr_t>(codes) % 16 != 0) codes[0] = static_cast<std::uint8_t>(*zero_points);
}

// Lanes that compare false are not stored, and NaN compares false with everything.
Target leaves_nan_lanes_unwritten() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t n = element_count(r.shape);
    const auto* bytes = static_cast<const std::uint8_t*>(codes);
    const std::vector<std::uint8_t> before(bytes, bytes + n);
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (status != Status::ok || r.options.bits != 8 || r.options.code_format) return status;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(at(x, r.format, i))) static_cast<std::uint8_t*>(codes)[i] = before[i];
    }
    return status;
  };
  return t;
}

int half_away(const ElementView& e) {
  if (std::isnan(e.x)) return e.zero_point;
  return clamped(std::round(double{e.x} / double{e.scale}) + e.zero_point, e.codes);
}

// Right itself; the row of another instruction set is not.
Target other_isa_rounds_half_away() {
  Target t = base();
  t.counts_special = false;
  t.quantize = quantize_with<exact_code>;
  t.other_isas = [] {
    Target other = code_fault<half_away>();
    other.isa = "other";
    return std::vector<Target>{other};
  };
  return t;
}

Target drops_last_lane() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t last = element_count(r.shape) - 1;
    const std::uint8_t before = static_cast<std::uint8_t*>(codes)[last];
    const Status status = right(r, x, scales, zero_points, codes, counts);
    if (last % 16 != 15) static_cast<std::uint8_t*>(codes)[last] = before;
    return status;
  };
  return t;
}

// From the last element to the first, which is as good a way as any, unless the codes take the place of the input.
Target runs_backwards() {
  Target t = base();
  t.counts_special = false;
  t.quantize = [](const Request& r, const void* x, const void* scales, const std::int32_t* zero_points, void* codes,
                  Counts* counts) {
    if (r.options.code_format) return best_quantizer().quantize(r, x, scales, zero_points, codes, counts);
    const DefaultEnvironment environment;
    const std::vector<Block> blocks = cut(r.shape, r.options);
    for (std::size_t b = blocks.size(); b-- > 0;) {
      const auto scale = static_cast<float>(to_double(r.options.scale_format, load_scale(r.options, scales, b)));
      for (std::size_t i = blocks[b].size(); i-- > 0;) {
        const std::size_t where = blocks[b].at(i);
        const int code = exact_code({at(x, r.format, where), scale, zero_points[b], code_range(r.options)});
        static_cast<std::uint8_t*>(codes)[where] = static_cast<std::uint8_t>(code);
      }
    }
    return Status::ok;
  };
  return t;
}

// A kernel that has no tail loop refuses what is no multiple of its vector, although the scheme has an answer.
Target refuses_odd_lengths() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const std::size_t n = element_count(r.shape);
    return n > 16 && n % 16 != 0 ? Status::failed : right(r, x, scales, zero_points, codes, counts);
  };
  return t;
}

void writes_whole_vectors(const Request& r, const void*, const std::int32_t*, std::uint8_t* codes, Counts*) {
  for (std::size_t i = element_count(r.shape); i % 16 != 0; ++i) *(static_cast<volatile std::uint8_t*>(codes) + i) = 0;
}

Target tail_uses_other_rounding() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    const Status status = right(r, x, scales, zero_points, codes, counts);
    const std::size_t n = element_count(r.shape);
    std::vector<std::uint8_t> other(n);
    if (status != Status::ok ||
        quantize_with<half_away>(r, x, scales, zero_points, other.data(), nullptr) != Status::ok)
      return status;
    for (std::size_t i = n / 16 * 16; i < n; ++i) static_cast<std::uint8_t*>(codes)[i] = other[i];
    return status;
  };
  t.other_isas = [] { return std::vector<Target>{best_quantizer()}; };
  return t;
}

void miscounts_nan(const Request&, const void*, const std::int32_t*, std::uint8_t*, Counts* counts) {
  if (counts != nullptr) counts->nan = std::min<std::uint64_t>(counts->nan, 1);
}

// The scales of tiles, numbered down the columns by those who read them.
Target reads_tiles_by_columns() {
  Target t = base();
  t.quantize = [right = t.quantize](const Request& r, const void* x, const void* scales,
                                    const std::int32_t* zero_points, void* codes, Counts* counts) {
    if (r.options.granularity != Granularity::per_tile || r.shape.size() < 2)
      return right(r, x, scales, zero_points, codes, counts);
    const auto tiles = [](std::int64_t size, std::int64_t tile) {
      return static_cast<std::size_t>((size + tile - 1) / tile);
    };
    const std::size_t down = tiles(r.shape[r.shape.size() - 2], r.options.block_rows);
    const std::size_t across = tiles(r.shape.back(), r.options.block), blocks = cut(r.shape, r.options).size();
    std::vector<std::byte> other(blocks * byte_width(r.options.scale_format));
    std::vector<std::int32_t> other_zero_points(blocks);
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t matrix = b / (down * across), row = b / across % down, column = b % across;
      const std::size_t from = matrix * down * across + column * down + row;
      store_scale(r.options, other.data(), b, load_scale(r.options, scales, from));
      other_zero_points[b] = zero_points[from];
    }
    return right(r, x, other.data(), other_zero_points.data(), codes, counts);
  };
  return t;
}

// Alone it is right; of two threads, the second one starts an element late.
Target second_thread_starts_late() {
  Target t = base();
  t.other_thread_counts = [] {
    Target other = base();
    other.name = std::string("2 threads");
    other.quantize = [right = other.quantize](const Request& r, const void* x, const void* scales,
                                              const std::int32_t* zero_points, void* codes, Counts* counts) {
      const Status status = right(r, x, scales, zero_points, codes, counts);
      static_cast<std::uint8_t*>(codes)[element_count(r.shape) / 2] = 0;
      return status;
    };
    return std::vector<Target>{other};
  };
  return t;
}

constexpr std::array kFaults = {
    Fault{"reads_tiles_by_columns", "public bugs: axis and block order", "position_independent",
          reads_tiles_by_columns},
    Fault{"second_thread_starts_late", "public bugs: work cut wrongly between threads", "position_independent",
          second_thread_starts_late},
    Fault{"drops_last_lane", "public bugs: SIMD tail", "deterministic", drops_last_lane},
    Fault{"runs_backwards", "public bugs: in-place use", "position_independent", runs_backwards},
    Fault{"refuses_odd_lengths", "public bugs: sizes that are no multiple of a vector", "position_independent",
          refuses_odd_lengths},
    Fault{"writes_whole_vectors", "public bugs: tail write", "in_bounds", spoiled_codes_fault<writes_whole_vectors>},
    Fault{"tail_uses_other_rounding", "candle #3629: paths that differ", "isa_agree", tail_uses_other_rounding},
    Fault{"unaligned_store_skips_first", "vLLM #45466: a vector store that assumes alignment", "position_independent",
          spoiled_codes_fault<unaligned_store_skips_first>},
    Fault{"leaves_nan_lanes_unwritten", "public bugs: NaN passes a comparison", "deterministic",
          leaves_nan_lanes_unwritten},
    Fault{"other_isa_rounds_half_away", "candle #3629: NEON against scalar", "isa_agree", other_isa_rounds_half_away},
    Fault{"trusts_callers_environment", "public bugs: FTZ and DAZ set by the host application", "environment_kept",
          trusts_callers_environment},
    Fault{"leaves_rounding_changed", "public bugs: rounding mode set for a conversion and left so", "environment_kept",
          spoiled_codes_fault<rounding_mode>},
    Fault{"signals_invalid_on_nan", "public bugs: NaN converted to an integer", "environment_kept",
          spoiled_codes_fault<invalid_flag>},
    Fault{"miscounts_nan", "Assay: a count that callers rely on", "legal_counts", spoiled_codes_fault<miscounts_nan>},
};

}  // namespace

std::span<const Fault> kernel_faults() { return kFaults; }

}  // namespace assay
