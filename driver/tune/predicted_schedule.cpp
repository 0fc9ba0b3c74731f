#include "driver/tune/predicted_schedule.h"

#include <algorithm>
#include <cmath>

#include "autotune/explorers/explorers.h"
#include "autotune/network.h"
#include "ir/kernel/code_size.h"

namespace tw {
namespace {

constexpr int kChosen = 16;           // by all predictors, of what the first one explored
constexpr int64_t kLeastCode = 1024;  // operations that a candidate may always have

}  // namespace

Expected<std::optional<PredictedSchedule>> predict_schedule(const PredictingOptions& options,
                                                            const Task& task, const Target& target,
                                                            const Candidate& usual) {
  std::optional<PredictedSchedule> none;
  Expected<Space> space = options.generated ? generated_space(task, target, {false})
                                            : template_space(task, target, {true});
  if (!space) {
    llvm::consumeError(space.takeError());  // of devices, or of nothing that can be scheduled
    return none;
  }
  const int64_t most_code = std::max(
      kLeastCode, written_out_operations(*usual.kernel, target.lanes(4)) * 3 / 2);
  const MakeCandidate make = [&](const Point& point) -> Expected<Candidate> {
    TW_ASSIGN(Candidate candidate, candidate_of(task, target, *space, point));
    if (written_out_operations(*candidate.kernel, target.lanes(4)) > most_code)
      return make_error(DiagCode::illegal_schedule, "its unrolled loops are too long");
    return candidate;
  };
  const PredictedTask about = predicted_task(task, target, options.threads);
  PredictorModel first(options.predictors, about, 1, 1);
  const std::unique_ptr<Explorer> explorer = draft_explorer(*space, options.seed, {},
                                                            score_points(make, first, 1));
  std::vector<Candidate> candidates = {usual};
  for (const Point& point : explorer->propose(kChosen))
    if (Expected<Candidate> candidate = make(point)) candidates.push_back(std::move(*candidate));
    else llvm::consumeError(candidate.takeError());
  TW_ASSIGN(const std::vector<Prediction> all, options.predictors->predict(about, candidates, 1));
  const auto worth = [](const Prediction& p) { return p.score - p.spread / 2; };
  const auto best = std::ranges::max_element(all, {}, worth) - all.begin();
  if (best == 0) return none;
  const Prediction &chosen = all[static_cast<size_t>(best)], &standard = all[0];
  const double gain = chosen.score - standard.score;
  const double doubt = std::hypot(chosen.spread, standard.spread);
  return PredictedSchedule{
      std::move(candidates[static_cast<size_t>(best)]), gain,
      gain > options.confidence * doubt && options.predictors->has_seen(about)};
}

}  // namespace tw
