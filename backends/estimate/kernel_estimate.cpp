#include "backends/estimate/kernel_estimate.h"

#include <set>

namespace tw::codegen {
namespace {

struct Loop {
  double cycles = 0, iterations = 0, spills = 0;  // sums over all iterations
  std::set<std::string> blocks;                   // names of the function's blocks
};

HotLoop hot_loop(const Loop& loop, const BlockRuns& runs,
                 const std::map<std::string, double>& multiply_adds) {
  HotLoop out{loop.cycles, loop.iterations, 0, loop.spills / loop.iterations};
  for (const std::string& block : loop.blocks) {
    const auto times = runs.blocks.find(block);
    const auto count = multiply_adds.find(block);
    if (times != runs.blocks.end() && count != multiply_adds.end())
      out.multiply_adds += times->second * count->second / loop.iterations;
  }
  return out;
}

}  // namespace

Expected<KernelEstimate> estimate_blocks(const std::vector<MachineBlock>& blocks,
                                         const BlockRuns& runs,
                                         const std::map<std::string, double>& multiply_adds,
                                         BlockCycles& cycles) {
  KernelEstimate out;
  std::map<int, Loop> loops;
  for (const MachineBlock& block : blocks) {
    TW_ASSIGN(const double once, cycles.of(block.instructions));
    out.cycles += block.runs * once;
    out.instructions += block.runs * static_cast<double>(block.instructions.size());
    if (block.loop < 0) continue;
    Loop& loop = loops[block.loop];
    loop.cycles += block.runs * once;
    loop.spills += block.runs * block.spills;
    if (block.header) loop.iterations += block.runs;
    loop.blocks.insert(block.name);
  }
  const Loop* hottest = nullptr;
  for (const auto& [header, loop] : loops)
    if (loop.iterations > 0 && loop.cycles > (hottest ? hottest->cycles : 0)) hottest = &loop;
  if (hottest) out.hot = hot_loop(*hottest, runs, multiply_adds);
  return out;
}

}  // namespace tw::codegen
