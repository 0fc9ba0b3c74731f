// Gradient-boosted trees by XGBoost's C API, on one thread. Only these two files know XGBoost.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw {

// Rows of equal length; NaN: no value
struct FeatureMatrix {
  size_t columns = 0;
  std::vector<float> values;     // row by row
  std::vector<float> margins{};  // start of the trees' sum, by row; empty: 0
  size_t rows() const { return columns ? values.size() / columns : 0; }
};
struct TrainingData {
  FeatureMatrix features;
  std::vector<float> labels;            // by row
  std::vector<uint32_t> group_sizes{};  // rows are ranked within their group; empty: one group
};
using BoosterParameters = std::vector<std::pair<std::string, std::string>>;

class Booster {
 public:
  Booster(const BoosterParameters& parameters, const TrainingData& data);
  Booster(Booster&&) noexcept;
  Booster& operator=(Booster&&) noexcept;
  ~Booster();

  // Adds a tree, by the objective.
  void update(int round);
  // Adds a tree, by the caller's derivatives.
  void boost(std::vector<float>& gradients, std::vector<float>& hessians);
  std::vector<float> training_scores() const;
  std::vector<float> predict(const FeatureMatrix& features) const;
  // Ignores later trees.
  void keep_rounds(int count) { kept_ = count; }
  std::string bytes() const;  // the serialized model

 private:
  void* data_ = nullptr;
  void* booster_ = nullptr;
  int kept_ = 0;  // 0: all
};

}  // namespace tw
