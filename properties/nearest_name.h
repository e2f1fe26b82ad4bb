// What the user may have meant: every refusal of an unknown name proposes a known one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay {

/// The name that takes the fewest insertions, deletions and substitutions to become `wrong`; of equals the first.
/// Empty only if there are no names. Letter case does not count.
std::string nearest_name(std::string_view wrong, std::span<const std::string_view> names);

}  // namespace assay
