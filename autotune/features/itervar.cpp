// The loop features of AutoTVM (reference: "Learning to Optimize Tensor Programs", and its touch
// extractor): log2(x + 1) of every number.
#include <algorithm>
#include <cmath>

#include "autotune/features/features.h"
#include "autotune/features/statements.h"

namespace tw {
namespace {
using namespace features;

class IterVarRow {
 public:
  explicit IterVarRow(std::vector<std::string>* names) : names_(names) {}
  void add(const std::string& name, double value) {
    values.push_back(static_cast<float>(std::log2(value + 1)));
    if (names_) names_->push_back(name);
  }
  FeatureRow values;

 private:
  std::vector<std::string>* names_;
};

// A statement below a loop, and the loop's depth around it
struct Below {
  const Statement* statement;
  size_t depth;
};

// Iterations of the concurrent loops around a statement: `count` for threads that touch different
// elements, `reuse` for threads that touch the same ones.
struct Threads {
  double count = 1, reuse = 1;
};
Threads threads_of(const Statement& s, const Use& use) {
  Threads out;
  for (size_t i = 0; i < s.loops.size(); ++i) {
    const LoopKind kind = s.loops[i].node->kind;
    if (kind == LoopKind::parallel || is_concurrent(kind))
      (use.moved[i] ? out.count : out.reuse) *= s.loops[i].extent;
  }
  return out;
}

void add_loop(const Kernel& kernel, const stmt::Loop& loop, const std::vector<Below>& below,
              IterVarRow& row) {
  const Statement& first = *below.front().statement;
  const size_t depth = below.front().depth;
  const std::string at = loop.var + ".";
  row.add(at + "length", first.loops[depth].extent);
  row.add(at + "nest_level", static_cast<double>(depth));
  row.add(at + "topdown", first.iterations() / first.iterations(depth + 1));
  double bottomup = 0, add = 0, mul = 0, div = 0;
  for (const auto& [s, d] : below) {
    bottomup = std::max(bottomup, s->iterations(d));
    add += s->floats.add + s->floats.mad, mul += s->floats.mul + s->floats.mad,
        div += s->floats.div;
  }
  row.add(at + "bottomup", bottomup);
  for (int k = 0; k < kLoopKindCount; ++k)
    row.add(at + loop_kind_name(static_cast<LoopKind>(k)), static_cast<int>(loop.kind) == k);
  row.add(at + "reduce", loop.role != AxisRole::spatial);
  row.add(at + "adds", add);
  row.add(at + "muls", mul);
  row.add(at + "divs", div);
  for (const auto& [s, d] : below) {
    for (const Touch& touch : s->touches) {
      for (size_t u = 0; u < touch.uses.size(); ++u) {
        const Use& use = touch.uses[u];
        const std::string name = at + s->store->label + "." + kernel.buffer(touch.buffer).name +
                                 "_" + std::to_string(u) + ".";
        const Threads threads = threads_of(*s, use);
        row.add(name + "stride", stride(kernel, *s, use, d));
        row.add(name + "mod", modulus(use, loop.var));
        row.add(name + "count", count(*s, use, d));
        row.add(name + "reuse", reuse(*s, use, d));
        row.add(name + "thread_count", threads.count);
        row.add(name + "thread_reuse", threads.reuse);
      }
    }
  }
}

}  // namespace

FeatureRow itervar_row(const Kernel& kernel, std::vector<std::string>* names) {
  const std::vector<Statement> statements = statements_of(kernel);
  std::vector<const stmt::Loop*> loops;  // in the order of the text
  visit(kernel.body, [&](const Stmt& s) {
    if (const auto* loop = as<stmt::Loop>(s)) loops.push_back(loop);
  });
  IterVarRow row(names);
  for (const stmt::Loop* loop : loops) {
    std::vector<Below> below;
    for (const Statement& s : statements)
      for (size_t d = 0; d < s.loops.size(); ++d)
        if (s.loops[d].node == loop) below.push_back({&s, d});
    if (!below.empty()) add_loop(kernel, *loop, below, row);
  }
  if (row.values.empty()) row.add("no_loops", 0);
  return row.values;
}

Features itervar_features() {
  return {"itervar", false, [](const Candidate& candidate) {
            return std::vector<FeatureRow>{itervar_row(candidate.run->kernel)};
          }};
}

}  // namespace tw
