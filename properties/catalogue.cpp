// Every property: one row of the table. The checks are in the files beside this one.
#include <fmt/format.h>

#include <array>

#include "properties/checks.h"

namespace assay {
namespace {

constexpr OperationSet kRequantize = bit(Operation::requantize), kDequantize = bit(Operation::dequantize),
                       kRoundTrip = bit(Operation::round_trip);
constexpr OperationSet kChoosing = kRoundTrip | bit(Operation::choose_qparams);
constexpr OperationSet kCodes = kRoundTrip | bit(Operation::quantize);
constexpr OperationSet kFromX = kChoosing | kCodes;
constexpr OperationSet kAll = kFromX | kDequantize | kRequantize;

constexpr std::array kCatalogue = {
    Property{"in_bounds", "public bugs: tail writes and over-reads",
             "Nothing outside the outputs is written, nothing outside the inputs is read, no input is changed.", kAll,
             in_bounds},
    Property{"scale_positive_finite", "coremltools #2853; ModelOpt #1353 (TensorRT: scales all positive)",
             "The stored scale is greater than zero and finite for every input.", kChoosing, scale_positive_finite},
    Property{"zero_point_in_range", "LLMC #334", "The zero point is a code of the format.", kChoosing,
             zero_point_in_range},
    Property{"nan_free", "coremltools #2853", "Codes are in range and values finite for every input.",
             kCodes | kDequantize, nan_free},
    Property{"saturates", "public bugs: casts that overflow",
             "Huge and infinite inputs land on the end codes and never wrap.", kFromX, saturates},
    Property{"monotone", "definition", "x <= y implies q(x) <= q(y).", kFromX, monotone},
    Property{"zero_exact", "coremltools #2853",
             "0.0 gets the zero point as its code and comes back as +0.0; an all-zero block comes back as zeros.",
             kFromX | kDequantize, zero_exact},
    Property{"constant_block", "public bugs: min == max", "A block of equal values comes back within half a step.",
             kRoundTrip, constant_block},
    Property{"range_includes_zero", "LLMC #334",
             "A block whose values are all positive or all negative comes back within half a step everywhere.",
             kRoundTrip, range_includes_zero},
    Property{"requantize_stable", "LLMC #334", "An already-quantized block requantizes to itself.", kRoundTrip,
             requantize_stable},
    Property{"full_range", "LLMC #334", "The end codes that exact arithmetic reaches are reached.", kRoundTrip,
             full_range},
    Property{"deterministic", "definition",
             "The same call twice gives the same bits, whatever the outputs held before.", kAll, deterministic},
    Property{"isa_agree", "public bugs: instruction sets that differ",
             "Every instruction set of this machine gives the same bits.", kAll, isa_agree},
    Property{"position_independent", "public bugs: tails, alignment, neighbours",
             "Address, length, order and neighbouring blocks change nothing.", kAll, position_independent},
    Property{"environment_kept", "public bugs: subnormals flushed, rounding left changed",
             "The caller's rounding mode and flushing of subnormals neither change the result nor are changed, and no "
             "invalid operation or division by zero is signalled.",
             kAll, environment_kept},
    Property{"dtype_preserved", "ModelOpt review: scales cast on the way out",
             "The stored scale is the one its declared format holds, not that of another format.", kChoosing,
             dtype_preserved},
    Property{"sign_symmetric", "definition", "Symmetric codes without the lowest are odd: q(-x) = -q(x).", kCodes,
             sign_symmetric},
    Property{"scale_equivariant", "definition",
             "A block times 2^k has 2^k times the scale, and the same zero point and codes.", kFromX,
             scale_equivariant},
    Property{"round_trip", "the mission",
             "No other code reconstructs closer to x, and every finite element is within half a step of its exact "
             "reconstruction.",
             kCodes, round_trip},
    Property{"pack_round_trip", "public bugs: nibble order, sign extension",
             "Packed codes lie bit by bit where the packing says, and unpack to the same codes.", kCodes | kDequantize,
             pack_round_trip},
    Property{"legal_counts", "the mission", "The reported NaN, infinite and saturated elements are counted exactly.",
             kFromX, legal_counts},
    Property{"fix_changes_nothing_else", "coremltools PR 2851",
             "On a block where no guard has anything to do, scale and zero point are those of the plain formula.",
             kChoosing, fix_changes_nothing_else},
    Property{"legal_qparams", "the mission", "Scale and zero point equal the oracle's, bit for bit.", kChoosing,
             legal_qparams},
    Property{"legal_codes", "the mission", "Every code equals the oracle's.", kCodes, legal_codes},
    Property{"legal_values", "the mission", "Every dequantized value equals the oracle's, bit for bit.",
             kRoundTrip | kDequantize, legal_values},
    Property{"requantize_exact", "public bugs: double rounding, 33-bit sums, wrapping",
             "Codes of int32 accumulators equal those of the declared multiplier and rounding.", kRequantize,
             requantize_exact},
};

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "fail";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::not_applicable:
      return "not_applicable";
  }
  return "?";
}

void Tally::add(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      ++pass;
      break;
    case Outcome::fail:
      ++fail;
      break;
    case Outcome::unsupported:
      ++unsupported;
      break;
    case Outcome::not_applicable:
      ++not_applicable;
      break;
  }
}

Verdict check(const Property& property, const Target& target, const Case& c, const Oracle& oracle) {
  if ((property.operations & bit(c.op)) == 0) return not_applicable();
  return property.judge_case(target, c, oracle);
}

std::string signature(const Finding& finding) {
  return fmt::format("{}/{}/{}/{}", finding.target, finding.property, finding.example.scheme, finding.verdict.kind);
}

std::span<const Property> catalogue() { return kCatalogue; }

const Property* property_named(std::string_view id) {
  for (const Property& property : kCatalogue) {
    if (property.id == id) return &property;
  }
  return nullptr;
}

}  // namespace assay
