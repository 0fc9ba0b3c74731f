// The folders of target descriptions, predictors and data sets.
#pragma once
#include <string>
#include <vector>

#include "autotune/models/predictor.h"
#include "ir/target.h"

namespace tw {
// The directories in TILEWRIGHT_CONFIGS (separated by ':'), then share/tilewright/configs of the
// prefix that the program is installed in, then configs/ of the source tree it was built from.
std::vector<std::string> config_dirs();
// The directories in TILEWRIGHT_PREDICTORS, then share/tilewright/predictors likewise.
std::vector<std::string> predictor_dirs();
// The directories in TILEWRIGHT_DATASETS, then share/tilewright/datasets likewise.
std::vector<std::string> dataset_dirs();
// The predictors of a kind for a target, which is a name or a path. The best kind has the heads
// beside the target's description, if there are any.
Expected<std::shared_ptr<const PredictorSet>> predictors_for(const std::string& kind,
                                                             const std::string& target);
// Sets the number of virtual threads on the target's devices; 0: leaves it as it is.
void with_virtual_threads(Target& target, int threads);
}  // namespace tw
