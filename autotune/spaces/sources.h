// The two sources of a space's sketches
#pragma once
#include <memory>
#include <vector>

#include "autotune/space.h"

namespace tw {

// A sketch for each variant, in order: its own schedule, with the decisions open
std::vector<Sketch> template_sketches(const Task& task, const std::shared_ptr<const Target>& target,
                                      const SpaceOptions& options);
// The sketches that the structure of each variant's kernel allows; those of which some point is
// legal. Errors: a variant whose operands cannot be arranged
Expected<std::vector<Sketch>> generated_sketches(const Task& task,
                                                 const std::shared_ptr<const Target>& target,
                                                 const SpaceOptions& options);

}  // namespace tw
