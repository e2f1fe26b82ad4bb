#include "targets/fuzz/fuzz_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "properties/minimize.h"
#include "properties/nearest_name.h"
#include "properties/run.h"
#include "targets/all_targets.h"
#include "targets/fuzz/case_bytes.h"

namespace assay {
namespace {

constexpr int kMisuse = 2;
constexpr std::string_view kGuarded = "in_bounds";
constexpr std::uint64_t kGuardedOneIn = 1024, kOraclesOneIn = 128;
constexpr std::size_t kMostForOracles = 16;

bool thorough = false;
std::uint64_t verdicts = 0;

// FNV-1a with a final mix. Which property has its turn depends on the bytes alone, so that an input does the same in
// every run; yet on all bytes, so that the neighbours of an input meet them all.
std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15u >> 16;
}

DrawSpace space_of(std::vector<Operation> operations) {
  DrawSpace space;
  space.operations = std::move(operations);
  return space;
}

DrawSpace space_of_blocks() {
  DrawSpace space;
  space.granularities = {Granularity::per_block, Granularity::per_axis, Granularity::per_tile};
  space.operations = {Operation::round_trip, Operation::quantize, Operation::dequantize, Operation::choose_qparams};
  return space;
}

Target target_under_test() {
  const char* name = std::getenv("ASSAY_TARGET");
  if (name == nullptr || *name == '\0') name = "quantizer";
  if (std::optional<Target> target = target_named(name)) return *std::move(target);
  const std::vector<std::string> names = target_names();
  fmt::print(stderr, "ASSAY_TARGET: unknown target '{}'; the nearest is '{}'\n", name,
             nearest_name(name, std::vector<std::string_view>(names.begin(), names.end())));
  std::fflush(stderr);
  // Not exit: libFuzzer takes that for a finding.
  std::_Exit(kMisuse);
}

// Prints where the case went and how to see it again.
void write_case(const CaseFile& file, const std::string& name) {
  const char* folder = std::getenv("ASSAY_FINDINGS_DIR");
  if (folder == nullptr || *folder == '\0') {
    fmt::print(stderr, "the case was not written: ASSAY_FINDINGS_DIR names no folder\n");
    return;
  }
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream out(path);
  out << case_json_pretty(file);
  if (!out.flush()) {
    fmt::print(stderr, "the case could not be written: {}\n", path.string());
    return;
  }
  fmt::print(stderr, "case: {}\nreplay: assay replay {}\n", path.string(), path.string());
}

[[noreturn]] void report(const Finding& finding) {
  const Verdict& v = finding.verdict;
  const std::string name = signature(finding);
  const CaseFile file = case_file_of(finding);
  fmt::print(stderr, "finding: {}\nlegal: {}\ngot: {}\n{}", name, v.legal, v.got, case_json_pretty(file));
  write_case(file, file_name_of(name));
  std::fflush(stderr);
  std::abort();
}

// Oracles that contradict each other are a bug of this suite, and no target is to blame.
[[noreturn]] void report_oracles(const Case& c, const std::string& sentence) {
  Finding finding{"oracle", "oracles_agree", c, {}, {}, false, {}};
  finding.verdict = {Outcome::fail, "differ", "one answer from all oracles", sentence, 0};
  report(finding);
}

}  // namespace

std::span<const FuzzTarget> fuzz_targets() {
  static const std::vector<FuzzTarget> kTargets = {
      {"qparams", space_of({Operation::choose_qparams}), {"legal_qparams"}, true},
      {"quantize", space_of({Operation::quantize}), {"legal_codes"}, true},
      {"dequantize", space_of({Operation::dequantize}), {"legal_values"}, true},
      {"requantize", space_of({Operation::requantize}), {"requantize_exact"}, true},
      {"round_trip", space_of({Operation::round_trip}), {"legal_qparams", "legal_codes", "legal_values"}, true},
      {"blockwise", space_of_blocks(), {"legal_qparams", "legal_codes", "legal_values"}, true},
      {"isa_agreement", {}, {"isa_agree"}, false},
  };
  return kTargets;
}

CaseFuzzer::CaseFuzzer(std::string_view name)
    : row_(*std::find_if(fuzz_targets().begin(), fuzz_targets().end(),
                         [name](const FuzzTarget& row) { return row.name == name; })),
      target_(target_under_test()) {
  OperationSet asked = 0;
  for (const Operation op : row_.space.operations) asked = static_cast<OperationSet>(asked | bit(op));
  for (const Property& property : catalogue()) {
    if ((property.operations & asked) == 0) continue;
    const bool always = std::find(row_.always.begin(), row_.always.end(), property.id) != row_.always.end();
    if (!always && !row_.others_in_turn) continue;
    judged_.push_back(&property);
    if (!always && property.id != kGuarded) in_turn_.push_back(&property);
  }
}

// False if the property has nothing to say about this case or this target.
bool CaseFuzzer::has_verdict(const Property& property, const Case& c) const {
  const Verdict verdict = judge(property, target_, c);
  if (verdict.outcome == Outcome::fail) report_failure(property, c, verdict);
  if (verdict.outcome != Outcome::pass) return false;
  ++verdicts;
  return true;
}

// The narrowest claim that the case breaks gives the finding its name, whichever property noticed.
void CaseFuzzer::report_failure(const Property& property, const Case& c, const Verdict& verdict) const {
  for (const Property* narrower : judged_) {
    const Verdict first = judge(*narrower, target_, c);
    if (first.outcome == Outcome::fail) report(minimized_finding(*narrower, target_, c, first));
  }
  report(minimized_finding(property, target_, c, verdict));
}

void CaseFuzzer::everything(const Case& c) const {
  for (const Property* property : judged_) has_verdict(*property, c);
  if (const std::string problem = oracles_disagree(c); !problem.empty()) report_oracles(c, problem);
}

// in_bounds maps pages and changes their protection, a hundred times the work of any other property; comparing the
// oracles means exact fractions and a search. Both get their share of the inputs, not a turn.
void CaseFuzzer::some_of_the_rest(std::uint64_t hash, const Case& c) const {
  for (std::size_t i = 0; i < in_turn_.size(); ++i) {
    if (has_verdict(*in_turn_[(hash + i) % in_turn_.size()], c)) break;
  }
  if (row_.others_in_turn && (hash >> 16) % kGuardedOneIn == 0) has_verdict(*property_named(kGuarded), c);
  if ((hash >> 24) % kOraclesOneIn == 0 && element_count(c.shape) <= kMostForOracles) {
    if (const std::string problem = oracles_disagree(c); !problem.empty()) report_oracles(c, problem);
  }
}

void CaseFuzzer::run(std::span<const std::uint8_t> bytes) const {
  const Case c = decode_case(bytes, row_.space);
  try {
    if (thorough) return everything(c);
    for (const std::string_view id : row_.always) has_verdict(*property_named(id), c);
    some_of_the_rest(hash_of(bytes), c);
  } catch (const std::exception& e) {
    report({target_.name, "judge", c, {Outcome::fail, "threw", "a verdict", e.what(), 0}, {}, false, {}});
  }
}

std::span<const CasePrinter> case_printers() {
  static constexpr std::array kPrinters = {CasePrinter{"case_json", case_json},
                                           CasePrinter{"case_json_pretty", case_json_pretty}};
  return kPrinters;
}

void fuzz_case_text(std::span<const std::uint8_t> bytes, std::span<const CasePrinter> printers) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const ParseResult parsed = parse_case(text);
  const auto fail = [&](std::string_view what, std::string_view printed) {
    fmt::print(stderr, "finding: case_json/{}\ntext: {}\nprinted: {}\n", what, text, printed);
    std::fflush(stderr);
    std::abort();
  };
  ++verdicts;
  if (const std::string* sentence = std::get_if<std::string>(&parsed)) {
    if (sentence->empty() || sentence->find('\n') != std::string::npos) fail("not_one_sentence", *sentence);
    return;
  }
  for (const CasePrinter& printer : printers) {
    const std::string printed = printer.print(std::get<CaseFile>(parsed));
    if (parse_case(printed) != parsed) fail(fmt::format("{}_does_not_parse_back", printer.name), printed);
  }
}

void judge_thoroughly() { thorough = true; }

std::uint64_t verdicts_given() { return verdicts; }

}  // namespace assay
