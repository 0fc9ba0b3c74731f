// The data that a model is calibrated and measured on: a folder of tensors or pictures.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "driver/run/tensors.h"
#include "frontend/input_form.h"

namespace tw {

// Inputs of one run each, made when they are asked for.
class SampleSet {
 public:
  // In `folder`: a sub-folder a sample; or .npz and, for a model with one input, .npy, .pb and
  // pictures, each a sample; or one file an input, by its name or as input_0, input_1, ... A tensor
  // whose first dimension is a multiple of the model's is as many samples.
  static Expected<SampleSet> open(const std::string& folder, const std::vector<TensorSpec>& specs,
                                  const InputForms& forms);
  // dims: of free dimensions, "batch=1".
  static Expected<SampleSet> random(int count, const std::vector<TensorSpec>& specs,
                                    const std::vector<std::string>& dims = {});

  size_t size() const { return makers_.size(); }
  Expected<Inputs> at(size_t index) const { return makers_[index](); }
  void keep(size_t count) { makers_.resize(std::min(count, makers_.size())); }

 private:
  std::vector<std::function<Expected<Inputs>()>> makers_;
};

}  // namespace tw
