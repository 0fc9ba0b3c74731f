#include "passes/analytic_cost.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tw {

namespace {
constexpr double kClock = 3e9;
constexpr double kBytesPerSecond = 2e10;       // between the second and the third cache level
constexpr double kScatteredPerSecond = 1.2e9;  // elements: a load, a store and their addresses each
// LLVM's names of chips with two units of 512 bits; on others, and where the chip is not known, there is one.
constexpr std::array<std::string_view, 11> kTwoWideUnits = {"skx", "skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids",
                                                            "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids", "znver5"};
}  // namespace

double wide_multiply_adds(const Target& target) { return target.vector_bits < 512 || std::ranges::find(kTwoWideUnits, target.cpu) != kTwoWideUnits.end() ? 2 : 1; }

double AnalyticCost::seconds(const WorkEstimate& work, const Target& target) const {
  return work.vector_ops / work.efficiency / (kClock * wide_multiply_adds(target)) + work.bytes / kBytesPerSecond + work.scattered / kScatteredPerSecond;
}

}  // namespace tw
