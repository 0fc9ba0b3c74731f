// A predictor that learns from the task's own measurements, by a Gaussian process over its errors
#pragma once
#include <map>
#include <optional>

#include "autotune/explorers/explorers.h"
#include "autotune/models/gaussian.h"
#include "autotune/models/predictor.h"

namespace tw {

// Predictions for candidates of one task, in order
using PredictCandidates = std::function<std::vector<Prediction>(std::span<const Candidate>)>;
PredictCandidates predict_by(std::shared_ptr<const PredictorSet> predictors, PredictedTask task,
                             int jobs);

class CorrectedModel : public CostModel {
 public:
  explicit CorrectedModel(PredictCandidates predict) : predict_(std::move(predict)) {}

  void fit(std::span<const Candidate> candidates, std::span<const double> seconds) override;
  // Scores by the predictors, corrected by the errors that measurements show
  std::vector<double> score(std::span<const Candidate> candidates) override;
  bool knows(const Point& point) const override { return known_.contains(point); }
  // Chooses at most `count` of the points, all of them known, to be measured together. It maximizes
  // expected improvement over the fastest point, and treats each chosen point as measured. So the
  // points are less alike than the `count` with the highest scores. Before any measurement it takes
  // the highest score less half of its spread. All candidates of an algorithm may share an error.
  // Only the first variant, the direct algorithm, has none, because predictors learn from it.
  std::vector<Point> choose(std::span<const Point> points, int count) const;

 private:
  struct Item {
    Point point;
    int variant = 0;
    double score = 0, spread = 0;  // as predicted
    std::vector<float> embedding{};
  };
  std::vector<Item> predicted(std::span<const Candidate> candidates);
  double error_covariance(const Item& a, const Item& b) const;
  double covariance(const Item& a, const Item& b) const;
  std::vector<double> covariances(const Item& item) const;
  std::vector<double> all_covariances() const;
  void learn(const std::vector<double>& speeds);
  double corrected(const Item& item) const;

  PredictCandidates predict_;
  std::map<Point, Item> known_;
  std::vector<Item> measured_;
  std::optional<GaussianProcess> process_;  // over measured_
  double width_ = 1;      // distance of embeddings at which errors are still similar
  double scale_ = 1;      // errors per spread that the predictors state
  double reference_ = 0;  // a score; one error grows with the distance from it
};

// Drafts, then verifies with the model's scores, and measures the batches that the model chooses.
// The space and the model must outlive the explorer.
std::unique_ptr<Explorer> corrected_explorer(const Space& space, uint64_t seed,
                                             const DraftOptions& options, MakeCandidate make,
                                             CorrectedModel& model, int jobs);

}  // namespace tw
