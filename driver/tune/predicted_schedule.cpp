#include "driver/tune/predicted_schedule.h"

#include <algorithm>

#include "autotune/candidate.h"
#include "autotune/explorers/explorers.h"
#include "driver/tune/code_check.h"
#include "ir/kernel/code_size.h"
#include "ir/kernel/sharing.h"

namespace tw {
namespace {

constexpr int kChosen = 16;  // points of one predictor's search that all predictors score
// To build a candidate takes 2 to 10 ms, and a network has dozens of kernels.
constexpr DraftOptions kDraft{.first = 48, .rounds = 2, .drafted = 4096, .verified = 40};
constexpr uint64_t kSeed = 1;

}  // namespace

Expected<std::optional<Candidate>> predict_schedule(
    const std::shared_ptr<const PredictorSet>& predictors, double caution, int threads,
    const Task& task, const Target& target, const Candidate& usual, const Kernel* shared) {
  const PredictedTask about = predicted_task(task, target, threads);
  if (!predictors->has_seen(about)) return std::nullopt;
  Expected<Space> space = search_space(task, target, {.rules = false});
  if (!space) {
    llvm::consumeError(space.takeError());  // a device, or nothing that can be scheduled
    return std::nullopt;
  }
  const int64_t most_code = most_operations(usual.run->kernel, target.lanes(4));
  const MakeCandidate make = [&](const Point& point) -> Expected<Candidate> {
    TW_ASSIGN(Candidate candidate, candidate_of(task, target, *space, point));
    TW_TRY(check_code_size(candidate, target, most_code));
    if (shared && !spreads_as_well(candidate.run->kernel, *shared, target.cores))
      return make_error(DiagCode::illegal_schedule, "cores without work");
    return candidate;
  };
  PredictorModel first(predictors, about, 1, 1);
  const std::unique_ptr<Explorer> explorer = draft_explorer(*space, kSeed, kDraft,
                                                            score_points(make, first, 1));
  std::vector<Candidate> candidates = {usual};
  for (const Point& point : explorer->propose(kChosen))
    if (Expected<Candidate> candidate = make(point)) candidates.push_back(std::move(*candidate));
    else llvm::consumeError(candidate.takeError());
  TW_ASSIGN(const std::vector<PredictedGain> gains, predictors->gains(about, candidates, 1));
  const auto sure = [&](const PredictedGain& gain) { return gain.score - caution * gain.spread; };
  std::vector<size_t> order;
  for (size_t i = 1; i < gains.size(); ++i)
    if (sure(gains[i]) > 0) order.push_back(i);
  if (order.empty()) return std::nullopt;
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return sure(gains[i]); });
  const CodeCheck code(target, usual.run->kernel);
  for (const size_t i : order)
    if (!code.refuses(candidates[i].run->kernel)) return std::move(candidates[i]);
  return std::nullopt;
}

}  // namespace tw
