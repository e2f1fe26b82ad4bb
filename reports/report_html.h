// report.html: the page a release manager signs. One file, no script, nothing fetched from anywhere.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

/// `report` is what report_json() made, or such a file read back; missing keys throw nlohmann::json::out_of_range.
std::string report_html(const nlohmann::ordered_json& report);

}  // namespace assay
