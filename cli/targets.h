// Where target descriptions are looked for.
#pragma once
#include <string>
#include <vector>

#include "autotune/models/predictor.h"
#include "ir/target.h"

namespace tw {
// The directories in TILEWRIGHT_CONFIGS (separated by ':'), then share/tilewright/configs of the
// prefix that the program is installed in, then configs/ of the source tree it was built from.
std::vector<std::string> config_dirs();
// Where predictors are looked for: the directories in TILEWRIGHT_PREDICTORS, then
// share/tilewright/predictors likewise.
std::vector<std::string> predictor_dirs();
// Where data sets are, in TILEWRIGHT_DATASETS, then share/tilewright/datasets likewise.
std::vector<std::string> dataset_dirs();
// The predictors of the kind for a target as it was named; with the heads beside its description,
// where these are there.
Expected<std::shared_ptr<const PredictorSet>> predictors_for(const std::string& kind,
                                                             const std::string& target);
// The target with so many virtual threads on its devices; 0: as it says.
void with_virtual_threads(Target& target, int threads);
}  // namespace tw
