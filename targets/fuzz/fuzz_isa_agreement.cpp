// The same bits on every instruction set of this machine.
#include "targets/fuzz/fuzz_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const assay::CaseFuzzer fuzzer("isa_agreement");
  fuzzer.run({data, size});
  return 0;
}
