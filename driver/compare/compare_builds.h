// Compares two compiled libraries by their manifests, without running them: what changed from one
// to the other.
#pragma once
#include <string>
#include <vector>

#include "driver/compile/manifest.h"

namespace tw {

struct ChangedFact {  // the model, the target, the compiler
  std::string name, before, after;
};
struct ComparedSize {
  std::string name;
  int64_t before = 0, after = 0;
};
struct ChangedKernel {
  std::optional<ManifestKernel> before, after;  // no before: added; no after: removed
};
struct BuildDifference {
  std::vector<ChangedFact> facts;
  std::vector<ComparedSize> sizes;  // all sizes, changed or not
  // Pairs by name; several of one name pair up in order. Equal kernels are left out.
  std::vector<ChangedKernel> kernels;
  size_t equal_kernels = 0;
  size_t other_sources = 0;  // equal kernels whose schedules come from different places
};

struct ComparedBuild {
  Manifest manifest;
  int64_t artifact_bytes = 0;
};
// Errors: no library, or a damaged one.
Expected<ComparedBuild> read_build(const std::string& library);
// Arenas that depend on free dimensions take the sizes of the example in `before`.
Expected<BuildDifference> compare_builds(const ComparedBuild& before, const ComparedBuild& after);

std::string to_string(const BuildDifference& d, int columns);
Json to_json(const BuildDifference& d);

}  // namespace tw
