// Estimates a kernel's code from its blocks.
#pragma once
#include "backends/backend.h"
#include "backends/estimate/block_cycles.h"
#include "backends/estimate/block_runs.h"
#include "backends/estimate/machine_code.h"

namespace tw::codegen {

// `runs` and `multiply_adds` are by the names of the function's blocks. Blocks come in the code's
// order.
Expected<KernelEstimate> estimate_blocks(const std::vector<MachineBlock>& blocks,
                                         const BlockRuns& runs,
                                         const std::map<std::string, double>& multiply_adds,
                                         BlockCycles& cycles);

}  // namespace tw::codegen
