// Every operation on tensors of many blocks: per block and per axis.
#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const assay::CaseFuzzer fuzzer("blockwise");
  fuzzer.run({data, size});
  return 0;
}
