// Scale and zero point of any tensor.
#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const assay::CaseFuzzer fuzzer("qparams");
  fuzzer.run({data, size});
  return 0;
}
