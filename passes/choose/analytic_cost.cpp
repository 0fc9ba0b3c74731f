#include "passes/choose/analytic_cost.h"

#include "ir/core_rates.h"

namespace tw {

double AnalyticCost::seconds(const WorkEstimate& work, const Target& target) const {
  const CoreRates rates = core_rates(target);
  const double cycles = work.vector_ops / work.efficiency / vector_products(target) +
                        work.bytes / rates.tensor_bytes + work.scattered * rates.scattered;
  return cycles / rates.clock;
}

}  // namespace tw
