// Writes a linked library with its weights grafted behind it: neither LLVM nor lld ever touches
// them, and packing writes straight into the final file. Reads an artifact's manifest back.
#pragma once
#include <string>

#include "packager/integrity.h"
#include "packager/link.h"
#include "packager/output_file.h"

namespace tw {

class ArtifactWriter {
 public:
  // Reserves the whole file beside `path` and writes the library, its last segment and .tw_weights
  // section pointing at the weights. `image` comes from a request with a manifest. 32-bit machines
  // take less than 2 GiB.
  static Expected<ArtifactWriter> create(const std::string& path, const LinkedImage& image,
                                         uint64_t weight_bytes);

  // `offset` counts from the first weight. See OutputFile for memory and threads.
  Error write(uint64_t offset, std::string_view bytes);
  Error fill(uint64_t offset, uint64_t size, llvm::function_ref<Error(std::span<std::byte>)> body);
  // Writes the hashes (packager/integrity.h); the file appears under its name; without it nothing
  // is left behind
  Error finish();

 private:
  ArtifactWriter(OutputFile file, uint64_t start, uint64_t bytes)
      : file_(std::move(file)), start_(start), bytes_(bytes) {}
  OutputFile file_;
  uint64_t start_, bytes_;
};

// Whether the file is ELF, or an archive of it, rather than a model. Errors: it cannot be read.
Expected<bool> is_artifact(const std::string& path);
// The JSON text in the note of a library, an object or a static library. The file may be anything:
// errors, never undefined behaviour.
Expected<std::string> read_manifest(const std::string& path,
                                    Integrity integrity = Integrity::check);

}  // namespace tw
