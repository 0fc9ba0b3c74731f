// Graph passes. A pass is one function, listed in one table, and a pipeline is data. Only the
// runner verifies, prints, times and limits passes.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/cost.h"
#include "ir/graph/graph.h"

namespace tw {

// A layer for which a pass uses shorter numbers than the model's.
struct NarrowedLayer {
  std::string numbers;                        // "bf16"
  int64_t weight_bytes = 0, exact_bytes = 0;  // bytes of its weights, short and exact; 0: unchanged
};

struct PassContext {
  const Target& target;
  int64_t fold_budget_bytes = 64 << 20;  // bytes that constant folding may add in all
  // Weights keep the size that they have in the model if a kernel can widen them
  bool keep_small = false;
  std::string report{};               // a line that a pass may leave for --time-passes and --stats
  const CostOracle* costs = nullptr;  // costs of choices; null: the analytic model
  // Layers that keep the model's own numbers, and the results for others; by the value they make
  std::set<std::string> exact{};
  std::map<std::string, NarrowedLayer> narrowed{};
};

struct Pass {
  const char* name;  // "fold-constants": the same words name the file, function, flag and test
  const char* summary;
  Expected<bool> (*run)(Graph&, PassContext&);  // true: something changed
};
const std::vector<Pass>& all_passes();  // passes/all_passes.cpp
const Pass* find_pass(std::string_view name);
std::vector<std::string> default_pipeline();  // passes/pipelines.cpp

struct RunOptions {
  bool verify_each = false;
  int limit = -1;                        // the number of passes to run, for bisecting; -1: all
  std::vector<std::string> print_after;  // names of passes, or "all"
  bool print_changed = false;
  // Receives printed graphs
  std::function<void(const std::string& title, const std::string& text)> print;
  std::function<void(const std::string& pass, double seconds, bool changed,
                     const std::string& report)>
      on_pass;
};
// Runs the pipeline on the regions of nodes first, the innermost before those around them.
Error run_passes(Graph& graph, PassContext& context, const std::vector<std::string>& pipeline,
                 const RunOptions& options = {});

}  // namespace tw
