// The parser of case files before any text.
#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::fuzz_case_text({data, size});
  return 0;
}
