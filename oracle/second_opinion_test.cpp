// A second arithmetic under the oracle's: random expressions, computed by Real and by GMP and MPFR. Numbers come from
// GMP's rationals; signs of zero, infinities and NaN from MPFR, which follows IEEE 754; rounding to a format from MPFR,
// with the format's exponents and its gradual underflow. The two share nothing but the table of formats.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <boost/multiprecision/gmp.hpp>
#include <cstdlib>
#include <random>

#include "oracle/real.h"

namespace assay {
namespace {

using Rational = boost::multiprecision::mpq_rational;
using Integer = boost::multiprecision::mpz_int;

// An MPFR number that cleans up after itself.
class Float {
 public:
  explicit Float(int precision) { mpfr_init2(value_, precision); }
  Float(const Float& other) {
    mpfr_init2(value_, mpfr_get_prec(other.value_));
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  Float& operator=(const Float&) = delete;
  ~Float() { mpfr_clear(value_); }
  operator mpfr_ptr() { return value_; }
  operator mpfr_srcptr() const { return value_; }

 private:
  mpfr_t value_;
};

// `number` is exact and counts where `kind` is finite. `kind` is the same number with few digits, so zero, infinite or
// NaN, and of the sign, that IEEE 754 demands.
struct Second {
  Rational number;
  Float kind = Float(2);
};

bool has_number(const Second& a) { return mpfr_number_p(a.kind) && !mpfr_zero_p(a.kind); }

Second exactly(const Rational& number) {
  Second r{number};
  mpfr_set_q(r.kind, number.backend().data(), MPFR_RNDZ);
  return r;
}

// A finite result is what GMP says, unless that is zero: then its sign is MPFR's.
template <typename Kind>
Second combined(const Second& a, const Second& b, const Rational& number, Kind kind) {
  if (has_number(a) && has_number(b) && number != 0) return exactly(number);
  Second r;
  kind(r.kind, a.kind, b.kind, MPFR_RNDN);
  if (has_number(r)) return exactly(number);
  return r;
}

Second add(const Second& a, const Second& b) { return combined(a, b, a.number + b.number, mpfr_add); }
Second subtract(const Second& a, const Second& b) { return combined(a, b, a.number - b.number, mpfr_sub); }
Second multiply(const Second& a, const Second& b) { return combined(a, b, a.number * b.number, mpfr_mul); }
Second divide(const Second& a, const Second& b) {
  return combined(a, b, b.number == 0 ? Rational(0) : Rational(a.number / b.number), mpfr_div);
}

Second negate(const Second& a) {
  Second r{-a.number, a.kind};
  mpfr_neg(r.kind, a.kind, MPFR_RNDN);
  return r;
}

Second absolute(const Second& a) { return mpfr_signbit(a.kind) ? negate(a) : a; }

bool less(const Second& a, const Second& b) {
  return has_number(a) && has_number(b) ? a.number < b.number : mpfr_less_p(a.kind, b.kind) != 0;
}

bool equal(const Second& a, const Second& b) {
  return has_number(a) && has_number(b) ? a.number == b.number : mpfr_equal_p(a.kind, b.kind) != 0;
}

Second whole(const Second& a, const Integer& rounded) {
  if (rounded != 0) return exactly(Rational(rounded));
  Second r;
  mpfr_set_zero(r.kind, mpfr_signbit(a.kind) ? -1 : 1);
  return r;
}

Integer floor_of(const Rational& number) {
  Integer floored;
  mpz_fdiv_q(floored.backend().data(), Integer(numerator(number)).backend().data(),
             Integer(denominator(number)).backend().data());
  return floored;
}

Second floor_of(const Second& a) { return has_number(a) ? whole(a, floor_of(a.number)) : a; }

Second nearest_even(const Second& a) {
  if (!has_number(a)) return a;
  const Rational doubled = a.number * 2;
  Integer up = floor_of(Rational(a.number + Rational(1, 2)));
  const bool tie = denominator(doubled) == 1 && denominator(a.number) != 1;
  if (tie && up % 2 != 0) up -= 1;
  return whole(a, up);
}

class ExponentRange {
 public:
  ExponentRange(mpfr_exp_t least, mpfr_exp_t greatest) : least_(mpfr_get_emin()), greatest_(mpfr_get_emax()) {
    mpfr_set_emin(least);
    mpfr_set_emax(greatest);
  }
  ~ExponentRange() {
    mpfr_set_emin(least_);
    mpfr_set_emax(greatest_);
  }

 private:
  mpfr_exp_t least_, greatest_;
};

Bits past_the_largest(Format format, Bits sign) {
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

// The pattern of a positive number that the format has.
Bits pattern_of(Format format, const Float& value) {
  const FormatInfo& f = info(format);
  const int exponent = static_cast<int>(mpfr_get_exp(value)) - 1;  // MPFR's significands are below 1
  const bool normal = exponent >= f.min_exponent;
  Float significand(f.precision + 1);
  mpfr_mul_2si(significand, value, f.precision - 1 - std::max(exponent, f.min_exponent), MPFR_RNDN);
  const Bits digits = mpfr_get_uj(significand, MPFR_RNDN);
  const Bits hidden = Bits{1} << (f.precision - 1);
  if (f.specials == Specials::unsigned_power) return static_cast<Bits>(exponent - f.min_exponent);
  return normal ? (static_cast<Bits>(exponent - f.min_exponent + 1) << (f.precision - 1)) + (digits - hidden) : digits;
}

Bits round_to(Format format, const Second& a) {
  const FormatInfo& f = info(format);
  const bool power = f.specials == Specials::unsigned_power;
  if (mpfr_nan_p(a.kind)) return has_nan(format) ? quiet_nan(format) : 0;
  const bool negative = mpfr_signbit(a.kind) != 0;
  if (power && (negative || !has_number(a))) return quiet_nan(format);
  const Bits sign = negative ? sign_bit(format) : 0;
  if (mpfr_inf_p(a.kind)) return past_the_largest(format, sign);
  const Bits zero = f.specials == Specials::nan_minus_zero ? 0 : sign;
  if (mpfr_zero_p(a.kind)) return zero;
  Float rounded(f.precision);
  {
    const ExponentRange range(f.min_exponent - (f.precision - 1) + 1, f.max_exponent + 1);
    const Rational magnitude = abs(a.number);
    const int direction = mpfr_set_q(rounded, magnitude.backend().data(), MPFR_RNDN);
    mpfr_subnormalize(rounded, direction, MPFR_RNDN);
  }
  if (mpfr_inf_p(rounded)) return past_the_largest(format, sign);
  if (mpfr_zero_p(rounded)) return power ? 0 : zero;  // e8m0 has no zero: its smallest number has the pattern 0
  const Bits pattern = pattern_of(format, rounded);
  if (pattern > largest_finite(format)) return past_the_largest(format, sign);
  return sign | pattern;
}

Second decode(Format format, Bits bits) {
  const FormatInfo& f = info(format);
  Second r;
  if (is_nan(format, bits)) return r;  // a new MPFR number is NaN
  const int sign = is_negative(format, bits) ? -1 : 1;
  if (is_inf(format, bits)) {
    mpfr_set_inf(r.kind, sign);
    return r;
  }
  const Bits magnitude = bits & ~sign_bit(format);
  const bool power = f.specials == Specials::unsigned_power;
  if (magnitude == 0 && !power) {
    mpfr_set_zero(r.kind, sign);
    return r;
  }
  const Bits hidden = Bits{1} << (f.precision - 1);
  const int field = static_cast<int>(magnitude >> (f.precision - 1));
  const int exponent = power ? field + f.min_exponent : f.min_exponent + std::max(field, 1) - 1;
  const Bits digits = power ? 1 : (magnitude & (hidden - 1)) | (field > 0 ? hidden : 0);
  const int shift = exponent - (f.precision - 1);
  const Integer unit = Integer(1) << std::abs(shift);
  const Rational number = shift < 0 ? Rational(Integer(digits), unit) : Rational(Integer(digits) * unit);
  return exactly(sign < 0 ? Rational(-number) : number);
}

std::string text_of(const Second& a) {
  if (mpfr_nan_p(a.kind)) return "nan";
  if (mpfr_inf_p(a.kind)) return mpfr_signbit(a.kind) ? "-inf" : "inf";
  if (mpfr_zero_p(a.kind)) return mpfr_signbit(a.kind) ? "-0" : "0";
  return a.number.str();
}

// One expression, in both arithmetics and as text.
struct Both {
  Real real;
  Second second;
  std::string text;
};

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  Format format() { return formats()[below(formats().size())].format; }

  // Products of many f64 numbers have thousands of digits and show nothing that those of two do not.
  Format leaf_format() {
    const Format drawn = format();
    return drawn == Format::f64 && below(4) != 0 ? Format::f32 : drawn;
  }

  Bits pattern(Format format) {
    const Bits mask = (sign_bit(format) | largest_finite(format)) | (has_nan(format) ? quiet_nan(format) : 0);
    const Bits sign = below(2) == 0 ? 0 : sign_bit(format);
    switch (below(8)) {
      case 0:  // subnormal or zero, and the smallest normal numbers
        return sign | below(Bits{4} << (info(format).precision - 1));
      case 1:  // the largest, and what lies beyond
        return sign | (largest_finite(format) - below(4));
      case 2:
        return has_infinity(format) ? sign | infinity(format) : pattern(format);
      case 3: {  // near 1
        const Bits one = rn(format, Real(1));
        return sign | (one + below(5) - std::min<Bits>(one, 2));
      }
      default:
        return random_() & mask;
    }
  }

  Both leaf() {
    const Format format = leaf_format();
    const Bits bits = pattern(format);
    return {Real(format, bits), decode(format, bits), fmt::format("{}:{}", info(format).name, to_hex(format, bits))};
  }

  Both rounded(const Both& a, Format format) {
    const Bits bits = rn(format, a.real);
    return {Real(format, bits), decode(format, round_to(format, a.second)),
            fmt::format("{}({})", info(format).name, a.text)};
  }

  // The middle between two neighbours of a format, or the least bit beside it.
  Both near_tie(Format format) {
    Bits bits = pattern(format);
    while (!is_finite(format, bits)) bits = pattern(format);
    const Bits next = next_up(format, bits);
    const Both low{Real(format, bits), decode(format, bits),
                   fmt::format("{}:{}", info(format).name, to_hex(format, bits))};
    const Both high{Real(format, next), decode(format, next),
                    fmt::format("{}:{}", info(format).name, to_hex(format, next))};
    const Both two{Real(2), exactly(2), "2"};
    const Both middle = binary('/', binary('+', low, high), two);
    if (below(3) == 0) return middle;
    const Bits tiny = smallest_positive(Format::f64);
    const Both least{Real(Format::f64, tiny), decode(Format::f64, tiny), "f64:" + to_hex(Format::f64, tiny)};
    return binary(below(2) == 0 ? '+' : '-', middle, least);
  }

  Both binary(char operation, const Both& a, const Both& b) {
    const std::string text = fmt::format("({} {} {})", a.text, operation, b.text);
    switch (operation) {
      case '+':
        return {a.real + b.real, add(a.second, b.second), text};
      case '-':
        return {a.real - b.real, subtract(a.second, b.second), text};
      case '*':
        return {a.real * b.real, multiply(a.second, b.second), text};
      default:
        return {a.real / b.real, divide(a.second, b.second), text};
    }
  }

  Both expression(int depth) {
    if (depth == 0 || below(8) == 0) return leaf();
    const Both a = expression(depth - 1);
    switch (below(16)) {
      case 0:
        return {-a.real, negate(a.second), "-" + a.text};
      case 1:
        return {abs(a.real), absolute(a.second), fmt::format("abs({})", a.text)};
      case 2:
        return {rne(a.real), nearest_even(a.second), fmt::format("rne({})", a.text)};
      case 3:
        return {floor(a.real), floor_of(a.second), fmt::format("floor({})", a.text)};
      case 4:
      case 5:
        return rounded(a, format());
      case 6:
        return near_tie(format());
      case 7: {
        const Both b = expression(depth - 1);
        return {min(a.real, b.real), less(b.second, a.second) ? b.second : a.second,
                fmt::format("min({}, {})", a.text, b.text)};
      }
      case 8: {
        const Both b = expression(depth - 1);
        return {max(a.real, b.real), less(a.second, b.second) ? b.second : a.second,
                fmt::format("max({}, {})", a.text, b.text)};
      }
      default:
        return binary("+-*/"[below(4)], a, expression(depth - 1));
    }
  }

 private:
  std::mt19937_64 random_;
};

// Compares the number itself, its order, its logarithm, and its nearest in one format. Empty, or the first difference.
std::string difference(const Both& a, const Both& b, Format format) {
  if (a.real.fraction() != text_of(a.second)) {
    return fmt::format("{} is {} and not {}", a.text, a.real.fraction(), text_of(a.second));
  }
  const Bits ours = rn(format, a.real), theirs = round_to(format, a.second);
  if (!same_bits(format, ours, theirs)) {
    return fmt::format("{} of {} is {} and not {}", info(format).name, a.text, show(format, ours),
                       show(format, theirs));
  }
  if ((a.real < b.real) != less(a.second, b.second)) return fmt::format("{} < {}", a.text, b.text);
  if ((a.real == b.real) != equal(a.second, b.second)) return fmt::format("{} == {}", a.text, b.text);
  if (has_number(a.second)) {
    const Real magnitude = abs(a.real);
    const int exponent = static_cast<int>(mpfr_get_exp(a.second.kind)) - 1;
    if (floor_log2(magnitude) != exponent) return fmt::format("floor(log2({})) is {}", a.text, floor_log2(magnitude));
    if (power_of_two(exponent) > magnitude) return fmt::format("2^{} > {}", exponent, magnitude.fraction());
  }
  return {};
}

// Parts, for ctest to run side by side.
constexpr int kParts = 4;

std::uint64_t expressions_of_a_part() {
  const char* text = std::getenv("ASSAY_EXPRESSIONS");  // set where sanitizers make them slow
  return (text != nullptr ? std::strtoull(text, nullptr, 10) : 1'000'000) / kParts;
}

class OnAMillionExpressions : public ::testing::TestWithParam<int> {};

TEST_P(OnAMillionExpressions, GmpAndMpfrAgree) {
  Drawer drawer(20240607 + static_cast<std::uint64_t>(GetParam()));
  std::uint64_t nonzero = 0, special = 0, differences = 0;
  const std::uint64_t expressions = expressions_of_a_part();
  for (std::uint64_t i = 0; i < expressions && differences < 10; ++i) {
    const Format format = drawer.format();
    const Both a = i % 4 == 0 ? drawer.near_tie(format) : drawer.expression(1 + static_cast<int>(drawer.below(4)));
    const Both b = i % 16 == 0 ? a : drawer.leaf();
    const std::string wrong = difference(a, b, format);
    if (!wrong.empty()) {
      ADD_FAILURE() << "expression " << i << ": " << wrong;
      ++differences;
    }
    has_number(a.second) ? ++nonzero : ++special;
  }
  // Expressions that all end in NaN would agree as well.
  EXPECT_GT(nonzero, expressions / 2);
  EXPECT_GT(special, expressions / 100);
  fmt::print("{} expressions: {} nonzero numbers, {} zeros, infinities and NaN\n", nonzero + special, nonzero, special);
}

INSTANTIATE_TEST_SUITE_P(SecondOpinion, OnAMillionExpressions, ::testing::Range(0, kParts));

TEST(SecondOpinion, EveryPatternOfSixteenBitsIsTheSameNumber) {
  for (const FormatInfo& f : formats()) {
    if (f.width > 16) continue;
    for (Bits bits = 0; bits < Bits{1} << f.width; ++bits) {
      const Second second = decode(f.format, bits);
      ASSERT_EQ(Real(f.format, bits).fraction(), text_of(second)) << show(f.format, bits);
      ASSERT_TRUE(same_bits(f.format, round_to(f.format, second), bits)) << show(f.format, bits);
    }
  }
}

}  // namespace
}  // namespace assay
