// The loops are plain whole-number arithmetic, exact by itself: the compiler vectorizes them for each instruction set.
#include "requantize.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "arguments.h"
#include "shares.h"

#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "requantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef QUANTIZER_REQUANTIZE_SHARED
#define QUANTIZER_REQUANTIZE_SHARED
namespace quantizer {

__extension__ typedef __int128 Int128;

/// One channel's constants, and the codes that it may give.
struct Channel {
  std::int64_t bias, zero_point, multiplier, divisor;
  int left, right;  // shift
  float scale;
  std::int64_t qmin, qmax;
};

}  // namespace quantizer
#endif

// No inline function of the standard library here: see kernels.cpp.
HWY_BEFORE_NAMESPACE();
namespace quantizer {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE T clamped(T value, T least, T most) {
  return value < least ? least : value > most ? most : value;
}

HWY_INLINE std::int64_t within_int32(std::int64_t value) { return clamped<std::int64_t>(value, INT32_MIN, INT32_MAX); }

// Each takes v and returns the rounded product, at most so far off beyond the codes that 64 bits hold it.

struct Exact {
  static HWY_INLINE std::int64_t rescaled(std::int64_t v, const Channel& c) {
    const Int128 product = Int128{v} * c.multiplier;
    Int128 floor = product / c.divisor;
    Int128 rest = product % c.divisor;
    if (rest < 0) {
      rest += c.divisor;
      --floor;
    }
    const Int128 twice = 2 * rest;
    const bool up = twice > c.divisor || (twice == c.divisor && floor % 2 != 0);
    return static_cast<std::int64_t>(clamped<Int128>(floor + (up ? 1 : 0), INT32_MIN, INT32_MAX));
  }
};

struct SingleRounding {
  static HWY_INLINE std::int64_t rescaled(std::int64_t v, const Channel& c) {
    // |v * multiplier| is at most 2^62, and half of the divisor at most 2^61.
    const int down = 31 - c.left + c.right;
    return (v * c.multiplier + (std::int64_t{1} << (down - 1))) >> down;
  }
};

struct DoubleRounding {
  static HWY_INLINE std::int64_t rescaled(std::int64_t v, const Channel& c) {
    const std::int64_t shifted = within_int32(v * (std::int64_t{1} << c.left));
    const std::int64_t high = (shifted * c.multiplier + (std::int64_t{1} << 30)) >> 31;
    const std::int64_t half = (std::int64_t{1} << c.right) >> 1;
    // Half away from zero: half up, but for negative numbers a hair less than half.
    return (high + half - (high < 0 && c.right > 0 ? 1 : 0)) >> c.right;
  }
};

struct FloatMultiplier {
  static HWY_INLINE std::int64_t rescaled(std::int64_t v, const Channel& c) {
    const float product = static_cast<float>(static_cast<std::int32_t>(v)) * c.scale;
    // Beyond these every code is reached; within them, adding 1.5 * 2^23 rounds to a whole number, half to even.
    const float bounded = clamped(product, -131072.0f, 131072.0f);
    return static_cast<std::int32_t>((bounded + 12582912.0f) - 12582912.0f);
  }
};

template <class How, class Code>
HWY_INLINE void requantize_run(const std::int32_t* accumulators, std::size_t n, const Channel& channel, Code* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t v = within_int32(std::int64_t{accumulators[i]} + channel.bias);
    const std::int64_t code = How::rescaled(v, channel) + channel.zero_point;
    codes[i] = static_cast<Code>(clamped(code, channel.qmin, channel.qmax));
  }
}

template <class How>
HWY_INLINE void requantize_as(const std::int32_t* accumulators, std::size_t n, const Channel& channel, int bits,
                              void* codes, std::size_t at) {
  // Codes of 8 bits are bytes, whichever their sign.
  if (bits == 16) {
    requantize_run<How>(accumulators + at, n, channel, static_cast<std::int16_t*>(codes) + at);
  } else {
    requantize_run<How>(accumulators + at, n, channel, static_cast<std::uint8_t*>(codes) + at);
  }
}

void requantize_channel(Requantization how, const std::int32_t* accumulators, std::size_t at, std::size_t n,
                        const Channel& channel, int bits, void* codes) {
  switch (how) {
    case Requantization::exact:
      return requantize_as<Exact>(accumulators, n, channel, bits, codes, at);
    case Requantization::fixed_single_rounding:
      return requantize_as<SingleRounding>(accumulators, n, channel, bits, codes, at);
    case Requantization::fixed_double_rounding:
      return requantize_as<DoubleRounding>(accumulators, n, channel, bits, codes, at);
    case Requantization::float_multiplier:
      return requantize_as<FloatMultiplier>(accumulators, n, channel, bits, codes, at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels.h"

namespace quantizer {
namespace {

HWY_EXPORT(requantize_channel);

/// By its pattern: the caller's environment may take a subnormal scale for 0.
bool is_positive_finite(float scale) {
  std::uint32_t pattern;
  std::memcpy(&pattern, &scale, sizeof pattern);
  return pattern != 0 && pattern < 0x7F800000u;
}

bool is_multiplier(Requantization how, const Rescale& r) {
  switch (how) {
    case Requantization::exact:
      return r.multiplier >= 0 && r.divisor >= 1;
    case Requantization::fixed_single_rounding:
    case Requantization::fixed_double_rounding:
      return r.multiplier >= 0 && r.multiplier <= INT32_MAX && r.shift >= -31 && r.shift <= 30;
    case Requantization::float_multiplier:
      return is_positive_finite(r.scale);
  }
  return false;
}

struct Range {
  std::int64_t qmin, qmax;
};
Range codes_of(const RequantizeSpec& spec) {
  if (spec.bits == 16) return {INT16_MIN, INT16_MAX};
  return spec.is_signed ? Range{-128, 127} : Range{0, 255};
}

Status check(const RequantizeSpec& spec, const Layout& layout, const Rescale* rescales, Isa isa) {
  if (spec.bits != 8 && !(spec.bits == 16 && spec.is_signed)) return Status::bad_spec;
  if (layout.kind != Layout::Kind::channels || !is_layout(layout)) return Status::bad_layout;
  if (!is_isa(isa)) return Status::bad_isa;
  const Range codes = codes_of(spec);
  for (std::size_t channel = 0; channel < layout.channels; ++channel) {
    const Rescale& r = rescales[channel];
    if (!is_multiplier(spec.requantization, r)) return Status::bad_multiplier;
    if (r.zero_point < codes.qmin || r.zero_point > codes.qmax) return Status::bad_zero_point;
  }
  return Status::ok;
}

Channel channel_of(const Rescale& r, Range codes) {
  return {r.bias,  r.zero_point, r.multiplier, r.divisor, r.shift > 0 ? r.shift : 0, r.shift < 0 ? -r.shift : 0,
          r.scale, codes.qmin,   codes.qmax};
}

}  // namespace

Status requantize(const RequantizeSpec& spec, const Layout& layout, const std::int32_t* accumulators,
                  const Rescale* rescales, void* codes, Isa isa, const Executor* executor) {
  if (const Status status = check(spec, layout, rescales, isa); status != Status::ok) return status;
  const std::size_t n = element_count(layout);
  if (const Status status = check_apart({array(accumulators, n), array(rescales, layout.channels)},
                                        {bytes(codes, n * static_cast<std::size_t>(spec.bits) / 8)});
      status != Status::ok) {
    return status;
  }
  const auto kernel = HWY_DISPATCH_TABLE(requantize_channel)[dispatch_index(isa)];
  for_each_share(shares_of(n, kRun, n, executor), executor, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end;) {
      const std::size_t run = std::min(layout.inner - at % layout.inner, end - at);
      const Channel channel = channel_of(rescales[at / layout.inner % layout.channels], codes_of(spec));
      kernel(spec.requantization, accumulators, at, run, channel, spec.bits, codes);
      at += run;
    }
  });
  return Status::ok;
}

}  // namespace quantizer
#endif  // HWY_ONCE
