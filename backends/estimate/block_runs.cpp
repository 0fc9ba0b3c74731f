#include "backends/estimate/block_runs.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/TargetParser/Triple.h>

#include <vector>

#include "backends/estimate/index_values.h"

namespace tw::codegen {
namespace {

constexpr int64_t kMostVisits = 4'000'000;  // most visits of blocks

using Edge = std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>;
using Runs = std::map<Edge, double>;

// Follows the function as it runs. A loop is followed once if its iterations all take the same way,
// which holds if no branch inside reads its index.
class Walk {
 public:
  explicit Walk(llvm::Function& function)
      : function_(function),
        tree_(function),
        loops_(tree_),
        libraries_(llvm::Triple(function.getParent()->getTargetTriple())),
        library_(libraries_),
        assumptions_(function),
        evolution_(function, library_, assumptions_, tree_, loops_),
        values_(evolution_) {
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
    for (const llvm::BasicBlock* block : order) {
      const llvm::Loop* loop = loops_.getLoopFor(block);
      blocks_[loop].push_back(block);
      if (loop && loop->getHeader() == block) blocks_[loop->getParentLoop()].push_back(block);
    }
  }

  Expected<BlockRuns> run() {
    Runs runs;
    std::map<const llvm::BasicBlock*, double> entering = {{&function_.getEntryBlock(), 1}};
    TW_TRY(body(nullptr, entering, runs));
    BlockRuns out;
    out.blocks[function_.getEntryBlock().getName().str()] = 1;
    for (const auto& [edge, times] : runs) {
      out.blocks[edge.second->getName().str()] += times;
      out.edges[{edge.first->getName().str(), edge.second->getName().str()}] += times;
    }
    return out;
  }

 private:
  // Follows one iteration of the loop, or the function. `entering` counts the entries of each block
  // from within, and ends as the counts of blocks behind the loop.
  Error body(const llvm::Loop* loop, std::map<const llvm::BasicBlock*, double>& entering,
             Runs& runs) {
    std::map<const llvm::BasicBlock*, double> left;
    for (const llvm::BasicBlock* block : blocks_[loop]) {
      const auto found = entering.find(block);
      if (found == entering.end()) continue;
      const double times = found->second;
      std::vector<std::pair<Edge, double>> on;
      if (const llvm::Loop* inner = loops_.getLoopFor(block); inner != loop) {
        TW_TRY(whole_loop(*inner, times, runs, on));
      } else {
        if (++visits_ > kMostVisits)
          return make_error(DiagCode::unsupported,
                            "its branches depend on more loop iterations than are followed, {0}",
                            kMostVisits);
        TW_TRY(leave(*block, times, on));
        for (const auto& [edge, count] : on) runs[edge] += count;
      }
      for (const auto& [edge, count] : on) {
        const bool stays = (!loop || loop->contains(edge.second)) &&
                           !(loop && edge.second == loop->getHeader());
        (stays ? entering : left)[edge.second] += count;
      }
    }
    entering = std::move(left);
    return Error::success();
  }

  // Adds the edges on which the block is left. A loop's latch takes both edges; whole_loop corrects
  // that.
  Error leave(const llvm::BasicBlock& block, double times,
              std::vector<std::pair<Edge, double>>& on) {
    const llvm::Instruction* end = block.getTerminator();
    const unsigned ways = end->getNumSuccessors();
    if (ways == 0) return Error::success();
    const auto add = [&](unsigned way, double count) {
      on.push_back({{&block, end->getSuccessor(way)}, count});
    };
    if (ways == 1) {
      add(0, times);
      return Error::success();
    }
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(end);
    if (!branch)
      return make_error(DiagCode::unsupported, "block '{0}' ends in other than a branch",
                        block.getName());
    const llvm::Loop* loop = loops_.getLoopFor(&block);
    if (loop && loop->isLoopExiting(&block)) {  // whole_loop corrects both
      add(0, times), add(1, times);
      return Error::success();
    }
    const std::optional<llvm::APInt> condition = values_.of(branch->getCondition());
    if (condition) add(condition->isZero() ? 1 : 0, times);
    else add(0, times / 2), add(1, times / 2);
    return Error::success();
  }

  Expected<uint64_t> trips(const llvm::Loop& loop) {
    if (!loop.getExitingBlock() || loop.getExitingBlock() != loop.getLoopLatch())
      return make_error(DiagCode::unsupported, "loop '{0}' is left in its middle", loop.getName());
    const llvm::SCEV* again = evolution_.getBackedgeTakenCount(&loop);
    const std::optional<llvm::APInt> count = llvm::isa<llvm::SCEVCouldNotCompute>(again)
                                                 ? std::nullopt
                                                 : values_.of(again);
    if (!count)
      return make_error(DiagCode::unsupported, "loop '{0}' has no known trip count",
                        loop.getName());
    return count->getLimitedValue() + 1;
  }

  Error whole_loop(const llvm::Loop& loop, double times, Runs& runs,
                   std::vector<std::pair<Edge, double>>& on) {
    std::set<const llvm::Loop*> read = values_.take_read();
    TW_ASSIGN(const uint64_t count, trips(loop));
    const llvm::BasicBlock* latch = loop.getLoopLatch();
    const Edge back = {latch, loop.getHeader()}, out = {latch, loop.getExitBlock()};
    Runs inside;
    for (uint64_t iteration = 0; iteration < count; ++iteration) {
      values_.set(&loop, iteration);
      std::map<const llvm::BasicBlock*, double> entering = {{loop.getHeader(), times}};
      TW_TRY(body(&loop, entering, inside));
      std::set<const llvm::Loop*> read_here = values_.take_read();
      const bool depends = read_here.erase(&loop) > 0;
      read.merge(read_here);
      if (depends || iteration > 0) continue;
      for (auto& [edge, runs_once] : inside) runs_once *= static_cast<double>(count);
      break;
    }
    values_.add_read(read);
    inside[back] = times * static_cast<double>(count - 1);
    inside[out] = times;
    for (const auto& [edge, runs_all] : inside) runs[edge] += runs_all;
    on.push_back({out, times});
    return Error::success();
  }

  llvm::Function& function_;
  llvm::DominatorTree tree_;
  llvm::LoopInfo loops_;
  llvm::TargetLibraryInfoImpl libraries_;
  llvm::TargetLibraryInfo library_;
  llvm::AssumptionCache assumptions_;
  llvm::ScalarEvolution evolution_;
  IndexValues values_;
  // Blocks in the order in which they run: those of a loop itself (null: of no loop), and the
  // headers of loops directly inside it
  std::map<const llvm::Loop*, std::vector<const llvm::BasicBlock*>> blocks_;
  int64_t visits_ = 0;
};

}  // namespace

Expected<BlockRuns> count_block_runs(llvm::Function& function) {
  size_t number = 0;
  for (llvm::BasicBlock& block : function) block.setName("block" + std::to_string(number++) + ".");
  return Walk(function).run();
}

}  // namespace tw::codegen
