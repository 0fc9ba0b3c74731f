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
  // `path` is an .npz file, or a folder. In it: a sub-folder a sample; or .npz and, for a model
  // with one input, .npy, .pb and pictures, each a sample; or one file an input, by its name or as
  // input_0, input_1, ... A tensor whose first dimension is a multiple of the model's is as many
  // samples.
  static Expected<SampleSet> open(const std::string& path, const std::vector<TensorSpec>& specs,
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

// Seeded inputs where there are no data.
struct SampleRequest {
  std::string data;               // as SampleSet::open takes it; "": seeded
  int most = 0;                   // 0: all
  InputForms forms;               // as the compile was given them
  std::vector<std::string> dims;  // "batch=1", of seeded inputs
};
Expected<SampleSet> samples_for(const SampleRequest& request, const std::vector<TensorSpec>& specs);

}  // namespace tw
