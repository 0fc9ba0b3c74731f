// Prior-guided sampling of tasks (One-Shot Tuner, CC'22, algorithm 1). A layer is drawn number by
// number, each from the layers of networks that share the numbers drawn before. In the paper, the
// product of these chances is a layer's own frequency, so only layers of the table are drawn. Here
// sampling backs off: where few layers share all numbers so far, layers that share fewer of them
// count too. In the end a size may be a new one, near a size of the table.
// them count too, and at the end a size near one that there is.
#pragma once
#include <random>
#include <vector>

#include "autotune/dataset/layer.h"

namespace tw {

struct PriorOptions {
  // If this many layers of the table share all numbers so far, it is as likely to draw from them as
  // to forget a number.
  double back_off = 1.5;
  double fresh = 0.25;  // chance that a size drawn after all numbers were forgotten is new
};

class Prior {
 public:
  // `table` has the layers of networks, as often as they occur, at least one.
  explicit Prior(std::vector<Layer> table, const PriorOptions& options = {});
  // Draws a layer, which may be an impossible one: graph_of tells. Deterministic for equal states
  // of `random`.
  Layer sample(std::mt19937_64& random) const;

 private:
  int64_t draw(LayerKind kind, size_t attribute, std::vector<std::pair<size_t, int64_t>> given,
               std::mt19937_64& random) const;
  std::vector<Layer> table_;
  // Running sums of the kinds' shares, which are the roots of their counts, so that rare kinds come
  // too
  std::vector<double> ends_;
  PriorOptions options_;
};

}  // namespace tw
