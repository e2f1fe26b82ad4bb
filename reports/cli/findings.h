// Failures on their way to becoming findings: one for each signature, minimised, compared with the accepted ones.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "properties/case_json.h"
#include "properties/run.h"

namespace assay::cli {

/// A row of corpus/known.json: a finding that was looked at and accepted until a day.
struct KnownFinding {
  std::string signature, reason, link, expires;
};

/// A Failure of Exit::input if the file is malformed; a file that is not there accepts nothing.
std::vector<KnownFinding> read_known_findings(const std::filesystem::path& path);

class Findings {
 public:
  explicit Findings(std::vector<KnownFinding> known) : known_(std::move(known)) {}

  /// The first failure of a signature is minimised and kept; later ones are the same finding.
  void add(const Property& property, const Target& target, const Case& c, const Verdict& verdict);

  const std::vector<Finding>& list() const { return list_; }

 private:
  void accept_if_known(Finding& finding) const;

  std::vector<KnownFinding> known_;
  std::set<std::string> seen_;
  std::vector<Finding> list_;
};

}  // namespace assay::cli
