// `compile --verify`: runs a library that was just made, and judges its outputs.
#pragma once
#include <string>
#include <vector>

#include "driver/accuracy/samples.h"
#include "driver/compare/verify.h"

namespace tw {

struct VerifyLibrary {
  std::string library, model;  // model: the ONNX file it was compiled from
  SampleRequest samples;       // dims: by default the sizes of the library's example
  double tolerance = 1e-4;     // share of an output's range
  LibraryPlace place;
};

struct VerifiedLibrary {
  size_t samples = 0;
  std::string machine;                  // machine that ran the library
  std::vector<VerifiedOutput> outputs;  // for each output, the sample that is farthest off
  std::vector<std::string> warnings;
  bool same() const;
};

// Errors: a library that nothing here runs, data that do not fit.
Expected<VerifiedLibrary> verify_library(VerifyLibrary request, const OnStage& stage);

// The identity of data in a file or a folder: SHA-256 of all files' names and bytes.
Expected<std::string> data_hash(const std::string& path);

}  // namespace tw
