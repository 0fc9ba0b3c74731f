// Weights in a file of their own beside a library: a header, by which the two know each other
// (runtime/weights.h), and the weights from a page's beginning on.
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
  // Writes the header, with the hash of what was filled in. The result: it, for the library.
  Expected<std::string> finish();
  Error commit() { return file_.commit(); }

 private:
  WeightsFile(OutputFile file, uint64_t start, uint64_t bytes)
      : file_(std::move(file)), start_(start), bytes_(bytes) {}
  OutputFile file_;
  uint64_t start_, bytes_;
};

// Of a library whose manifest names such a file: the one beside it must be that which was written
// with it; check: byte by byte. Success where the weights are inside.
Error check_weights_file(const std::string& library, const std::string& manifest,
                         std::string_view header, Integrity integrity);

}  // namespace tw
