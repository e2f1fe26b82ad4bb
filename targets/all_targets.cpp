#include "targets/all_targets.h"

#include "targets/adapters/quantizer_adapter.h"
#include "targets/faults/faults.h"

namespace assay {
namespace {

std::vector<Target> all_targets() {
  std::vector<Target> all = {best_quantizer()};
  for (Target& row : quantizer_targets()) all.push_back(std::move(row));
  for (const Fault& fault : faults()) all.push_back(fault_target(fault));
  return all;
}

}  // namespace

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& target : all_targets()) names.push_back(target.name);
  return names;
}

std::optional<Target> target_named(std::string_view name) {
  for (Target& target : all_targets()) {
    if (target.name == name) return std::move(target);
  }
  return std::nullopt;
}

std::vector<Target> target_rows(std::string_view name) {
  if (name == best_quantizer().name) return quantizer_targets();
  if (std::optional<Target> target = target_named(name)) return {*std::move(target)};
  return {};
}

}  // namespace assay
