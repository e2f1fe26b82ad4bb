// The section of report.html about input tensors: it has to stay readable with hundreds of runs.
#pragma once

#include "reports/html_parts.h"

namespace assay::page {

Html inputs_section(const Json& report);

}  // namespace assay::page
