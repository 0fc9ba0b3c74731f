// Prior-guided sampling of tasks (One-Shot Tuner, CC'22, algorithm 1): layers are drawn number by
// number, each from what networks have beside the numbers that stand already. There the product of
// these chances is a layer's own frequency, so that nothing is drawn that the table does not hold.
// Here they back off: where few layers have all of the numbers so far, those that have fewer of
// them count too, and at the end a size near one that there is.
#pragma once
#include <random>
#include <vector>

#include "autotune/dataset/layer.h"

namespace tw {

struct PriorOptions {
  // Of a number, where so many layers of the table have all numbers before it, as likely as theirs:
  // one that goes by fewer of these
  double back_off = 1.5;
  double fresh = 0.25;  // chance that the last one asked gives a size that no layer has
};

class Prior {
 public:
  // table: layers of networks, as often as they occur; one at least.
  explicit Prior(std::vector<Layer> table, const PriorOptions& options = {});
  // Perhaps one that cannot be: graph_of says so. Deterministic for equal states of `random`.
  Layer sample(std::mt19937_64& random) const;

 private:
  int64_t draw(LayerKind kind, size_t attribute, std::vector<std::pair<size_t, int64_t>> given,
               std::mt19937_64& random) const;
  std::vector<Layer> table_;
  // Of the kinds' shares: the roots of their counts, so that rare ones come too
  std::vector<double> ends_;
  PriorOptions options_;
};

}  // namespace tw
