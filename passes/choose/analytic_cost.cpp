#include "passes/choose/analytic_cost.h"

#include "ir/core_rates.h"

namespace tw {

namespace {
constexpr double kClock = 3e9;
constexpr double kBytesPerSecond = 2e10;       // between the second and the third cache level
constexpr double kScatteredPerSecond = 1.2e9;  // elements: a load, a store and their addresses each
}  // namespace

double AnalyticCost::seconds(const WorkEstimate& work, const Target& target) const {
  return work.vector_ops / work.efficiency / (kClock * core_rates(target).multiply_adds) +
         work.bytes / kBytesPerSecond + work.scattered / kScatteredPerSecond;
}

}  // namespace tw
