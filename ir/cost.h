// How passes ask what a choice costs: analytic in passes, measured in autotune, injected by the
// driver.
#pragma once
#include "ir/target.h"

namespace tw {

// What a kernel does, as the pass that asks counts it.
struct WorkEstimate {
  double vector_ops = 0;  // multiply-adds of the widest vectors, lanes of padding included
  double efficiency = 1;  // of one such operation a cycle that this kind of kernel reaches
  double bytes = 0;       // streamed
  double scattered = 0;   // elements that are moved one by one, as between layouts
};

class CostOracle {
 public:
  virtual ~CostOracle() = default;
  // Estimated seconds of one run on one core.
  virtual double seconds(const WorkEstimate& work, const Target& target) const = 0;
};

}  // namespace tw
