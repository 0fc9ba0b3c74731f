// libFuzzer over target descriptions: an error, or a target that prints to itself.
#include <cstddef>
#include <cstdint>
#include <string>

#include "frontend/frontend.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::Expected<tw::Target> target = tw::parse_target(
      std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
  if (!target) {
    llvm::consumeError(target.takeError());
  } else {
    tw::Expected<tw::Target> again = tw::parse_target(tw::print(*target), "printed.yaml");
    const std::string problem = again ? "" : tw::error_text(again.takeError());
    TW_CHECK(problem.empty(), "{0}", problem);
  }
  return 0;
}
