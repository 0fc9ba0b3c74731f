// Graph passes: one function each, listed in one table; a pipeline is data. Hooks (verify, print,
// time, limit) are the runner's.
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

// A layer whose numbers a pass made shorter than the model's.
struct NarrowedLayer {
  std::string numbers;                        // "bf16"
  int64_t weight_bytes = 0, exact_bytes = 0;  // of its weights, with and without; 0: the same
};

struct PassContext {
  const Target& target;
  int64_t fold_budget_bytes = 64 << 20;  // constant folding may add so much in all
  // Weights keep the size that they have in the model, where a kernel can widen them
  bool keep_small = false;
  std::string report{};               // a line a pass may leave for --time-passes and --stats
  const CostOracle* costs = nullptr;  // what choices cost; null: the analytic model
  // Layers that keep the model's own numbers, and what became of others: by the value they make
  std::set<std::string> exact{};
  std::map<std::string, NarrowedLayer> narrowed{};
};

struct Pass {
  const char* name;  // "fold-constants": file, function, flag and test carry the same words
  const char* summary;
  Expected<bool> (*run)(Graph&, PassContext&);  // true: something changed
};
const std::vector<Pass>& all_passes();  // passes/all_passes.cpp
const Pass* find_pass(std::string_view name);
std::vector<std::string> default_pipeline();  // passes/pipelines.cpp

struct RunOptions {
  bool verify_each = false;
  int limit = -1;                        // stop after so many passes (bisecting)
  std::vector<std::string> print_after;  // names, or "all"
  bool print_changed = false;
  // Where printed graphs go
  std::function<void(const std::string& title, const std::string& text)> print;
  std::function<void(const std::string& pass, double seconds, bool changed,
                     const std::string& report)>
      on_pass;
};
// The graphs inside of nodes first, the innermost before those around them.
Error run_passes(Graph& graph, PassContext& context, const std::vector<std::string>& pipeline,
                 const RunOptions& options = {});

}  // namespace tw
