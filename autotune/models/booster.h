// Gradient-boosted trees by XGBoost's C API, on one thread. The only file that knows it.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw {

// Rows of equal length; NaN: absent.
struct FeatureMatrix {
  size_t columns = 0;
  std::vector<float> values;     // row by row
  std::vector<float> margins{};  // by row, what the trees' sum starts from; empty: 0
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

  // One more tree, by the objective
  void update(int round);
  // One more, by the caller's derivatives
  void boost(std::vector<float>& gradients, std::vector<float>& hessians);
  // Of the training rows
  std::vector<float> training_scores() const;
  std::vector<float> predict(const FeatureMatrix& features) const;
  // Later trees no longer count
  void keep_rounds(int count) { kept_ = count; }
  std::string bytes() const;  // the model

 private:
  void* data_ = nullptr;
  void* booster_ = nullptr;
  int kept_ = 0;  // 0: all
};

}  // namespace tw
