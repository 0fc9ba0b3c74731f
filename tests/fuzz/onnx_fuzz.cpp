// libFuzzer over the whole import: any bytes must give an error, or a model that verifies.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "frontend/frontend.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("model", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) return 0;
  tw::Expected<tw::Model> model = tw::import_onnx("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (!model) {
    llvm::consumeError(model.takeError());
  } else {
    const std::string problem = tw::error_text(tw::verify(model->graph));
    TW_CHECK(problem.empty(), "{0}", problem);
  }
  return 0;
}
