#include "targets/faults/faults.h"

#include "targets/faults/parts.h"

namespace assay {

std::span<const Fault> faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> all;
    for (const auto& rows : {qparams_faults(), code_faults(), value_faults(), kernel_faults(), float_faults(),
                             packing_faults(), requantize_faults()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  return kAll;
}

std::vector<Target> innocent_targets() { return {innocent_qparams(), innocent_codes(), innocent_values()}; }

Target fault_target(const Fault& fault) {
  Target t = fault.make();
  t.name = "fault:" + std::string(fault.id);
  return t;
}

}  // namespace assay
