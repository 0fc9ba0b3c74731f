// The data that a model is calibrated and measured on: a folder of tensors or pictures.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "driver/run/tensors.h"
#include "frontend/input_form.h"

namespace tw {

// A list of samples. A sample is the inputs of one run; it is made when it is asked for.
class SampleSet {
 public:
  // `path` is an .npz file or a folder. A folder holds one file for each input, named after it or
  // input_0, input_1, ...; or a sub-folder of that kind for each sample; or .npz files and, for a
  // model with one input, .npy, .pb and pictures, each a sample. A tensor whose first dimension is
  // a multiple of the model's holds several samples.
  static Expected<SampleSet> open(const std::string& path, const std::vector<TensorSpec>& specs,
                                  const InputForms& forms);
  // dims are sizes of free dimensions: "batch=1".
  static Expected<SampleSet> random(int count, const std::vector<TensorSpec>& specs,
                                    const std::vector<std::string>& dims = {});

  size_t size() const { return makers_.size(); }
  Expected<Inputs> at(size_t index) const { return makers_[index](); }
  void keep(size_t count) { makers_.resize(std::min(count, makers_.size())); }

 private:
  std::vector<std::function<Expected<Inputs>()>> makers_;
};

// The samples to take: the user's data, or a few seeded inputs where there are none.
struct SampleRequest {
  std::string data;               // path that SampleSet::open reads; "": seeded inputs
  int most = 0;                   // most samples; 0: all
  InputForms forms;               // the forms that the compile was given
  std::vector<std::string> dims;  // "batch=1": sizes of seeded inputs
};
Expected<SampleSet> samples_for(const SampleRequest& request, const std::vector<TensorSpec>& specs);

}  // namespace tw
