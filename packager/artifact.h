// Writes a linked library with its weights grafted behind it, and reads an artifact's manifest
// back. Neither LLVM nor lld ever touches the weights: packing writes straight into the final file.
#pragma once
#include <string>

#include "packager/integrity.h"
#include "packager/link.h"
#include "packager/output_file.h"

namespace tw {

class ArtifactWriter {
 public:
  // Reserves the whole file beside `path`, and writes the library with its last segment and its
  // section .tw_weights pointing at the weights. `image` is linked from a request with a manifest.
  // Weights for 32-bit machines take less than 2 GiB.
  static Expected<ArtifactWriter> create(const std::string& path, const LinkedImage& image,
                                         uint64_t weight_bytes);

  // `offset` counts from the first weight. See OutputFile for memory and threads.
  Error write(uint64_t offset, std::string_view bytes);
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  // Writes the hashes (packager/integrity.h) and gives the file its name. Without this call nothing
  // is left behind.
  Error finish();

 private:
  ArtifactWriter(OutputFile file, uint64_t start, uint64_t bytes)
      : file_(std::move(file)), start_(start), bytes_(bytes) {}
  OutputFile file_;
  uint64_t start_, bytes_;
};

// Tells an ELF file, or an archive of them, from a model. Errors: the file cannot be read.
Expected<bool> is_artifact(const std::string& path);
// The JSON text in the note of a library, an object or a static library. The file may hold any
// bytes: the worst result is an error.
Expected<std::string> read_manifest(const std::string& path,
                                    Integrity integrity = Integrity::check);

}  // namespace tw
