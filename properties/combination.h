// The corners of the case space: which formats, codes and granularities a case is about.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/draw.h"
#include "properties/property.h"

namespace assay {

/// All combinations that these schemes have, nothing judged yet.
std::vector<Combination> combinations_of(std::span<const std::string> schemes);

/// The one that a case belongs to; added to `all` if it is none of them.
Combination& combination_of(const Case& c, std::vector<Combination>& all);

/// A case of this combination, or nothing if the draw went elsewhere too often.
std::optional<Case> draw_within(Entropy& entropy, const Combination& combination);

}  // namespace assay
