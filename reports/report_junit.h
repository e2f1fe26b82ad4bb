// junit.xml for CI systems (GitLab, Jenkins, Azure): what they agree on and nothing more.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

/// `report` is what report_json() made, or such a file read back. One suite per target with a test per requirement,
/// then "audit" (did everything required run), "faults" and "inputs". A test without a judged case is skipped, never
/// passed; an accepted finding passes and says so in its output.
std::string report_junit(const nlohmann::ordered_json& report);

}  // namespace assay
