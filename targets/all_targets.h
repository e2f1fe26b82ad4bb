// The list of targets, by the names of the command line. Only programs link it; properties never do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "targets/target.h"

namespace assay {

/// "quantizer" (the production quantizer on the best instruction set of this machine), "quantizer@ISA" for each that
/// runs here, and "fault:NAME" for each planted fault.
std::vector<std::string> target_names();
std::optional<Target> target_named(std::string_view name);

/// The rows that stand behind a name in an audit: "quantizer" is every instruction set of this machine, any other name
/// is itself. Empty if there is no such target.
std::vector<Target> target_rows(std::string_view name);

}  // namespace assay
