// Draft, then verify. A sum of the knobs' worth rates many points, the model scores few of them,
// and its scores teach the sum. Measurements may teach the model between explorations.
#include <algorithm>
#include <map>

#include "autotune/explorers/draft_model.h"
#include "autotune/explorers/explorers.h"
#include "autotune/explorers/scored.h"

namespace tw {
namespace {

constexpr size_t kParents = 24;  // points that drafted points are made from

class DraftExplorer final : public ScoredExplorer {
 public:
  DraftExplorer(const Space& space, uint64_t seed, const DraftOptions& options, ScorePoints score,
                ChoosePoints choose)
      : ScoredExplorer(space, seed, 0, 0),
        options_(options),
        score_(std::move(score)),
        choose_(std::move(choose)),
        draft_(space) {}

  void tell(std::span<const Point> points, std::span<const double> seconds) override {
    ScoredExplorer::tell(points, seconds);
    learned_ = !scores_.empty() && options_.again > 0;
  }

 protected:
  std::vector<Point> choose(int planned, int) override {
    if (std::exchange(learned_, false)) explore_again();
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
    if (verify(first)) draft_rounds(options_.rounds);
  }

  // Scores all points anew, as the model has learned since.
  void explore_again() {
    std::vector<Point> points;
    for (const auto& [point, score] : scores_) points.push_back(point);
    keep_scores(points);
    draft_rounds(options_.again);
  }

  // Ends when no drafted point is legal: as when nothing is built any more.
  void draft_rounds(int count) {
    for (int round = 0; round < count; ++round) {
      fit();
      if (!verify(drafted())) return;
    }
  }

  // False: none of the points has a score.
  bool verify(const std::vector<Point>& points) {
    std::vector<Point> fresh;
    for (const Point& point : points)
      if (scores_.emplace(point, 0).second) fresh.push_back(point);
    return keep_scores(fresh);
  }

  bool keep_scores(const std::vector<Point>& points) {
    const std::vector<double> scores = score_(points);
    for (size_t i = 0; i < points.size(); ++i) scores_[points[i]] = scores[i];
    return std::ranges::any_of(
        scores, [](double score) { return score > -std::numeric_limits<double>::infinity(); });
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

  // Drafts half of the points anywhere and half near the best, and keeps those of highest draft
  // score.
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
    std::vector<Point> out = ranked();
    std::erase_if(out, [&](const Point& point) { return seen_.has(point); });
    if (choose_) return choose_(out, count);
    out.resize(std::min(out.size(), static_cast<size_t>(count)));
    return out;
  }

  DraftOptions options_;
  ScorePoints score_;
  ChoosePoints choose_;  // null: the points with the highest scores
  DraftModel draft_;
  std::map<Point, double> scores_;  // scores of all verified points
  bool learned_ = false;            // the model may have learned since
};

}  // namespace

std::unique_ptr<Explorer> draft_explorer(const Space& space, uint64_t seed,
                                         const DraftOptions& options, ScorePoints score,
                                         ChoosePoints choose) {
  return std::make_unique<DraftExplorer>(space, seed, options, std::move(score), std::move(choose));
}

}  // namespace tw
