// What the prior of a data set draws, beside what its networks have.
#pragma once
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/dataset/layer.h"

namespace tw {

struct Sampled {
  std::vector<Layer> table;  // of the networks of training
  std::vector<Layer> drawn;
  int possible = 0;     // of those drawn
  int fresh = 0;        // possible ones that no network has
  int fresh_sizes = 0;  // of these, with a size that no layer of the kind has
  int different = 0;    // of the possible ones
};
// Errors: no task of training is a layer.
Expected<Sampled> sample_layers(DataSet& set, int count, uint64_t seed);

}  // namespace tw
