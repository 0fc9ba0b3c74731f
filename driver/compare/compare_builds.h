// What changed from one compiled library to another: by their manifests, without running them.
#pragma once
#include <string>
#include <vector>

#include "driver/compile/manifest.h"

namespace tw {

struct ChangedFact {  // that is not a number: the model, the target, the compiler
  std::string name, before, after;
};
struct ComparedSize {
  std::string name;
  int64_t before = 0, after = 0;
};
struct ChangedKernel {
  std::optional<ManifestKernel> before, after;  // none: added, or removed
};
struct BuildDifference {
  std::vector<ChangedFact> facts;
  std::vector<ComparedSize> sizes;  // all, changed or not
  // By name, those of one name in their order; equal ones are left out
  std::vector<ChangedKernel> kernels;
  size_t equal_kernels = 0;
  size_t other_sources = 0;  // of the equal ones: whose schedules come from elsewhere
};

struct ComparedBuild {
  Manifest manifest;
  int64_t artifact_bytes = 0;
};
// Errors: no library, or a damaged one.
Expected<ComparedBuild> read_build(const std::string& library);
// Where arenas depend on free dimensions, they have the sizes of the first one's example.
Expected<BuildDifference> compare_builds(const ComparedBuild& before, const ComparedBuild& after);

std::string to_string(const BuildDifference& d, int columns);
Json to_json(const BuildDifference& d);

}  // namespace tw
