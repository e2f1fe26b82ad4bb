#include "reports/cli/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "properties/combination.h"
#include "properties/draw.h"
#include "reports/cli/environment.h"
#include "targets/faults/faults.h"

namespace assay::cli {
namespace {

constexpr std::array kEfforts = {
    Effort{"quick", 300, 1, 20000},
    Effort{"standard", 20000, 20, 20000},
    Effort{"release", 200000, 200, 200000},
};

// The exact oracle takes hundreds of times the fast one's time: it re-answers every so many of the drawn cases.
constexpr std::size_t kCrossCheckEvery = 8;
// Cases on which every property looks at a fault, to list all that see it.
constexpr std::size_t kCasesForAllKillers = 120;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DrawSpace space_of(const AuditPlan& plan) {
  DrawSpace space;
  space.schemes = plan.schemes;
  return space;
}

void cross_check(const Case& c, Evidence& evidence) {
  const std::string problem = oracles_disagree(c);
  if (!problem.empty()) throw std::logic_error(fmt::format("{} on {}", problem, case_json({c, {}, {}})));
  ++evidence.oracle_cross_checks;
}

// The tallies of all rows and properties, filled case by case.
class Court {
 public:
  Court(const std::vector<Target>& rows, std::span<const std::string> schemes, Findings& findings)
      : rows_(rows), findings_(findings), combinations_(combinations_of(schemes)) {
    for (const Target& row : rows) {
      for (const Property& property : catalogue()) tallies_.push_back({row.name, std::string(property.id), {}, {}});
    }
  }

  void judge(const Case& c, Tally PropertyEvidence::*tally) {
    Combination& corner = combination_of(c, combinations_);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      bool judged = false;
      judge_all(rows_[r], c, [&](std::size_t p, const Verdict& verdict) {
        (tallies_[r * catalogue().size() + p].*tally).add(verdict.outcome);
        judged = judged || verdict.outcome == Outcome::pass || verdict.outcome == Outcome::fail;
        if (verdict.outcome == Outcome::fail) findings_.add(catalogue()[p], rows_[r], c, verdict);
      });
      corner.judged[rows_[r].name] += judged;
      corner.unsupported += !judged;
    }
  }

  const std::vector<Combination>& combinations() const { return combinations_; }
  const std::vector<PropertyEvidence>& tallies() const { return tallies_; }

 private:
  const std::vector<Target>& rows_;
  Findings& findings_;
  std::vector<PropertyEvidence> tallies_;
  std::vector<Combination> combinations_;
};

std::vector<std::filesystem::path> case_files(const std::filesystem::path& corpus) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(corpus / "cases", error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay_corpus(const AuditPlan& plan, Court& court, Evidence& evidence, Progress& progress) {
  const std::vector<std::filesystem::path> files = case_files(plan.corpus);
  if (files.empty()) evidence.incomplete.push_back(fmt::format("no case in {}", (plan.corpus / "cases").string()));
  progress.start("corpus", files.size());
  std::size_t other_schemes = 0;
  for (const std::filesystem::path& path : files) {
    ParseResult parsed = read_case_file(path);
    if (const auto* sentence = std::get_if<std::string>(&parsed)) throw Failure{Exit::input, *sentence};
    const Case& c = std::get<CaseFile>(parsed).c;
    progress.step();
    if (std::find(plan.schemes.begin(), plan.schemes.end(), c.scheme) == plan.schemes.end()) {
      ++other_schemes;
      continue;
    }
    cross_check(c, evidence);
    court.judge(c, &PropertyEvidence::corpus);
  }
  if (other_schemes > 0) {
    evidence.not_covered.push_back(
        fmt::format("{} of the corpus belong to schemes that were left out", counted(other_schemes, "case")));
  }
}

// What chance left thin: every combination gets its least number of cases.
void fill_combinations(const AuditPlan& plan, Court& court, Entropy& entropy, Progress& progress) {
  const std::vector<Combination> combinations = court.combinations();
  progress.start("combinations of codes, formats and granularity", combinations.size());
  for (const Combination& combination : combinations) {
    std::uint64_t seen = combination.unsupported;
    for (const auto& [target, cases] : combination.judged) seen = std::max(seen, cases);
    for (; seen < plan.effort.least_cases; ++seen) {
      if (const auto c = draw_within(entropy, combination)) court.judge(*c, &PropertyEvidence::drawn);
    }
    progress.step();
  }
}

// Until the property that must kill the fault has done so; the stream is that of the audit's own cases.
void kill_by_expected(const AuditPlan& plan, const Property& property, const Target& target, FaultEvidence& fault) {
  const auto start = std::chrono::steady_clock::now();
  SeededEntropy entropy(plan.seed);
  for (std::size_t i = 0; i < plan.effort.fault_cases; ++i) {
    const Case c = draw_case(entropy, DrawSpace{}).c;
    const Verdict verdict = judge(property, target, c);
    if (verdict.outcome != Outcome::fail) continue;
    fault.cases_to_kill = i + 1;
    fault.seconds_to_kill = seconds_since(start);
    fault.first = minimized_finding(property, target, c, verdict);
    return;
  }
}

std::vector<std::string> killers(const AuditPlan& plan, const Target& target, const FaultEvidence& fault) {
  std::vector<bool> kills(catalogue().size());
  for (std::size_t p = 0; p < kills.size(); ++p)
    kills[p] = fault.cases_to_kill > 0 && catalogue()[p].id == fault.expected;
  SeededEntropy entropy(plan.seed);
  for (std::size_t i = 0; i < kCasesForAllKillers; ++i) {
    const Case c = draw_case(entropy, DrawSpace{}).c;
    for (std::size_t p = 0; p < kills.size(); ++p) {
      if (!kills[p]) kills[p] = judge(catalogue()[p], target, c).outcome == Outcome::fail;
    }
  }
  std::vector<std::string> names;
  for (std::size_t p = 0; p < kills.size(); ++p) {
    if (kills[p]) names.emplace_back(catalogue()[p].id);
  }
  return names;
}

std::vector<Target> rows_of_plan(const AuditPlan& plan) {
  std::vector<Target> rows;
  for (const std::string& name : plan.targets) {
    for (Target& row : rows_of(name)) {
      const bool there = std::any_of(rows.begin(), rows.end(), [&](const Target& t) { return t.name == row.name; });
      if (!there) rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<std::string> isas_of(const std::vector<Target>& rows) {
  std::vector<std::string> isas;
  for (const Target& row : rows) {
    if (row.isa != "-" && std::find(isas.begin(), isas.end(), row.isa) == isas.end()) isas.push_back(row.isa);
  }
  return isas;
}

// What the properties asked for and no row offers, property by property, is in the counts; this is what nobody asked.
void declare_gaps(const AuditPlan& plan, Evidence& evidence) {
  auto& gaps = evidence.not_covered;
  gaps.push_back(
      "Inputs are sampled, though aimed at breakpoints and degenerate blocks: this is no proof for all inputs.");
  for (const SchemeInfo& scheme : schemes()) {
    if (std::find(plan.schemes.begin(), plan.schemes.end(), scheme.name) == plan.schemes.end())
      gaps.push_back(fmt::format("Scheme {} was left out by --scheme.", scheme.name));
  }
  if (plan.inputs.empty())
    gaps.push_back("No real weights: --input was not given.");
  else
    gaps.push_back("Real weights are quantized to integer codes only, not to float codes.");
}

}  // namespace

std::span<const Effort> efforts() { return kEfforts; }

void audit_properties(const AuditPlan& plan, const std::vector<Target>& rows, Evidence& evidence, Findings& findings,
                      Progress& progress) {
  Court court(rows, plan.schemes, findings);
  replay_corpus(plan, court, evidence, progress);
  const DrawSpace space = space_of(plan);
  SeededEntropy entropy(plan.seed);
  progress.start(fmt::format("{} x {} x {}", counted(plan.effort.drawn_cases, "drawn case"),
                             counted(rows.size(), "target"), "every property"),
                 plan.effort.drawn_cases);
  for (std::size_t i = 0; i < plan.effort.drawn_cases; ++i) {
    const Drawn drawn = draw_case(entropy, space);
    ++evidence.case_kinds[std::string(drawn.kind)];
    if (i % kCrossCheckEvery == 0) cross_check(drawn.c, evidence);
    court.judge(drawn.c, &PropertyEvidence::drawn);
    progress.step();
  }
  fill_combinations(plan, court, entropy, progress);
  evidence.properties = court.tallies();
  evidence.combinations = court.combinations();
}

void audit_faults(const AuditPlan& plan, Evidence& evidence, Progress& progress) {
  progress.start("planted faults", faults().size());
  for (const Fault& row : faults()) {
    FaultEvidence fault;
    fault.id = row.id;
    fault.models = row.models;
    fault.expected = row.expected;
    const Target target = fault_target(row);
    kill_by_expected(plan, *property_named(row.expected), target, fault);
    fault.killed_by = killers(plan, target, fault);
    evidence.faults.push_back(std::move(fault));
    progress.step();
  }
}

Evidence run_audit(const AuditPlan& plan, Progress& progress) {
  const std::vector<Target> rows = rows_of_plan(plan);
  Evidence evidence;
  evidence.environment = this_environment();
  evidence.environment.isas_run = isas_of(rows);
  evidence.target = fmt::format("{}", fmt::join(plan.targets, ", "));
  evidence.target_version = rows.front().version;
  evidence.schemes = plan.schemes;
  evidence.effort = plan.effort.name;
  evidence.command = plan.command;
  evidence.seed = plan.seed;
  declare_gaps(plan, evidence);
  Findings findings(read_known_findings(plan.corpus / "known.json"));
  audit_properties(plan, rows, evidence, findings, progress);
  audit_faults(plan, evidence, progress);
  audit_inputs(plan, rows, evidence, findings, progress);
  evidence.findings = findings.list();
  progress.clear();
  return evidence;
}

}  // namespace assay::cli
