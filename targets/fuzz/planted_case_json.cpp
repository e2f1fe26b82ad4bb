// No target can be at fault where fuzz_case_json looks, so the fault that it must find is planted in a printer: one
// that forgets a block of other than 32 elements where the granularity does not use it, as no seed shows.
#include "targets/fuzz/fuzz_body.h"

namespace {

std::string forgetful(const assay::CaseFile& file) {
  assay::CaseFile printed = file;
  if (printed.c.options.granularity == assay::Granularity::per_tensor) printed.c.options.block = 32;
  return assay::case_json(printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr assay::CasePrinter kPlanted[] = {{"forgetful", forgetful}};
  assay::fuzz_case_text({data, size}, kPlanted);
  return 0;
}
