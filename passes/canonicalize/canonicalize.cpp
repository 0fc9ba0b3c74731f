// before: %a = transpose(%x) perm=[0,2,1]  %b = transpose(%a) perm=[0,2,1]  %c = add(%b, const 0)
//         output %c
// after:  output %x
// Runs the rules until none applies. Every rule makes the graph smaller, or moves a node once
// towards one normal form. Constants stand on the right of commutative operators, and on the left
// of min and max, where a NaN of the other operand comes through. Subtraction and division by
// constants are addition and multiplication. Why here: the other passes then need to know one form
// only.
#include "passes/canonicalize/canonicalize.h"

#include <map>

#include "passes/passes.h"

namespace tw {
namespace {

constexpr int kMaxSweeps = 1000;

const Rule* apply_one(Rewriter& rewriter, NodeId id, std::span<const Rule> rules) {
  for (const Rule& rule : rules)
    if (rule.apply(rewriter, id)) return &rule;
  return nullptr;
}

bool sweep(Rewriter& rewriter, std::map<std::string, int>& applied) {
  bool any = false;
  for (NodeId id : rewriter.graph().order()) {
    for (std::span<const Rule> rules :
         {element_wise_rules(), movement_rules(), contraction_rules(), normalization_rules()}) {
      if (rewriter.node(id).erased || rewriter.uses(rewriter.node(id).output) == 0) break;
      const Rule* rule = apply_one(rewriter, id, rules);
      if (!rule) continue;
      ++applied[rule->name];
      any = true;
    }
  }
  return any;
}

}  // namespace

Expected<bool> canonicalize(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  std::map<std::string, int> applied;
  for (int sweeps = 0; sweep(rewriter, applied); ++sweeps)
    TW_CHECK(sweeps < kMaxSweeps, "the rules of canonicalize go in a circle");
  for (const auto& [name, count] : applied)
    context.report +=
        llvm::formatv("{0}{1} {2}", context.report.empty() ? "" : ", ", count, name).str();
  return rewriter.changed();
}

}  // namespace tw
