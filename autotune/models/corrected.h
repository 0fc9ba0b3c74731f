// A predictor that learns from the task's own measurements: a Gaussian process over what it misses.
#pragma once
#include <map>
#include <optional>

#include "autotune/explorers/explorers.h"
#include "autotune/models/gaussian.h"
#include "autotune/models/predictor.h"

namespace tw {

// Of candidates of one task, in order.
using PredictCandidates = std::function<std::vector<Prediction>(std::span<const Candidate>)>;
PredictCandidates predict_by(std::shared_ptr<const PredictorSet> predictors, PredictedTask task,
                             int jobs);

class CorrectedModel : public CostModel {
 public:
  explicit CorrectedModel(PredictCandidates predict) : predict_(std::move(predict)) {}

  void fit(std::span<const Candidate> candidates, std::span<const double> seconds) override;
  // The predictors' scores and what the measurements say of their errors.
  std::vector<double> score(std::span<const Candidate> candidates) override;
  bool knows(const Point& point) const override { return known_.contains(point); }
  // At most `count` of points that it knows, to be measured together: by expected improvement over
  // the fastest, each chosen as if the ones before it had been measured. So they are less alike
  // than the `count` with the highest scores. Before any measurement the first one has the highest
  // score, less half of what it may be off. All of an algorithm may be off together, but for those
  // of the first variant, the direct one, which predictors learn from.
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
  double width_ = 1;      // a distance of embeddings at which errors are somewhat alike
  double scale_ = 1;      // of errors, over the spreads that predictors state
  double reference_ = 0;  // a score: errors may grow with the distance from it
};

// Drafts, then verifies: by the model's scores, and with batches that it chooses. The space and the
// model must outlive the explorer.
std::unique_ptr<Explorer> corrected_explorer(const Space& space, uint64_t seed,
                                             const DraftOptions& options, MakeCandidate make,
                                             CorrectedModel& model, int jobs);

}  // namespace tw
