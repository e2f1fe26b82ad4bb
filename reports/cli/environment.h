// The machine and the build an audit ran on, for the report.
#pragma once

#include "properties/property.h"

namespace assay::cli {

/// `isas_run` is left to the audit, which knows what it ran.
Environment this_environment();

}  // namespace assay::cli
