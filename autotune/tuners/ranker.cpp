// ranker: drafts, then verifies, and lets measurements correct the predictors' scores.
#include "autotune/models/corrected.h"
#include "autotune/tuners/tuner.h"

namespace tw {

SearchParts by_corrected_ranker(const TunerInput& input) {
  const TunerOptions& options = input.options;
  auto model = std::make_unique<CorrectedModel>(predict_by(
      options.predictors, predicted_task(input.task, input.target, options.threads), options.jobs));
  // Exploring is wide, because measuring costs more.
  const DraftOptions wide{
      .first = 256, .rounds = 4, .drafted = 1 << 15, .verified = 192, .again = 1};
  auto explorer = corrected_explorer(input.space, input.seed, wide, input.make, *model,
                                     options.jobs);
  return {std::move(model), std::move(explorer)};
}

}  // namespace tw
