// What must hold, and what was seen. A property is one pure function; engines (RapidCheck, libFuzzer, corpus replay,
// the audit) only differ in where their cases come from.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/oracle.h"
#include "targets/target.h"

namespace assay {

enum class Outcome : std::uint8_t { pass, fail, unsupported, not_applicable };
std::string_view to_string(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::pass;
  std::string kind;       ///< fail: which way it failed, one or two words that stay stable ("scale_zero")
  std::string legal;      ///< fail: what the oracle allows, value and bits
  std::string got;        ///< fail: what the target answered
  std::size_t index = 0;  ///< fail: the element (or, for qparams, the block) it is about
};

/// The operations whose cases a property can judge: bit(a) | bit(b).
using OperationSet = std::uint8_t;
constexpr OperationSet bit(Operation operation) {
  return static_cast<OperationSet>(1u << static_cast<unsigned>(operation));
}

/// A row of the catalogue. `judge_case` is for cases of `operations` only.
struct Property {
  std::string_view id;           ///< a claim, such as "saturates"; also the requirement id of reports
  std::string_view requirement;  ///< where the demand comes from
  std::string_view statement;    ///< the claim in one sentence
  OperationSet operations;
  Verdict (*judge_case)(const Target& target, const Case& c, const Oracle& oracle);
};
Verdict check(const Property& property, const Target& target, const Case& c, const Oracle& oracle);

/// Every property, the most specific first, so that a fault is named by the narrowest claim it breaks.
std::span<const Property> catalogue();
const Property* property_named(std::string_view id);

/// A failure that was minimised and confirmed by exact_oracle.
struct Finding {
  std::string target, property;
  Case example;  ///< minimised
  Verdict verdict;
  std::string case_file;  ///< where the case was written, relative to the report; empty if it was not
  bool known = false;     ///< accepted in corpus/known.json
  std::string known_reason;
};
/// target/property/scheme/kind: the same on every run and machine.
std::string signature(const Finding& finding);

struct Tally {
  std::uint64_t pass = 0, fail = 0, unsupported = 0, not_applicable = 0;
  std::uint64_t judged() const { return pass + fail; }
  void add(Outcome outcome);
};

// ------------------------------------------------------------------------------------------------- evidence

struct PropertyEvidence {
  std::string target, property;
  Tally drawn, corpus;  ///< cases drawn by the generator, and cases of corpus/cases
};

struct FaultEvidence {
  std::string id, models, expected;    ///< expected: the property that must kill it
  std::vector<std::string> killed_by;  ///< every property that did, in catalogue order; empty: it survived
  std::uint64_t cases_to_kill = 0;     ///< cases until `expected` killed it
  double seconds_to_kill = 0;
  Finding first;  ///< how `expected` saw it, minimised; example empty if it survived
};

/// One tensor of an --input file, quantized by one target under one scheme and set of options.
struct InputEvidence {
  std::string file, tensor, target, scheme;
  Options options;
  Format format = Format::f32;
  Shape shape;
  std::uint64_t elements = 0, blocks = 0;
  std::uint64_t illegal_scales = 0, illegal_zero_points = 0, illegal_codes = 0, illegal_values = 0;
  std::uint64_t illegal_counts = 0;  ///< 1 if the reported NaN, infinite and saturated elements are miscounted
  Counts counts;
  double worst_error_steps = 0;  ///< largest |x - x'|/scale over finite elements, exact before its one rounding
  double worst_error = 0;        ///< the same element's |x - x'|
  std::size_t worst_element = 0;
  std::size_t worst_block = 0;  ///< block with the largest root-mean-square error in steps
  double worst_block_rms_steps = 0;
  std::size_t slowest_block = 0;
  double slowest_block_nanoseconds = 0, median_block_nanoseconds = 0;
  double nanoseconds_per_element = 0;
  std::vector<std::uint64_t> code_counts;  ///< by code, qmin first
};

/// One corner of the case space, and how many cases in it were judged on each target.
struct Combination {
  std::string scheme;
  std::string codes;        ///< "s8", "u4", "e2m1"
  std::string format;       ///< of x; "codes" for dequantize, "int32" for requantize
  std::string granularity;  ///< as in options
  std::map<std::string, std::uint64_t> judged;  ///< by target; a case counts once, however many properties judged it
  std::uint64_t unsupported = 0;                ///< cases about which no property could say anything
};

struct Environment {
  std::string assay_version, commit, compiler, flags, cpu, os;
  std::vector<std::string> isas_run, isas_compiled;
  std::string floating_point;  ///< rounding mode and flush modes at the start
};

/// Everything that an audit saw; the only input of reports/.
struct Evidence {
  Environment environment;
  std::string target, target_version;
  std::vector<std::string> schemes;
  std::string effort, command;
  std::uint64_t seed = 0;
  std::vector<std::string> not_covered;
  std::vector<PropertyEvidence> properties;
  std::vector<Finding> findings;
  std::vector<FaultEvidence> faults;
  std::vector<InputEvidence> inputs;
  std::uint64_t oracle_cross_checks = 0;  ///< answers in which all three oracles were compared, with no difference
  std::vector<std::string> incomplete;    ///< required things that did not run; not empty: verdict incomplete
  std::map<std::string, std::uint64_t> case_kinds;  ///< how many cases of each kind were drawn
  std::vector<Combination> combinations;            ///< all that the schemes of the audit have
};

}  // namespace assay
