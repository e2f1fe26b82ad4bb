// Extended exact reals: a finite rational, +0 or -0, +infinity, -infinity or NaN, with the arithmetic of IEEE 754 but
// without rounding. The number library behind it stays in real.cpp.
#pragma once

#include <memory>
#include <string>

#include "oracle/spec.h"

namespace assay {

struct Rational;  // defined in real.cpp

class Real {
 public:
  Real(int value = 0);             // NOLINT(google-explicit-constructor): formulas mix reals with whole numbers
  Real(Format format, Bits bits);  ///< exactly the number that the pattern stands for
  static Real ratio(long long numerator, long long denominator);  ///< denominator > 0
  static Real infinity(bool negative);
  static Real nan();

  bool is_nan() const { return kind_ == Kind::nan; }
  bool is_inf() const { return kind_ == Kind::infinite; }
  bool is_finite() const { return kind_ == Kind::finite; }
  bool is_zero() const;
  bool is_negative() const { return negative_; }  ///< true for -0

  /// "3/8", "-5", "-0", "inf", "nan".
  std::string fraction() const;
  /// Rounded once to the nearest double, for printing.
  double approximate() const;

  friend Real operator-(const Real& a);
  friend Real operator+(const Real& a, const Real& b);
  friend Real operator-(const Real& a, const Real& b);
  friend Real operator*(const Real& a, const Real& b);
  friend Real operator/(const Real& a, const Real& b);
  /// As numbers: -0 equals +0, and any comparison with NaN is false.
  friend bool operator<(const Real& a, const Real& b);
  friend bool operator==(const Real& a, const Real& b);
  friend bool operator>(const Real& a, const Real& b) { return b < a; }
  friend bool operator<=(const Real& a, const Real& b) { return a < b || a == b; }
  friend bool operator>=(const Real& a, const Real& b) { return b <= a; }

  friend Bits rn(Format format, const Real& value);
  friend Real rne(const Real& value);
  friend Real floor(const Real& value);
  friend int floor_log2(const Real& value);
  friend Real power_of_two(int exponent);

 private:
  enum class Kind : std::uint8_t { finite, infinite, nan };
  explicit Real(const Rational& value);

  Kind kind_ = Kind::finite;
  bool negative_ = false;
  std::shared_ptr<const Rational> value_;  // null for zeros, infinities and NaN
};

/// THE rounding function: half to even, gradual underflow; the sign of a real that rounds to zero is kept, where the
/// format has a -0. Overflow gives infinity; without one, NaN; without either, the largest finite number. NaN in a
/// format that has none is 0. e8m0 has neither sign nor zero: what is not positive is NaN, and what is smaller than
/// 2^-127 is 2^-127. Every other rounding of this suite is defined by this one and by rne.
Bits rn(Format format, const Real& value);
/// To a whole number, half to even; infinities, zeros and NaN stay what they are, and so does the sign of what rounds
/// to zero.
Real rne(const Real& value);

/// The largest whole number that is not above the value; infinities, zeros and NaN stay what they are.
Real floor(const Real& value);
/// The largest e with 2^e <= value, for a positive finite value.
int floor_log2(const Real& value);
Real power_of_two(int exponent);

Real min(const Real& a, const Real& b);
Real max(const Real& a, const Real& b);
Real abs(const Real& a);
Real clamp(const Real& value, const Real& low, const Real& high);
/// A finite whole number that fits an int.
int to_int(const Real& value);

}  // namespace assay
