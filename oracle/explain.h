// One case in exact arithmetic, step by step, for the person who asks why a code is what it is. Every number comes from
// the functions of schemes.h; this file only puts words to them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "oracle/oracle.h"

namespace assay {

/// One line of working: formula = fraction, and what rounding made of it.
struct Step {
  std::string name;
  std::string formula;   ///< with this block's numbers filled in where they are short
  std::string fraction;  ///< the exact result, before any rounding
  std::string rounded;   ///< the result where a rounding happens (a float with its bits, or a whole number), else empty
  std::string why;       ///< which rule decided, where one did
};

struct ElementExplanation {
  std::size_t index = 0;  ///< row-major position in the tensor
  std::string x;          ///< value and bits; empty for dequantize
  std::vector<Step> steps;
  int code = 0;
  std::string value;                       ///< value and bits in the output format; empty for quantize
  std::optional<Breakpoint> below, above;  ///< where the codes change on either side of x: below.x <= x < above.x
  std::string why;  ///< the sentence that answers "why this code?" (for dequantize: "this value?")
};

struct BlockExplanation {
  std::size_t block = 0;    ///< position in the order of cut()
  std::vector<Step> steps;  ///< range, step, stored scale, reach check, zero point; where given: scale and zero point
  QParams qparams;
  std::vector<ElementExplanation> elements;  ///< by index; none for choose_qparams
};

/// The legal answer to a case with its working. The case must pass check_case and name a known scheme.
/// Of a larger block the `most_elements` most instructive are shown: ties first, then saturated ones, those that are
/// not finite, the ends of the range, and the first ones. With `chosen` (positions in the tensor; others are ignored)
/// it is exactly these, and only the blocks that hold one of them.
std::vector<BlockExplanation> explain(const Case& c, std::size_t most_elements = 8,
                                      const std::vector<std::size_t>& chosen = {});

/// Plain text for people, at most 120 columns wide; long fractions are continued on the next line.
std::string explanation_text(const Case& c, const std::vector<BlockExplanation>& blocks);

}  // namespace assay
