// One function for each verb of the command. Each prints on stdout, throws Failure, and returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/cli/console.h"

namespace assay::cli {

struct AuditArguments {
  std::vector<std::string> targets, schemes, inputs, settings;
  std::string effort = "standard", out = "assay-report", corpus;
  std::uint64_t seed = 1;
  bool json = false;
};
Exit audit(const AuditArguments& arguments);

struct OracleArguments {
  std::string scheme, definition = "exact";
  std::vector<std::string> settings;
  bool json = true;
};
/// JSON lines from stdin to stdout.
Exit oracle(const OracleArguments& arguments);

struct ReplayArguments {
  std::vector<std::string> cases, targets, properties;
  bool json = false;
};
Exit replay(const ReplayArguments& arguments);

struct MinimizeArguments {
  std::string file, target, property, out;
  std::size_t budget = 20000;
  bool json = false;
};
Exit minimize(const MinimizeArguments& arguments);

struct ExplainArguments {
  std::string file;
  std::vector<std::string> targets;
  std::vector<std::size_t> elements;
  bool json = false;
};
Exit explain(const ExplainArguments& arguments);

struct ListArguments {
  std::string kind;
  bool json = false;
};
Exit list(const ListArguments& arguments);

}  // namespace assay::cli
