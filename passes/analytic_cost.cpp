#include "passes/analytic_cost.h"

namespace tw {

namespace {
constexpr double kClock = 3e9;
constexpr double kBytesPerSecond = 2e10;       // between the second and the third cache level
constexpr double kScatteredPerSecond = 1.2e9;  // elements: a load, a store and their addresses each
}  // namespace

double AnalyticCost::seconds(const WorkEstimate& work, const Target& target) const {
  double per_cycle = target.vector_bits >= 512 ? 1 : 2;   // the widest units come singly, narrower ones in pairs
  return work.vector_ops / work.efficiency / (kClock * per_cycle) + work.bytes / kBytesPerSecond + work.scattered / kScatteredPerSecond;
}

}  // namespace tw
