// A software bill of materials (CycloneDX 1.5): the model, the runtime and the tools in a library.
#pragma once
#include <string>

#include "driver/compile/manifest.h"
#include "support/json.h"

namespace tw {

struct SbomParts {
  std::string library, library_sha256;  // library: its file name
  std::string model_license;            // member name of the licence's text; "": none was given
  std::string lock_sha256;              // "": no lock was given
};
// Contains no time and no random number: equal parts give equal bytes.
Json sbom(const Manifest& manifest, const SbomParts& parts);

}  // namespace tw
