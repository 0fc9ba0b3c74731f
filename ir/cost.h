// The interface through which passes ask for the cost of a choice. Passes have an analytic oracle,
// autotune has a measured one, and the driver injects either.
#pragma once
#include "ir/target.h"

namespace tw {

// The work of a kernel, as the asking pass counts it
struct WorkEstimate {
  double vector_ops = 0;  // multiply-adds of the widest vectors, padding lanes included
  double efficiency = 1;  // operations of that kind that the kernel reaches a cycle
  double bytes = 0;       // streamed bytes
  double scattered = 0;   // elements moved one by one, for example between layouts
};

class CostOracle {
 public:
  virtual ~CostOracle() = default;
  // Estimated seconds of one run on one core
  virtual double seconds(const WorkEstimate& work, const Target& target) const = 0;
};

}  // namespace tw
