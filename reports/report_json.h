// report.json: the one document from which every other report is made. Its keys are described in report.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "properties/property.h"

namespace assay {

/// Schema "assay.report/1". The same evidence gives the same bytes: nothing here reads a clock, the environment or a
/// file. All strings are valid UTF-8, whatever the evidence held.
nlohmann::ordered_json report_json(const Evidence& evidence);

/// "pass", "pass_with_waivers", "fail" or "incomplete".
std::string verdict_of(const nlohmann::ordered_json& report);

}  // namespace assay
