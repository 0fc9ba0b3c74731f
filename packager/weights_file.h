// Weights in a file of their own beside a library. A header comes first, by which library and file
// recognize each other (runtime/weights.h); the weights begin at the next page.
#pragma once
#include <string>

#include "packager/integrity.h"
#include "packager/output_file.h"

namespace tw {

class WeightsFile {
 public:
  // Reserves the whole file beside `path`.
  static Expected<WeightsFile> create(const std::string& path, uint64_t weight_bytes);
  // See OutputFile for memory and threads.
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  // Writes the header, with the hash of the weights. The result is the header, for the library.
  Expected<std::string> finish();
  Error commit() { return file_.commit(); }

 private:
  WeightsFile(OutputFile file, uint64_t start, uint64_t bytes)
      : file_(std::move(file)), start_(start), bytes_(bytes) {}
  OutputFile file_;
  uint64_t start_, bytes_;
};

// Checks the file of weights that the manifest names, if any: it must lie beside the library and
// have been written together with it. Integrity::check compares the hash of its weights, too.
Error check_weights_file(const std::string& library, const std::string& manifest,
                         std::string_view header, Integrity integrity);

}  // namespace tw
