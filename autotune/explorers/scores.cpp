#include <limits>
#include <set>

#include "autotune/explorers/explorers.h"
#include "support/parallel.h"

namespace tw {
namespace {

class PointScorer {
 public:
  PointScorer(MakeCandidate build, CostModel& model, int jobs)
      : build_(std::move(build)), model_(model), jobs_(jobs) {}

  std::vector<double> operator()(std::span<const Point> points) {
    std::vector<std::optional<Candidate>> built(points.size());
    const auto make = [&](size_t i) -> Error {
      if (illegal_.contains(points[i])) return Error::success();
      if (model_.knows(points[i])) {
        built[i] = Candidate{points[i], {}, nullptr, 0};
      } else if (Expected<Candidate> candidate = build_(points[i])) {
        built[i] = std::move(*candidate);
      } else {
        llvm::consumeError(candidate.takeError());
      }
      return Error::success();
    };
    llvm::cantFail(parallel_for(jobs_, points.size(), make));
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < points.size(); ++i) {
      if (built[i]) candidates.push_back(std::move(*built[i]));
      else illegal_.insert(points[i]);
    }
    const std::vector<double> scores = model_.score(candidates);
    std::vector<double> out(points.size(), -std::numeric_limits<double>::infinity());
    size_t next = 0;
    for (size_t i = 0; i < points.size(); ++i)
      if (built[i]) out[i] = scores[next++];
    return out;
  }

 private:
  MakeCandidate build_;
  CostModel& model_;
  int jobs_;
  std::set<Point> illegal_;
};

}  // namespace

ScorePoints score_points(MakeCandidate build, CostModel& model, int jobs) {
  return [scorer = std::make_shared<PointScorer>(std::move(build), model, jobs)](
             std::span<const Point> points) { return (*scorer)(points); };
}

}  // namespace tw
