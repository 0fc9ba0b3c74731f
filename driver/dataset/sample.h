// Draws layers from the prior of a data set, and compares them with the layers of its networks.
#pragma once
#include <vector>

#include "autotune/dataset/dataset.h"
#include "autotune/dataset/layer.h"

namespace tw {

struct Sampled {
  std::vector<Layer> table;  // layers of the training networks
  std::vector<Layer> drawn;
  int possible = 0;     // drawn layers that make a valid graph
  int fresh = 0;        // possible layers that no network has
  int fresh_sizes = 0;  // fresh layers with a size that no layer of their kind has
  int different = 0;    // distinct possible layers
};
// Errors: no training task is a layer.
Expected<Sampled> sample_layers(DataSet& set, int count, uint64_t seed);

}  // namespace tw
