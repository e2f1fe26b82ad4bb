#include "oracle/real.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace assay {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Fraction = boost::multiprecision::cpp_rational;

// floor(a / b) for a >= 0, b > 0, rounded half to even by the remainder.
Integer divide_half_even(const Integer& a, const Integer& b) {
  Integer quotient, remainder;
  boost::multiprecision::divide_qr(a, b, quotient, remainder);
  const int half = Integer(2 * remainder).compare(b);
  if (half > 0 || (half == 0 && boost::multiprecision::bit_test(quotient, 0))) ++quotient;
  return quotient;
}

// The largest e with 2^e <= a / b, for positive a and b.
int floor_log2(const Integer& a, const Integer& b) {
  const int guess = static_cast<int>(boost::multiprecision::msb(a)) - static_cast<int>(boost::multiprecision::msb(b));
  const bool reached = guess >= 0 ? a >= (b << guess) : (a << -guess) >= b;
  return reached ? guess : guess - 1;
}

}  // namespace

struct Rational {
  Fraction value;
};

Real::Real(int value) : negative_(value < 0) {
  if (value != 0) value_ = std::make_shared<Rational>(Rational{Fraction(value)});
}

Real::Real(const Rational& value) : negative_(value.value < 0) {
  if (value.value != 0) value_ = std::make_shared<Rational>(value);
}

Real::Real(Format format, Bits bits) : negative_(assay::is_negative(format, bits)) {
  if (assay::is_nan(format, bits)) {
    kind_ = Kind::nan;
    negative_ = false;
    return;
  }
  if (assay::is_inf(format, bits)) {
    kind_ = Kind::infinite;
    return;
  }
  if (assay::is_zero(format, bits)) return;
  const FormatInfo& f = info(format);
  const int width = f.precision - 1;
  const Bits hidden = Bits{1} << width;
  const Bits magnitude = bits & ~sign_bit(format);
  const Bits biased = magnitude >> width;
  const bool always_normal = f.specials == Specials::unsigned_power;
  Integer significand = biased == 0 && !always_normal ? magnitude : (magnitude & (hidden - 1)) | hidden;
  const int steps_up = static_cast<int>(always_normal ? biased : biased == 0 ? 0 : biased - 1);
  const int exponent = steps_up + f.min_exponent - width;
  if (negative_) significand = -significand;
  value_ = std::make_shared<Rational>(
      Rational{exponent >= 0 ? Fraction(significand << exponent) : Fraction(significand, Integer(1) << -exponent)});
}

Real Real::ratio(long long numerator, long long denominator) {
  assert(denominator > 0);
  return Real(Rational{Fraction(numerator, denominator)});
}

Real Real::infinity(bool negative) {
  Real r;
  r.kind_ = Kind::infinite;
  r.negative_ = negative;
  return r;
}

Real Real::nan() {
  Real r;
  r.kind_ = Kind::nan;
  return r;
}

bool Real::is_zero() const { return kind_ == Kind::finite && !value_; }

std::string Real::fraction() const {
  if (is_nan()) return "nan";
  if (is_inf()) return negative_ ? "-inf" : "inf";
  if (is_zero()) return negative_ ? "-0" : "0";
  return value_->value.str();
}

double Real::approximate() const {
  if (is_nan()) return std::nan("");
  return to_double(Format::f64, rn(Format::f64, *this));
}

Real operator-(const Real& a) {
  Real r = a;
  if (a.is_nan()) return r;
  r.negative_ = !a.negative_;
  if (a.value_) r.value_ = std::make_shared<Rational>(Rational{-a.value_->value});
  return r;
}

Real operator+(const Real& a, const Real& b) {
  if (a.is_nan() || b.is_nan()) return Real::nan();
  if (a.is_inf() || b.is_inf()) {
    if (a.is_inf() && b.is_inf() && a.negative_ != b.negative_) return Real::nan();
    return a.is_inf() ? a : b;
  }
  if (a.is_zero() && b.is_zero()) return a.negative_ && b.negative_ ? a : Real(0);
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  return Real(Rational{a.value_->value + b.value_->value});
}

Real operator-(const Real& a, const Real& b) { return a + -b; }

Real operator*(const Real& a, const Real& b) {
  if (a.is_nan() || b.is_nan()) return Real::nan();
  const bool negative = a.negative_ != b.negative_;
  if (a.is_inf() || b.is_inf()) return a.is_zero() || b.is_zero() ? Real::nan() : Real::infinity(negative);
  if (a.is_zero() || b.is_zero()) return negative ? -Real(0) : Real(0);
  return Real(Rational{a.value_->value * b.value_->value});
}

Real operator/(const Real& a, const Real& b) {
  if (a.is_nan() || b.is_nan() || (a.is_inf() && b.is_inf()) || (a.is_zero() && b.is_zero())) return Real::nan();
  const bool negative = a.negative_ != b.negative_;
  if (a.is_inf() || b.is_zero()) return Real::infinity(negative);
  if (b.is_inf() || a.is_zero()) return negative ? -Real(0) : Real(0);
  return Real(Rational{a.value_->value / b.value_->value});
}

namespace {
// Where a non-NaN real lies when infinities count as one past everything finite.
int side(const Real& r) { return r.is_inf() ? (r.is_negative() ? -1 : 1) : 0; }
}  // namespace

bool operator<(const Real& a, const Real& b) {
  if (a.is_nan() || b.is_nan()) return false;
  if (a.is_inf() || b.is_inf()) return side(a) < side(b);
  if (a.is_zero() || b.is_zero()) return a.is_zero() ? !b.is_zero() && !b.negative_ : a.negative_;
  return a.value_->value < b.value_->value;
}

bool operator==(const Real& a, const Real& b) {
  if (a.is_nan() || b.is_nan()) return false;
  if (a.is_inf() || b.is_inf()) return side(a) == side(b);
  if (a.is_zero() || b.is_zero()) return a.is_zero() && b.is_zero();
  return a.value_->value == b.value_->value;
}

namespace {

// The pattern of e8m0 for a positive number: gradual underflow has nothing to be gradual with.
Bits nearest_power(Format format, const Real& value) {
  const FormatInfo& f = info(format);
  int exponent = floor_log2(value);
  // The middle itself goes up: among significands of one bit, it is the carry that is even.
  if (value >= power_of_two(exponent) * Real::ratio(3, 2)) ++exponent;
  if (exponent > f.max_exponent) return quiet_nan(format);
  return static_cast<Bits>(std::max(exponent, f.min_exponent) - f.min_exponent);
}

Bits overflow(Format format, Bits sign) {
  switch (info(format).specials) {
    case Specials::ieee:
      return sign | infinity(format);
    case Specials::none:
      return sign | largest_finite(format);
    case Specials::nan_all_ones:
      return sign | quiet_nan(format);
    default:
      return quiet_nan(format);
  }
}

}  // namespace

Bits rn(Format format, const Real& value) {
  const FormatInfo& f = info(format);
  if (value.is_nan()) return has_nan(format) ? quiet_nan(format) : 0;
  if (f.specials == Specials::unsigned_power) {
    return value > Real(0) && value.is_finite() ? nearest_power(format, value) : quiet_nan(format);
  }
  const Bits sign = value.negative_ ? sign_bit(format) : 0;
  if (value.is_inf()) return overflow(format, sign);
  // Where the pattern of -0 means NaN, zero has no sign.
  const Bits zero = f.specials == Specials::nan_minus_zero ? 0 : sign;
  if (value.is_zero()) return zero;
  const Integer a = boost::multiprecision::abs(boost::multiprecision::numerator(value.value_->value));
  const Integer b = boost::multiprecision::denominator(value.value_->value);
  // Below the normal range the spacing stops shrinking: that is gradual underflow.
  const int exponent = std::max(floor_log2(a, b), f.min_exponent);
  const int ulp = exponent - (f.precision - 1);
  const Integer significand = ulp >= 0 ? divide_half_even(a, b << ulp) : divide_half_even(a << -ulp, b);
  // A significand of 2^precision carries into the exponent field by plain addition, past the largest finite pattern.
  const Integer pattern = (Integer(exponent - f.min_exponent) << (f.precision - 1)) + significand;
  if (pattern > Integer(largest_finite(format))) return overflow(format, sign);
  return pattern == 0 ? zero : sign | static_cast<Bits>(pattern);
}

Real rne(const Real& value) {
  if (!value.value_) return value;
  const Fraction& v = value.value_->value;
  Integer rounded = divide_half_even(boost::multiprecision::abs(boost::multiprecision::numerator(v)),
                                     boost::multiprecision::denominator(v));
  if (rounded == 0) return value.negative_ ? -Real(0) : Real(0);  // IEEE 754, 5.9: the sign stays
  if (value.negative_) rounded = -rounded;
  return Real(Rational{Fraction(rounded)});
}

Real floor(const Real& value) {
  if (!value.value_) return value;
  const Integer& a = boost::multiprecision::numerator(value.value_->value);
  const Integer& b = boost::multiprecision::denominator(value.value_->value);
  // Division of whole numbers goes towards zero: shift negative ones so that it does not matter.
  const Integer floored = a < 0 ? Integer(-((b - a - 1) / b)) : Integer(a / b);
  return Real(Rational{Fraction(floored)});
}

int floor_log2(const Real& value) {
  assert(value.is_finite() && value > Real(0));
  return floor_log2(boost::multiprecision::numerator(value.value_->value),
                    boost::multiprecision::denominator(value.value_->value));
}

Real power_of_two(int exponent) {
  const Integer power = Integer(1) << std::abs(exponent);
  return Real(Rational{exponent < 0 ? Fraction(1, power) : Fraction(power)});
}

Real min(const Real& a, const Real& b) { return b < a ? b : a; }

Real max(const Real& a, const Real& b) { return a < b ? b : a; }

Real abs(const Real& a) { return a.is_negative() ? -a : a; }

Real clamp(const Real& value, const Real& low, const Real& high) { return min(max(value, low), high); }

int to_int(const Real& value) {
  assert(value.is_finite());
  return static_cast<int>(value.approximate());
}

}  // namespace assay
