// gbt: annealing on the scores of trees, which learn from this task and from similar ones.
#include "autotune/candidate.h"
#include "autotune/tuners/tuner.h"

namespace tw {
namespace {

// Most measurements of another task that a model learns from
constexpr size_t kTaught = 256;
// Annealing when features need kernels: only this many are built for a batch.
constexpr int kChains = 32, kSteps = 48;

MeasuredSet measured_set(const SimilarTask& similar, const Target& target) {
  MeasuredSet set;
  const std::vector<std::pair<Candidate, double>> measured = similar.tuner->measured();
  for (size_t i = 0; i < measured.size() && i < kTaught; ++i) {
    const auto& [candidate, seconds] = measured[i];
    Expected<Candidate> whole = candidate_of(*similar.task, target, candidate.variant,
                                             candidate.schedule);
    if (!whole) {
      llvm::consumeError(whole.takeError());
      continue;
    }
    set.candidates.push_back(std::move(*whole));
    set.seconds.push_back(seconds);
  }
  return set;
}

bool learn_from_others(const TunerInput& input, GbtModel& model) {
  std::vector<MeasuredSet> sets;
  for (const SimilarTask& similar : input.similar)
    sets.push_back(measured_set(similar, input.target));
  return !sets.empty() && model.transfer(sets);
}

}  // namespace

SearchParts by_trees(const TunerInput& input) {
  const TunerOptions& options = input.options;
  GbtOptions gbt;
  gbt.objective = options.objective, gbt.top = input.batch, gbt.seed = input.seed & 0x7fffffff,
  gbt.jobs = options.jobs;
  const Features features = options.features->make(input.space);
  auto model = std::make_unique<GbtModel>(features, gbt);
  AnnealingOptions annealing;
  annealing.random_first = options.transfer && learn_from_others(input, *model) ? 0 : input.batch;
  if (!features.of_point) annealing.chains = kChains, annealing.iterations = kSteps;
  auto explorer = annealing_explorer(input.space, input.seed, annealing,
                                     score_points(input.make, *model, options.jobs));
  return {std::move(model), std::move(explorer)};
}

}  // namespace tw
