// ranker: drafts, then verifies, and lets measurements correct the predictors' scores.
#include "autotune/models/corrected.h"
#include "autotune/tuners/tuner.h"

namespace tw {

SearchParts by_corrected_ranker(const TunerInput& input) {
  const TunerOptions& options = input.options;
  auto model = std::make_unique<CorrectedModel>(predict_by(
      options.predictors, predicted_task(input.task, input.target, options.threads), options.jobs));
  // To build a candidate takes a tenth of what measuring it takes. The first exploration is short:
  // measurements teach more than further scores, and each batch explores again.
  const DraftOptions draft{
      .first = 96, .rounds = 2, .drafted = 1 << 13, .verified = 64, .again = 1};
  auto explorer = corrected_explorer(input.space, input.seed, draft, input.make, *model,
                                     options.jobs);
  return {std::move(model), std::move(explorer)};
}

}  // namespace tw
