// Draft, then verify: many points by a sum of their knobs' worth, few of them by the model, whose
// scores teach the sum. Nothing of it waits for measurements.
#include <algorithm>
#include <map>

#include "autotune/explorers/draft_model.h"
#include "autotune/explorers/explorers.h"
#include "autotune/explorers/scored.h"

namespace tw {
namespace {

constexpr size_t kParents = 24;  // points that drafted ones are made from

class DraftExplorer final : public ScoredExplorer {
 public:
  DraftExplorer(const Space& space, uint64_t seed, const DraftOptions& options, ScorePoints score)
      : ScoredExplorer(space, seed, 0, 0),
        options_(options),
        score_(std::move(score)),
        draft_(space) {}

 protected:
  std::vector<Point> choose(int planned, int) override {
    std::vector<Point> out = best_unseen(planned);
    for (int i = 0; static_cast<int>(out.size()) < planned && i < kTries; ++i) {
      explore();
      out = best_unseen(planned);
    }
    return out;
  }

 private:
  static constexpr int kTries = 2;

  void explore() {
    std::vector<Point> first = space_.starts();
    if (const std::optional<Point> usual = space_.default_point()) first.push_back(*usual);
    while (static_cast<int>(first.size()) < options_.first) first.push_back(space_.sample(random_));
    verify(first);
    for (int round = 0; round < options_.rounds; ++round) {
      fit();
      verify(drafted());
    }
  }

  void verify(const std::vector<Point>& points) {
    std::vector<Point> fresh;
    for (const Point& point : points)
      if (scores_.emplace(point, 0).second) fresh.push_back(point);
    const std::vector<double> scores = score_(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) scores_[fresh[i]] = scores[i];
  }

  void fit() {
    std::vector<Point> points;
    std::vector<double> scores;
    for (const auto& [point, score] : scores_) points.push_back(point), scores.push_back(score);
    draft_.fit(points, scores);
  }

  std::vector<Point> ranked() const {
    std::vector<std::pair<double, const Point*>> order;
    for (const auto& [point, score] : scores_)
      if (score > -std::numeric_limits<double>::infinity()) order.push_back({-score, &point});
    std::ranges::stable_sort(order, {}, &std::pair<double, const Point*>::first);
    std::vector<Point> out;
    for (const auto& [score, point] : order) out.push_back(*point);
    return out;
  }

  // A half anywhere, a half near the best.
  std::vector<Point> drafted() {
    std::vector<Point> parents = ranked();
    parents.resize(std::min(parents.size(), kParents));
    Best best(options_.verified);
    for (int i = 0; i < options_.drafted; ++i) {
      Point point;
      if (parents.empty() || i % 2 == 0) {
        point = space_.sample(random_);
      } else {
        const Point &a = parents[random_() % parents.size()],
                    &b = parents[random_() % parents.size()];
        point = space_.mutate(i % 4 == 1 ? space_.cross(a, b, random_) : a, random_);
      }
      if (!scores_.contains(point)) best.offer(point, draft_.score(point));
    }
    return best.points();
  }

  std::vector<Point> best_unseen(int count) const {
    std::vector<Point> out;
    for (const Point& point : ranked())
      if (static_cast<int>(out.size()) < count && !seen_.has(point)) out.push_back(point);
    return out;
  }

  DraftOptions options_;
  ScorePoints score_;
  DraftModel draft_;
  std::map<Point, double> scores_;  // of all that were verified
};

}  // namespace

std::unique_ptr<Explorer> draft_explorer(const Space& space, uint64_t seed,
                                         const DraftOptions& options, ScorePoints score) {
  return std::make_unique<DraftExplorer>(space, seed, options, std::move(score));
}

}  // namespace tw
