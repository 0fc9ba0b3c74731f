// How passes ask what a choice costs: analytic in passes, measured in autotune, injected by the driver.
#pragma once
#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace tw {
class CostOracle {
 public:
  virtual ~CostOracle() = default;
  // Estimated seconds of one run of the kernel on one core.
  virtual double seconds(const Kernel& kernel, const Target& target) const = 0;
};
}  // namespace tw
