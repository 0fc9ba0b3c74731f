#include "backends/estimate/machine_runs.h"

#include <llvm/CodeGen/MachineBlockFrequencyInfo.h>
#include <llvm/CodeGen/MachineBranchProbabilityInfo.h>
#include <llvm/CodeGen/MachineDominators.h>
#include <llvm/CodeGen/MachineLoopInfo.h>

#include <cmath>
#include <set>

namespace tw::codegen {
namespace {

std::string name_of(const llvm::MachineBasicBlock& block) {
  return block.getBasicBlock() ? block.getBasicBlock()->getName().str() : "";
}

// The function's block that the edge enters. Blocks that code generation put on the edge lead to
// one other block.
const llvm::MachineBasicBlock* behind(const llvm::MachineBasicBlock* block, const BlockRuns& runs) {
  for (int steps = 0; steps < 4; ++steps) {
    if (runs.blocks.contains(name_of(*block)) || block->succ_size() != 1) break;
    block = *block->succ_begin();
  }
  return block;
}

std::optional<double> edge_runs(const llvm::MachineBasicBlock& from,
                                const llvm::MachineBasicBlock& to, const BlockRuns& runs) {
  const auto found = runs.edges.find({name_of(from), name_of(*behind(&to, runs))});
  if (found == runs.edges.end()) return std::nullopt;
  return found->second;
}

// Code generation may test two parts of a condition one after the other. Then the following machine
// block belongs to the same block of the function and has its edges, and every run goes there.
// Null: there is no such block.
const llvm::MachineBasicBlock* rest_of(const llvm::MachineBasicBlock& block,
                                       const BlockRuns& runs) {
  const std::string name = name_of(block);
  if (runs.edges.contains({name, name})) return nullptr;
  const llvm::MachineBasicBlock* rest = nullptr;
  for (const llvm::MachineBasicBlock* next : block.successors()) {
    if (name_of(*next) != name) continue;
    if (rest) return nullptr;  // a choice that the function makes without a branch
    rest = next;
  }
  return rest;
}

// Sets how often each successor is taken, from the edges of the function that the successors stand
// for. A successor without an edge gets the runs that remain.
void set_shares(llvm::MachineBasicBlock& block, const BlockRuns& runs) {
  const auto whole = runs.blocks.find(name_of(block));
  if (block.succ_size() < 2 || whole == runs.blocks.end() || whole->second == 0) return;
  if (const llvm::MachineBasicBlock* rest = rest_of(block, runs)) {
    for (auto next = block.succ_begin(); next != block.succ_end(); ++next)
      block.setSuccProbability(next, *next == rest ? llvm::BranchProbability::getOne()
                                                   : llvm::BranchProbability::getZero());
    return;
  }
  std::vector<double> times;
  double known = 0;
  int unknown = 0;
  for (const llvm::MachineBasicBlock* next : block.successors()) {
    const std::optional<double> edge = edge_runs(block, *next, runs);
    times.push_back(edge.value_or(-1));
    known += edge.value_or(0);
    unknown += !edge;
  }
  // Two unknown edges are a choice that the function makes without a branch.
  if (unknown > 1) return;
  for (double& one : times)
    if (one < 0) one = std::max(0.0, whole->second - known);
  double sum = 0;
  for (const double one : times) sum += one;
  if (sum <= 0) return;
  size_t i = 0;
  for (auto next = block.succ_begin(); next != block.succ_end(); ++next, ++i)
    block.setSuccProbability(
        next, llvm::BranchProbability::getBranchProbability(
                  static_cast<uint64_t>(std::llround(times[i] / sum * (1u << 30))), 1u << 30));
}

// Counts how often the shares enter the machine code of each of the function's blocks.
std::map<std::string, double> entered_by(
    const llvm::MachineFunction& function, const BlockRuns& runs,
    const std::map<const llvm::MachineBasicBlock*, double>& found) {
  std::map<std::string, double> entered;
  for (const llvm::MachineBasicBlock& block : function) {
    const std::string name = name_of(block);
    double& times = entered[name];
    if (block.pred_empty()) times += found.at(&block);
    for (const llvm::MachineBasicBlock* before : block.predecessors()) {
      const double share =
          before->getSuccProbability(llvm::find(before->successors(), &block)).scale(1u << 30) /
          static_cast<double>(1u << 30);
      if (name_of(*before) != name || runs.edges.contains({name, name}))
        times += found.at(before) * share;
    }
  }
  return entered;
}

}  // namespace

std::map<const llvm::MachineBasicBlock*, double> machine_block_runs(llvm::MachineFunction& function,
                                                                    const BlockRuns& runs) {
  for (llvm::MachineBasicBlock& block : function) set_shares(block, runs);
  llvm::MachineDominatorTree tree(function);
  const llvm::MachineLoopInfo loops(tree);
  const llvm::MachineBranchProbabilityInfo probabilities;
  const llvm::MachineBlockFrequencyInfo frequencies(function, probabilities, loops);
  std::map<const llvm::MachineBasicBlock*, double> out;
  for (const llvm::MachineBasicBlock& block : function)
    out[&block] = frequencies.getBlockFreqRelativeToEntryBlock(&block);
  // The shares are guesses where code generation has made choices of its own. The runs of the
  // function's blocks are known, so each block's machine code is scaled to be entered that often.
  std::map<const llvm::MachineBasicBlock*, double> settled = out;
  for (const auto& [name, times] : entered_by(function, runs, out)) {
    const auto wanted = runs.blocks.find(name);
    if (wanted == runs.blocks.end()) continue;
    for (auto& [block, count] : settled)
      if (name_of(*block) == name)
        count = times > 0 ? count * (wanted->second / times) : wanted->second;
  }
  return settled;
}

}  // namespace tw::codegen
