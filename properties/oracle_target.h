// Targets made of answers instead of code: the oracle itself, put on trial like any quantizer, and the answer that a
// case file records.
#pragma once

#include "oracle/oracle.h"
#include "properties/case_json.h"
#include "targets/target.h"

namespace assay {

/// An oracle that answers every operation of every format. Its name is "scheme:NAME" if `scheme` is not empty, and it
/// declares that scheme alone; else "oracle:NAME", and it declares all.
Target oracle_target(const Oracle& oracle, std::string_view scheme = {});

/// The system that answered `file.c` as `file.faulty` records, and anything else as the scheme says. Named "recorded".
/// What is not recorded follows from what is: codes from the recorded scale, values from the recorded codes.
Target recorded_target(const CaseFile& file);

}  // namespace assay
