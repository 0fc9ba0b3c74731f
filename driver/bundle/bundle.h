// A bundle is the one file in which a compiled model is passed on. It holds the library, the
// header, licence texts, a list of its parts, and the hash of each part.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "frontend/mapped_file.h"
#include "packager/tar.h"
#include "support/json.h"

namespace tw {

struct BundleRequest {
  std::string library, header;  // paths
  std::string license;          // path of the model's licence; "": none was given
  std::string lock;             // path of the lock that made the library; "": none was given
  std::string output;
};

struct BundlePart {
  std::string name;
  uint64_t bytes = 0;
  std::string wanted, found;  // SHA-256 in the list, and of the bytes found; "": missing
  bool good() const { return !wanted.empty() && wanted == found; }
};
struct Bundle {
  std::string name, compiler, sha256;  // sha256: of the whole file
  std::vector<BundlePart> parts;       // every part in the list or in the archive
  std::string problem;                 // why the file as a whole is no bundle; "": it is one
  bool good() const;
};

// Errors: a library whose bytes have changed, files that cannot be read or written.
Expected<Bundle> write_bundle(const BundleRequest& request);
// Checks any bytes. members gets the archive's members if it can be parsed, even if the bundle is
// not good.
Bundle check_bundle(std::string_view bytes, const std::string& file,
                    std::vector<TarMember>* members = nullptr);
// Looks at the first bytes alone.
Expected<bool> is_bundle(const std::string& path);
Expected<Bundle> read_bundle(const std::string& path);
// If all parts are good, writes them into the folder, which is made if it is missing. Errors: a
// file that exists already or cannot be written; then nothing is left behind.
Expected<Bundle> unpack_bundle(const std::string& path, const std::string& folder);

Json to_json(const Bundle& bundle);
std::string to_string(const Bundle& bundle);  // a table

}  // namespace tw
