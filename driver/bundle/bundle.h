// One file with all that a compiled model is handed on with: library, header, licence texts, a list
// of what is in it, and the hash of each part.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "frontend/mapped_file.h"
#include "packager/tar.h"
#include "support/json.h"

namespace tw {

struct BundleRequest {
  std::string library, header;  // files
  std::string license;          // of the model: a file; "": none was given
  std::string lock;             // that the library was compiled with; "": none was given
  std::string output;
};

struct BundlePart {
  std::string name;
  uint64_t bytes = 0;
  std::string wanted, found;  // SHA-256 of the list, and of the bytes; "": not there
  bool good() const { return !wanted.empty() && wanted == found; }
};
struct Bundle {
  std::string name, compiler, sha256;  // sha256: of the whole file
  std::vector<BundlePart> parts;       // all that the list or the archive has
  std::string problem;                 // what makes it no bundle as a whole; "": nothing
  bool good() const;
};

// Errors: a library whose bytes have changed, files that cannot be read or written.
Expected<Bundle> write_bundle(const BundleRequest& request);
// Of any bytes. members gets what is in them when all is good.
Bundle check_bundle(std::string_view bytes, const std::string& file,
                    std::vector<TarMember>* members = nullptr);
// Whether the file begins as a bundle does.
Expected<bool> is_bundle(const std::string& path);
Expected<Bundle> read_bundle(const std::string& path);
// Writes the parts into the folder, which is made where it is missing, if all of them are good.
// Errors: a file that is there already, or cannot be written; none of them stays then.
Expected<Bundle> unpack_bundle(const std::string& path, const std::string& folder);

Json to_json(const Bundle& bundle);
std::string to_string(const Bundle& bundle);  // a table

}  // namespace tw
