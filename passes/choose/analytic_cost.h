// The cost model that needs no measurement: rates of a middling core, whose ratios matter and not
// their size.
#pragma once
#include "ir/cost.h"

namespace tw {

class AnalyticCost : public CostOracle {
 public:
  double seconds(const WorkEstimate& work, const Target& target) const override;
};

}  // namespace tw
