// one-shot, tlp and mtl-tlp: predictors that are trusted as their papers do. They explore once, by
// scores that nothing here changes.
#include "autotune/tuners/tuner.h"

namespace tw {
namespace {

std::unique_ptr<PredictorModel> trusted(const TunerInput& input) {
  const TunerOptions& options = input.options;
  return std::make_unique<PredictorModel>(
      options.predictors, predicted_task(input.task, input.target, options.threads), options.jobs);
}

}  // namespace

SearchParts by_one_shot(const TunerInput& input) {
  std::unique_ptr<CostModel> model = trusted(input);
  AnnealingOptions annealing;  // CC'22, section 5: 512 chains of 160 steps at most
  annealing.chains = 512, annealing.iterations = 160, annealing.random_first = 0;
  annealing.epsilon = 0, annealing.diversity = 1;
  auto explorer = annealing_explorer(input.space, input.seed, annealing,
                                     score_points(input.make, *model, input.options.jobs));
  return {std::move(model), std::move(explorer)};
}

SearchParts by_tlp(const TunerInput& input) {
  std::unique_ptr<CostModel> model = trusted(input);
  GeneticOptions genetic;  // ASPLOS'23: Ansor's generations
  genetic.scored_population = 2048, genetic.random_first = 0, genetic.epsilon = 0;
  auto explorer = genetic_explorer(input.space, input.seed, genetic,
                                   score_points(input.make, *model, input.options.jobs));
  return {std::move(model), std::move(explorer)};
}

}  // namespace tw
