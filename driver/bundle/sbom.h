// What went into a library, as a software bill of materials (CycloneDX 1.5).
#pragma once
#include <string>

#include "driver/compile/manifest.h"
#include "support/json.h"

namespace tw {

struct SbomParts {
  std::string library, library_sha256;  // file name
  std::string model_license;            // name of its text in the bundle; "": none was given
  std::string lock_sha256;              // "": no lock was given
};
// Without times and random numbers: the same for the same parts.
Json sbom(const Manifest& manifest, const SbomParts& parts);

}  // namespace tw
