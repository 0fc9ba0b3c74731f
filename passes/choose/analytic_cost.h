// The cost model that needs no measurement: the core's rates, as the target has them.
#pragma once
#include "ir/cost.h"

namespace tw {

class AnalyticCost : public CostOracle {
 public:
  double seconds(const WorkEstimate& work, const Target& target) const override;
};

}  // namespace tw
