// The one body of all fuzz targets: bytes become a case, properties of the catalogue judge it, and a failure is
// minimised, printed, written as a JSON case and made a crash, which is what libFuzzer records.
//
// Environment: ASSAY_TARGET names the target under test (default: quantizer), ASSAY_FINDINGS_DIR the folder that gets
// the JSON cases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/case_json.h"
#include "properties/draw.h"
#include "properties/property.h"

namespace assay {

/// A row of the table of fuzz targets that judge cases; each has a file fuzz_NAME.cpp.
struct FuzzTarget {
  std::string_view name;
  DrawSpace space;
  /// Judged on every input: the claims that compare with the oracle, which notice any wrong answer to the case itself.
  std::vector<std::string_view> always;
  /// Whether the rest of the catalogue takes turns, one property an input, chosen by the input's bytes.
  bool others_in_turn;
};
std::span<const FuzzTarget> fuzz_targets();

class CaseFuzzer {
 public:
  /// `name` is a row's. Ends the process with code 2 and a sentence if ASSAY_TARGET names no target.
  explicit CaseFuzzer(std::string_view name);
  /// Does not return if a property fails.
  void run(std::span<const std::uint8_t> bytes) const;

 private:
  bool has_verdict(const Property& property, const Case& c) const;
  [[noreturn]] void report_failure(const Property& property, const Case& c, const Verdict& verdict) const;
  void everything(const Case& c) const;
  void some_of_the_rest(std::uint64_t hash, const Case& c) const;

  const FuzzTarget& row_;
  Target target_;
  std::vector<const Property*> judged_;   // in the order of the catalogue
  std::vector<const Property*> in_turn_;  // those of judged_ that take turns
};

/// One of the forms in which cases are printed.
struct CasePrinter {
  std::string_view name;
  std::string (*print)(const CaseFile& file);
};
std::span<const CasePrinter> case_printers();

/// The parser before any text: a case or one sentence, and what every printer makes of the case parses back to it. Does
/// not return if that does not hold.
void fuzz_case_text(std::span<const std::uint8_t> text, std::span<const CasePrinter> printers = case_printers());

/// From now on every input is judged by every property and by all oracles: for replays, which have the time.
void judge_thoroughly();
/// How many verdicts there were, not counting "unsupported" and "not applicable".
std::uint64_t verdicts_given();

}  // namespace assay
