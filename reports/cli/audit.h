// The audit: targets before every property on drawn cases and the corpus, planted faults, real weights; all of it into
// one Evidence.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/cli/console.h"
#include "reports/cli/findings.h"
#include "targets/models/float_tensors.h"

namespace assay::cli {

/// How much is drawn. The numbers are those of report.json, so they are part of what a release is signed on.
struct Effort {
  std::string_view name;
  std::size_t drawn_cases;  ///< before each row, each judged by every property
  std::size_t least_cases;  ///< drawn at least in every combination of codes, format and granularity
  std::size_t fault_cases;  ///< at most, until the property that must kill a fault has killed it
};
std::span<const Effort> efforts();

/// How the tensors of --input files are quantized: each configuration that fits a tensor is run.
struct InputConfiguration {
  std::string scheme;
  Options options;
};
std::vector<InputConfiguration> usual_configurations();

struct AuditPlan {
  std::vector<std::string> targets;  ///< names; each stands for its rows
  std::vector<std::string> schemes;
  Effort effort;
  std::uint64_t seed;
  std::filesystem::path corpus;  ///< the folder with cases/ and known.json
  std::vector<TensorFile> inputs;
  std::vector<InputConfiguration> configurations;
  std::string command;  ///< that makes the same report
};

Evidence run_audit(const AuditPlan& plan, Progress& progress);

// The parts, each of which adds to the evidence.

/// Drawn cases and corpus before every row.
void audit_properties(const AuditPlan& plan, const std::vector<Target>& rows, Evidence& evidence, Findings& findings,
                      Progress& progress);
void audit_faults(const AuditPlan& plan, Evidence& evidence, Progress& progress);
void audit_inputs(const AuditPlan& plan, const std::vector<Target>& rows, Evidence& evidence, Findings& findings,
                  Progress& progress);

}  // namespace assay::cli
