// Codes of accumulators under given multipliers.
#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const assay::CaseFuzzer fuzzer("requantize");
  fuzzer.run({data, size});
  return 0;
}
