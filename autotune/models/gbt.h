// Gradient-boosted trees over features of candidates, as AutoTVM trains them: anew after every
// batch, on throughput relative to the task's best.
#pragma once
#include <map>
#include <optional>

#include "autotune/features/features.h"
#include "autotune/models/booster.h"

namespace tw {

enum class Objective : uint8_t {
  rank,        // pairs in the right order
  regression,  // squared error of the relative throughput
};

struct GbtOptions {
  Objective objective = Objective::rank;
  int depth = 3, rounds = 8000;
  double eta = 0.3, gamma = 1e-4, min_child_weight = 1, lambda = 1, alpha = 0;
  // Training ends after this many rounds without a better recall of the training data's best
  // candidates
  int patience = 20;
  int top = 64;  // number of best candidates in the recall
  uint64_t seed = 1;
  int jobs = 1;  // threads that compute features
  // Limits for the model of similar tasks. It needs at least transfer_least measurements.
  int transfer_least = 64, transfer_rounds = 400, transfer_patience = 100;
};

// The mean over i <= top of a share: of the i best candidates by label, those that are among the i
// best by score
double average_recall(std::span<const float> scores, std::span<const float> labels, int top);

class GbtModel : public CostModel {
 public:
  GbtModel(Features features, GbtOptions options)
      : features_(std::move(features)), options_(options) {}

  void fit(std::span<const Candidate> candidates, std::span<const double> seconds) override;
  std::vector<double> score(std::span<const Candidate> candidates) override;
  bool transfer(std::span<const MeasuredSet> sets) override;
  bool knows(const Point& point) const override {
    return in_space(point) && (features_.of_point || known_.contains(point));
  }

  std::string bytes() const;  // bytes of the trees in use; equal for equal data and seed

 private:
  using Rows = std::vector<FeatureRow>;
  struct Parts {  // rows of all candidates, one after the other
    FeatureMatrix matrix;
    std::vector<uint32_t> counts;  // number of rows, by candidate
  };
  struct Trained {
    Booster booster;
    size_t columns;
  };
  Parts parts_of(std::span<const Candidate> candidates, size_t columns, bool keep);
  const Rows& rows_of(const Candidate& candidate) const;
  Trained train(Parts parts, const std::vector<float>& labels, const std::vector<uint32_t>& groups,
                int rounds, int patience, int top) const;
  BoosterParameters parameters() const;
  std::vector<float> base_margins(const Parts& parts, std::span<const Candidate> candidates);

  Features features_;
  GbtOptions options_;
  std::map<Point, Rows> known_;
  std::optional<Trained> own_, base_;  // base_ is the model of similar tasks
  double base_weight_ = 1;             // weight of base_: halves after every `top` measurements
};

}  // namespace tw
