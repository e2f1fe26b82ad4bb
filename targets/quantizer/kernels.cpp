// The loops over elements, compiled once per instruction set.
//
// Why the codes are exact. Let s be the scale, h = s/2, x finite, [b, t] = [qmin - zero_point, qmax - zero_point]
// (which holds 0, and |b|, |t| <= 255). ulp(v) is the distance of neighbouring floats in the binade of v.
//   1. Prescaling makes 2^-100 <= s <= 2^100, so nothing below overflows or loses bits to gradual underflow; see Step.
//   2. k = clamp(rne(x * rn(1/s)), b, t) is a guess. The product has a relative error below 2^-22 and, where the clamp
//      does not act, a magnitude below 256: it is less than 2^-14 off x/s, so k is at most one off, and only if x/s is
//      within 2^-14 of a half. Where the clamp acts, k is the end code that x is beyond, or nearly.
//   3. D = x - k*s exactly, d the computed remainder. Claim: d < h, d = h, d > h just as D is, and so for -h. So d
//   decides
//      exactly between k and its neighbours, what is a tie, and what is out of reach (D > h at k = t, D < -h at k = b).
//   Proof with a fused multiply-add, d = rn(D). Rounding is monotone and h is a float, so only "D != h but rn(D) = h"
//   has to be excluded.
//      |x| >= s: x, s and so D are multiples of ulp(s); h is a multiple of ulp(h) = ulp(s)/2. So D and h are ulp(h)
//      apart
//        or more, and h +- ulp(h) are floats (or, below a power of two, separated from h by one).
//      |x| < s: then |k| <= 1. k = 0: D = x is a float. |k| = 1 and |x| >= h: Sterbenz, D is a float. |k| = 1 and
//        |x| < h is a wrong guess: x * rn(1/s) rounds up to 1/2, which takes (h - |x|)/h <= 1.5 * 2^-24 (1 + 2^-22),
//        less than 1.5 ulp(h); if s is a power of two, rn(1/s) and the product are exact and it cannot happen; else |x|
//        = h - ulp(h) in the binade of h, and |D| = h + ulp(h) is a float.
//   Proof without, s = s_hi + s_lo, s_hi the upper 16 bits of the significand: k*s_hi has at most 24 bits and k*s_lo at
//   most 16, so both are exact, and d = rn(rn(A) - k*s_lo) with A = x - k*s_hi. If A is a float then d = rn(D): as
//   above.
//      |x| >= s: A is a multiple of ulp(s). If it is no float, |A| > 2^24 ulp(s) > s, and |k*s_lo| < 2^-7 s leaves |d|
//      > h
//        with the sign of A and of D.
//      |x| < s: k = 0 is plain. |k| = 1 and |x| >= h: s_hi/2 <= |x| < s <= 2 s_hi, Sterbenz. The wrong guess: |A| =
//        h + ulp(h) - s_lo is a multiple of ulp(h) of at most h + ulp(h).
//   4. An infinite x gives an infinite d, which reads as out of reach; NaN fails every comparison. So "|d| < h" in all
//      lanes proves at once that no lane is a tie, wrong, out of reach, infinite or NaN, and k stands.
#include "kernels.h"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "quantizer.h"

#define HWY_COMPILE_ALL_ATTAINABLE  // the scalar set too, where a better one is the baseline
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// In this namespace everything is compiled for one instruction set. It uses no inline function of the standard library:
// the linker may keep that copy for the whole program, which would then fail on older machines.
HWY_BEFORE_NAMESPACE();
namespace quantizer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(FLT_EVAL_METHOD == 0, "the proof above needs float operations that round to float");

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using VF = hn::Vec<F32>;

// 1.5 * 2^23: floats around it are the integers, so adding it rounds to an integer (half to even), and, as it is a
// multiple of 256, the low byte of the sum's pattern is that integer's low byte.
constexpr float kInteger = 12582912.0f;
constexpr std::int32_t kIntegerBits = 0x4B400000;

// One block's constants. Outside [2^-100, 2^100] scale and elements are first multiplied by 2^100 or 2^-100. That is
// exact, but for an element that overflows, which was more than 2^127 scales away from 0 and is out of reach as
// infinity too; and for one that underflows, which stays below half a scale and has k = 0 either way.
struct Step {
  float prescale;
  float scale, scale_hi, scale_lo;
  float inverse, half;
  float
      shift;  ///< kInteger + zero_point: ties of the guess go astray if zero_point is odd, but they are settled anyway
  float least, greatest;
  std::int32_t zero_point;
};

HWY_INLINE Step make_step(const Affine& affine) {
  Step step;
  step.prescale = affine.scale < 0x1p-100f ? 0x1p100f : affine.scale > 0x1p100f ? 0x1p-100f : 1.0f;
  step.scale = affine.scale * step.prescale;
  std::uint32_t bits;
  std::memcpy(&bits, &step.scale, sizeof bits);
  bits &= 0xFFFFFF00u;
  std::memcpy(&step.scale_hi, &bits, sizeof bits);
  step.scale_lo = step.scale - step.scale_hi;
  step.inverse = 1.0f / step.scale;
  step.half = 0.5f * step.scale;
  step.shift = kInteger + static_cast<float>(affine.zero_point);
  step.least = static_cast<float>(affine.qmin - affine.zero_point);
  step.greatest = static_cast<float>(affine.qmax - affine.zero_point);
  step.zero_point = affine.zero_point;
  return step;
}

/// Returns k + zero_point + kInteger, and the remainder d.
template <bool kPrescale>
HWY_INLINE VF guess(const Step& step, VF x, VF& remainder) {
  const F32 f32;
  if constexpr (kPrescale) x = hn::Mul(x, hn::Set(f32, step.prescale));
  const VF quotient = hn::Mul(x, hn::Set(f32, step.inverse));
  const VF bounded = hn::Min(hn::Max(quotient, hn::Set(f32, step.least)), hn::Set(f32, step.greatest));
  const VF shifted = hn::Add(bounded, hn::Set(f32, step.shift));
  const VF k = hn::Sub(shifted, hn::Set(f32, step.shift));
#if HWY_NATIVE_FMA
  remainder = hn::NegMulAdd(k, hn::Set(f32, step.scale), x);
#else
  remainder = hn::Sub(hn::Sub(x, hn::Mul(k, hn::Set(f32, step.scale_hi))), hn::Mul(k, hn::Set(f32, step.scale_lo)));
#endif
  return shifted;
}

HWY_INLINE hn::Mask<F32> settled(const Step& step, VF remainder) {
  return hn::Lt(hn::Abs(remainder), hn::Set(F32(), step.half));
}

/// How many elements to do first so that vectors are aligned after. Vectors as long as a cache line otherwise straddle
/// two with every load, which halves the speed of reading. Not worth it for few elements.
HWY_INLINE std::size_t misaligned_head(const float* x, std::size_t n) {
  const std::size_t lanes = hn::Lanes(F32());
  const std::size_t past = reinterpret_cast<std::uintptr_t>(x) / sizeof(float) % lanes;
  return past == 0 || n < 16 * lanes ? 0 : lanes - past;
}

template <class V>
HWY_INLINE void store_low_bytes(V integers, std::uint8_t* to) {
  hn::StoreU(hn::TruncateTo(U8(), hn::BitCast(U32(), integers)), U8(), to);
}

/// The rare lanes: ties, wrong guesses, out of reach, not finite.
HWY_INLINE void settle(const Step& step, VF x, VF shifted, VF remainder, std::uint8_t* code, Counts& counts) {
  const F32 f32;
  const I32 i32;
  const auto one = hn::Set(i32, 1);
  const auto least = hn::Set(i32, static_cast<std::int32_t>(step.least));
  const auto greatest = hn::Set(i32, static_cast<std::int32_t>(step.greatest));
  const VF half = hn::Set(f32, step.half);
  const VF minus_half = hn::Set(f32, -step.half);
  const auto guessed = hn::Sub(hn::BitCast(i32, shifted), hn::Set(i32, kIntegerBits + step.zero_point));

  const auto odd = hn::Eq(hn::And(guessed, one), one);
  const auto above = hn::RebindMask(i32, hn::Gt(remainder, half));
  const auto below = hn::RebindMask(i32, hn::Lt(remainder, minus_half));
  const auto up = hn::Or(above, hn::And(odd, hn::RebindMask(i32, hn::Eq(remainder, half))));
  const auto down = hn::Or(below, hn::And(odd, hn::RebindMask(i32, hn::Eq(remainder, minus_half))));
  auto k = hn::Add(guessed, hn::IfThenElseZero(up, one));
  k = hn::Sub(k, hn::IfThenElseZero(down, one));
  k = hn::Min(hn::Max(k, least), greatest);
  const auto nan = hn::IsNaN(x);  // not Ne(x, x): Highway 1.0.3 compares ordered on AVX, so NaN is not unequal there
  k = hn::IfThenZeroElse(hn::RebindMask(i32, nan), k);
  store_low_bytes(hn::Add(k, hn::Set(i32, step.zero_point)), code);

  const auto infinite = hn::Eq(hn::Abs(x), hn::Inf(f32));
  const auto out_of_reach = hn::Or(hn::And(above, hn::Eq(guessed, greatest)), hn::And(below, hn::Eq(guessed, least)));
  const std::size_t infinities = hn::CountTrue(f32, infinite);
  counts.nan += hn::CountTrue(f32, nan);
  counts.inf += infinities;
  counts.saturated += hn::CountTrue(i32, out_of_reach) - infinities;  // an infinite x is out of reach: see 4.
}

template <bool kPrescale>
HWY_INLINE void quantize_vector(const Step& step, const float* x, std::uint8_t* codes, Counts& counts) {
  const F32 f32;
  const VF v = hn::LoadU(f32, x);
  VF remainder;
  const VF shifted = guess<kPrescale>(step, v, remainder);
  if (HWY_LIKELY(hn::AllTrue(f32, settled(step, remainder)))) {
    store_low_bytes(shifted, codes);
  } else {
    settle(step, v, shifted, remainder, codes, counts);
  }
}

/// Fewer elements than a vector.
template <bool kPrescale>
HWY_INLINE void quantize_part(const Step& step, const float* x, std::size_t n, std::uint8_t* codes, Counts& counts) {
  if (n == 0) return;
  HWY_ALIGN float part[hn::MaxLanes(F32())] = {};  // the padding, 0, is an ordinary element and counts as nothing
  HWY_ALIGN std::uint8_t part_codes[hn::MaxLanes(F32())];
  std::memcpy(part, x, n * sizeof(float));
  quantize_vector<kPrescale>(step, part, part_codes, counts);
  std::memcpy(codes, part_codes, n);
}

template <bool kPrescale>
HWY_INLINE void quantize_all(const Step& step, const float* x, std::size_t n, std::uint8_t* codes, Counts& counts) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32);
  std::size_t i = misaligned_head(x, n);
  quantize_part<kPrescale>(step, x, i, codes, counts);
  for (; n - i >= 4 * lanes; i += 4 * lanes) {
    VF remainder0, remainder1, remainder2, remainder3;
    const VF shifted0 = guess<kPrescale>(step, hn::LoadU(f32, x + i), remainder0);
    const VF shifted1 = guess<kPrescale>(step, hn::LoadU(f32, x + i + lanes), remainder1);
    const VF shifted2 = guess<kPrescale>(step, hn::LoadU(f32, x + i + 2 * lanes), remainder2);
    const VF shifted3 = guess<kPrescale>(step, hn::LoadU(f32, x + i + 3 * lanes), remainder3);
    const auto all = hn::And(hn::And(settled(step, remainder0), settled(step, remainder1)),
                             hn::And(settled(step, remainder2), settled(step, remainder3)));
    if (HWY_LIKELY(hn::AllTrue(f32, all))) {
      store_low_bytes(shifted0, codes + i);
      store_low_bytes(shifted1, codes + i + lanes);
      store_low_bytes(shifted2, codes + i + 2 * lanes);
      store_low_bytes(shifted3, codes + i + 3 * lanes);
    } else {
      for (std::size_t j = i; j < i + 4 * lanes; j += lanes) {
        quantize_vector<kPrescale>(step, x + j, codes + j, counts);
      }
    }
  }
  for (; n - i >= lanes; i += lanes) quantize_vector<kPrescale>(step, x + i, codes + i, counts);
  quantize_part<kPrescale>(step, x + i, n - i, codes + i, counts);
}

void quantize(const float* x, std::size_t n, const Affine& affine, std::uint8_t* codes, Counts& counts) {
  const Step step = make_step(affine);
  if (step.prescale == 1.0f) {
    quantize_all<false>(step, x, n, codes, counts);
  } else {
    quantize_all<true>(step, x, n, codes, counts);
  }
}

HWY_INLINE void extend_by_vector(const float* x, VF& hi, VF& lo, Range& range) {
  const F32 f32;
  VF v = hn::LoadU(f32, x);
  const auto finite = hn::Lt(hn::Abs(v), hn::Inf(f32));
  if (HWY_UNLIKELY(!hn::AllTrue(f32, finite))) {
    range.nan += hn::CountTrue(f32, hn::IsNaN(v));
    range.inf += hn::CountTrue(f32, hn::Eq(hn::Abs(v), hn::Inf(f32)));
    v = hn::IfThenElseZero(finite, v);
  }
  hi = hn::Max(hi, v);
  lo = hn::Min(lo, v);
}

/// Fewer elements than a vector.
HWY_INLINE void extend_by_part(const float* x, std::size_t n, VF& hi, VF& lo, Range& range) {
  if (n == 0) return;
  HWY_ALIGN float part[hn::MaxLanes(F32())] = {};  // 0 is within every range
  std::memcpy(part, x, n * sizeof(float));
  extend_by_vector(part, hi, lo, range);
}

/// n is a multiple of 4 vectors. Returns false, with hi and lo as they were, if some element is not finite: that shows
/// in the sum of x * 0, which is 0 exactly if all are.
HWY_INLINE bool extend_if_finite(const float* x, std::size_t n, VF& hi, VF& lo) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32);
  const VF zero = hn::Zero(f32);
  VF hi0 = hi, hi1 = zero, hi2 = zero, hi3 = zero;
  VF lo0 = lo, lo1 = zero, lo2 = zero, lo3 = zero;
  VF sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    const VF v0 = hn::LoadU(f32, x + i);
    const VF v1 = hn::LoadU(f32, x + i + lanes);
    const VF v2 = hn::LoadU(f32, x + i + 2 * lanes);
    const VF v3 = hn::LoadU(f32, x + i + 3 * lanes);
    hi0 = hn::Max(hi0, v0), lo0 = hn::Min(lo0, v0), sum0 = hn::MulAdd(v0, zero, sum0);
    hi1 = hn::Max(hi1, v1), lo1 = hn::Min(lo1, v1), sum1 = hn::MulAdd(v1, zero, sum1);
    hi2 = hn::Max(hi2, v2), lo2 = hn::Min(lo2, v2), sum2 = hn::MulAdd(v2, zero, sum2);
    hi3 = hn::Max(hi3, v3), lo3 = hn::Min(lo3, v3), sum3 = hn::MulAdd(v3, zero, sum3);
  }
  const VF sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  if (HWY_UNLIKELY(!hn::AllTrue(f32, hn::Eq(sum, zero)))) return false;
  hi = hn::Max(hn::Max(hi0, hi1), hn::Max(hi2, hi3));
  lo = hn::Min(hn::Min(lo0, lo1), hn::Min(lo2, lo3));
  return true;
}

void extend_range(const float* x, std::size_t n, Range& range) {
  const F32 f32;
  const std::size_t lanes = hn::Lanes(f32);
  VF hi = hn::Set(f32, range.hi);
  VF lo = hn::Set(f32, range.lo);
  std::size_t i = misaligned_head(x, n);
  extend_by_part(x, i, hi, lo, range);
  while (n - i >= lanes) {
    // Short enough to be read again from the nearest cache.
    const std::size_t chunk = (n - i < 64 * lanes ? (n - i) / (4 * lanes) * 4 : 64) * lanes;
    if (chunk != 0 && HWY_LIKELY(extend_if_finite(x + i, chunk, hi, lo))) {
      i += chunk;
      continue;
    }
    for (const std::size_t end = i + (chunk != 0 ? chunk : lanes); i < end; i += lanes) {
      extend_by_vector(x + i, hi, lo, range);
    }
  }
  extend_by_part(x + i, n - i, hi, lo, range);
  range.hi = hn::GetLane(hn::MaxOfLanes(f32, hi));
  range.lo = hn::GetLane(hn::MinOfLanes(f32, lo));
}

/// code - zero_point as a float: exact, and at most 255 in magnitude.
template <class Byte>
HWY_INLINE VF steps_of(const Byte* codes, const Affine& affine) {
  const I32 i32;
  const hn::Rebind<Byte, F32> bytes;
  const auto code = hn::PromoteTo(i32, hn::LoadU(bytes, codes));
  return hn::ConvertTo(F32(), hn::Sub(code, hn::Set(i32, affine.zero_point)));
}

HWY_INLINE VF bounded(VF value) {
  const F32 f32;
  return hn::Min(hn::Max(value, hn::Set(f32, -FLT_MAX)), hn::Set(f32, FLT_MAX));
}

/// k * scale rounded to odd: exact, or the neighbour whose last bit is 1. A second rounding, to a format with at least
/// two bits less, then gives what one rounding of the exact product gives: the odd bit stands for all that was cut off.
/// Where there is no fused multiply-add, the scale is split as in Step, so that both partial products are exact; their
/// distances from the rounded product are, too.
HWY_INLINE VF product_to_odd(VF k, const Affine& affine) {
  const F32 f32;
  const I32 i32;
  const VF scale = hn::Set(f32, affine.scale);
  const VF product = bounded(hn::Mul(k, scale));
#if HWY_NATIVE_FMA
  const VF error = hn::MulSub(k, scale, product);
#else
  const VF scale_hi = hn::BitCast(f32, hn::And(hn::BitCast(i32, scale), hn::Set(i32, ~0xFF)));
  const VF scale_lo = hn::Sub(scale, scale_hi);
  const VF error = hn::Add(hn::Sub(hn::Mul(k, scale_hi), product), hn::Mul(k, scale_lo));
#endif
  const auto bits = hn::BitCast(i32, product);
  const auto one = hn::Set(i32, 1);
  // FLT_MAX, in place of a product that overflowed, is odd and stays.
  const auto even = hn::Eq(hn::And(bits, one), hn::Zero(i32));
  const auto exact = hn::RebindMask(i32, hn::Eq(error, hn::Zero(f32)));
  const auto away = hn::Xor(bits, hn::BitCast(i32, error));  // negative: the exact product is nearer to 0
  const auto outward = hn::Or(hn::ShiftRight<31>(away), one);
  const auto move = hn::IfThenZeroElse(exact, hn::IfThenElseZero(even, outward));
  return hn::BitCast(f32, hn::Add(bits, move));
}

/// The upper half of the pattern, half to even; what would be infinite is the largest finite value.
HWY_INLINE hn::Vec<I32> to_bf16(VF value) {
  const I32 i32;
  const auto bits = hn::BitCast(i32, value);
  const auto sign = hn::And(bits, hn::Set(i32, static_cast<std::int32_t>(0x80000000u)));
  const auto magnitude = hn::Xor(bits, sign);
  const auto last = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(i32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(i32, 0x7FFF)), last));
  return hn::Or(hn::Min(rounded, hn::Set(i32, 0x7F7F)), hn::And(hn::ShiftRight<16>(sign), hn::Set(i32, 0x8000)));
}

HWY_INLINE hn::Vec<I32> to_f16(VF value) {
  const F32 f32;
  const I32 i32;
  const auto bits = hn::BitCast(i32, value);
  const auto sign = hn::And(bits, hn::Set(i32, static_cast<std::int32_t>(0x80000000u)));
  const auto magnitude = hn::Xor(bits, sign);
  const auto last = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(i32, 1));
  const auto normal =
      hn::Sub(hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(i32, 0xFFF)), last)), hn::Set(i32, 112 << 10));
  // Floats around 1/2 are 2^-24 apart, as the subnormals of f16 are: the addition rounds as they need it.
  const VF half = hn::Set(f32, 0.5f);
  const auto subnormal = hn::Sub(hn::BitCast(i32, hn::Add(hn::Abs(value), half)), hn::BitCast(i32, half));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(i32, 113 << 23));
  const auto rounded = hn::Min(hn::IfThenElse(is_subnormal, subnormal, normal), hn::Set(i32, 0x7BFF));
  return hn::Or(rounded, hn::And(hn::ShiftRight<16>(sign), hn::Set(i32, 0x8000)));
}

/// What a vector of values becomes in each format.
struct AsF32 {
  using Value = float;
  template <class Byte>
  static HWY_INLINE void store(const Byte* codes, const Affine& affine, float* values) {
    const F32 f32;
    hn::StoreU(bounded(hn::Mul(steps_of(codes, affine), hn::Set(f32, affine.scale))), f32, values);
  }
};
template <hn::Vec<I32> (*kNarrow)(VF)>
struct AsNarrow {
  using Value = std::uint16_t;
  template <class Byte>
  static HWY_INLINE void store(const Byte* codes, const Affine& affine, std::uint16_t* values) {
    const hn::Rebind<std::uint16_t, F32> u16;
    hn::StoreU(hn::DemoteTo(u16, kNarrow(product_to_odd(steps_of(codes, affine), affine))), u16, values);
  }
};

template <class As, class Byte>
HWY_INLINE void dequantize_all(const Byte* codes, std::size_t n, const Affine& affine, void* to) {
  using Value = typename As::Value;
  auto* const values = static_cast<Value*>(to);
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; n - i >= 4 * lanes; i += 4 * lanes) {
    As::store(codes + i, affine, values + i);
    As::store(codes + i + lanes, affine, values + i + lanes);
    As::store(codes + i + 2 * lanes, affine, values + i + 2 * lanes);
    As::store(codes + i + 3 * lanes, affine, values + i + 3 * lanes);
  }
  for (; n - i >= lanes; i += lanes) As::store(codes + i, affine, values + i);
  if (i < n) {
    HWY_ALIGN Byte rest[hn::MaxLanes(F32())] = {};
    HWY_ALIGN Value rest_values[hn::MaxLanes(F32())];
    std::memcpy(rest, codes + i, n - i);
    As::store(rest, affine, rest_values);
    std::memcpy(values + i, rest_values, (n - i) * sizeof(Value));
  }
}

template <class As>
HWY_INLINE void dequantize_as(const std::uint8_t* codes, bool is_signed, std::size_t n, const Affine& affine,
                              void* values) {
  if (is_signed) {
    dequantize_all<As>(reinterpret_cast<const std::int8_t*>(codes), n, affine, values);
  } else {
    dequantize_all<As>(codes, n, affine, values);
  }
}

void dequantize(const std::uint8_t* codes, bool is_signed, std::size_t n, const Affine& affine, FloatFormat format,
                void* values) {
  switch (format) {
    case FloatFormat::f32:
      return dequantize_as<AsF32>(codes, is_signed, n, affine, values);
    case FloatFormat::f16:
      return dequantize_as<AsNarrow<to_f16>>(codes, is_signed, n, affine, values);
    default:
      return dequantize_as<AsNarrow<to_bf16>>(codes, is_signed, n, affine, values);
  }
}

/// Exact. The exponent of f16 is moved by a multiplication, which takes subnormals along; infinities and NaN keep an
/// exponent of all ones.
HWY_INLINE void widen_vector(const std::uint16_t* from, bool is_f16, float* to) {
  const F32 f32;
  const I32 i32;
  const hn::Rebind<std::uint16_t, F32> u16;
  const auto half = hn::PromoteTo(i32, hn::LoadU(u16, from));
  if (!is_f16) {
    hn::StoreU(hn::BitCast(f32, hn::ShiftLeft<16>(half)), f32, to);
    return;
  }
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(i32, 0x8000)));
  const auto magnitude = hn::And(half, hn::Set(i32, 0x7FFF));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto finite = hn::BitCast(i32, hn::Mul(hn::BitCast(f32, shifted), hn::Set(f32, 0x1p112f)));
  const auto special = hn::Or(shifted, hn::Set(i32, 0x7F800000));
  const auto is_special = hn::Gt(magnitude, hn::Set(i32, 0x7BFF));
  hn::StoreU(hn::BitCast(f32, hn::Or(sign, hn::IfThenElse(is_special, special, finite))), f32, to);
}

void widen(const std::uint16_t* from, FloatFormat format, std::size_t n, float* to) {
  const bool is_f16 = format == FloatFormat::f16;
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) widen_vector(from + i, is_f16, to + i);
  if (i < n) {
    HWY_ALIGN std::uint16_t rest[hn::MaxLanes(F32())] = {};
    HWY_ALIGN float rest_values[hn::MaxLanes(F32())];
    std::memcpy(rest, from + i, (n - i) * sizeof(std::uint16_t));
    widen_vector(rest, is_f16, rest_values);
    std::memcpy(to + i, rest_values, (n - i) * sizeof(float));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quantizer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quantizer {
namespace {

HWY_EXPORT(extend_range);
HWY_EXPORT(quantize);
HWY_EXPORT(dequantize);
HWY_EXPORT(widen);

/// The name lives as long as the list, which is made once: `index` is the name's place in it.
const char* lower_case_name(std::int64_t target, int index) {
  if (target == HWY_SCALAR || target == HWY_EMU128) return "scalar";  // which of the two exists depends on the compiler
  static char names[KernelList::kCapacity][16];
  const char* const from = hwy::TargetName(target);
  const std::size_t length = std::min(std::strlen(from), sizeof names[0] - 1);
  for (std::size_t i = 0; i < length; ++i) {
    names[index][i] = from[i] >= 'A' && from[i] <= 'Z' ? static_cast<char>(from[i] - 'A' + 'a') : from[i];
  }
  return names[index];
}

KernelList make_kernel_list() {
  KernelList list = {};
  // The machine always runs the baseline, and the library's own idea of a fallback may be that of another compiler.
  const std::int64_t runnable = hwy::SupportedTargets() | HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
  int compiled = 0;
  for (std::int64_t targets = HWY_TARGETS; targets != 0 && compiled < KernelList::kCapacity; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    const char* const name = list.compiled[compiled] = lower_case_name(target, compiled);
    ++compiled;
    if ((target & runnable) == 0) continue;
    hwy::ChosenTarget chosen;  // local: which one a call uses must not depend on what others chose
    chosen.Update(target);
    const std::size_t index = (HWY_TARGETS & (HWY_TARGETS - 1)) == 0 ? 0 : chosen.GetIndex();
    list.names[list.size] = name;
    list.kernels[list.size] = {name,
                               index,
                               HWY_DISPATCH_TABLE(extend_range)[index],
                               HWY_DISPATCH_TABLE(quantize)[index],
                               HWY_DISPATCH_TABLE(dequantize)[index],
                               HWY_DISPATCH_TABLE(widen)[index]};
    ++list.size;
  }
  return list;
}

}  // namespace

const KernelList& kernel_list() {
  static const KernelList list = make_kernel_list();
  return list;
}

bool is_isa(Isa isa) { return isa.index >= 0 && isa.index < kernel_list().size; }

std::size_t dispatch_index(Isa isa) { return kernel_list().kernels[isa.index].dispatch_index; }

}  // namespace quantizer
#endif  // HWY_ONCE
