// The cost model without measurements: it uses the core's rates in the target.
#pragma once
#include "ir/cost.h"

namespace tw {

class AnalyticCost : public CostOracle {
 public:
  double seconds(const WorkEstimate& work, const Target& target) const override;
};

}  // namespace tw
