// The cost model that needs no measurement: rates of a middling core, whose ratios matter and not their size.
#pragma once
#include "ir/cost.h"

namespace tw {

class AnalyticCost : public CostOracle {
 public:
  double seconds(const WorkEstimate& work, const Target& target) const override;
};

// What a core does in a cycle, where chips differ so much that other algorithms pay.
struct CoreRates {
  double multiply_adds = 1;      // of the widest vectors, started
  double sums = 1;               // speed of additions through the first two caches, which transforms consist of, against Zen 4's
  double l2_bytes = 32, l3_bytes = 20, memory_bytes = 8;   // read by one core alone
};
CoreRates core_rates(const Target& target);

}  // namespace tw
