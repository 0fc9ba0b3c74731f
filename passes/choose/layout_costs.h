// What operators cost in which layouts, and which they can be in at all: the numbers behind
// assign_layouts.
#pragma once
#include <optional>

#include "ir/cost.h"
#include "passes/pass.h"

namespace tw {

// A cost oracle that knows kernels of the graph, too: where there is one, it has the first word.
class KernelCosts : public CostOracle {
 public:
  // Seconds of the kernel that a node is the heart of, written in that layout; none: not known.
  virtual std::optional<double> kernel(const Graph& graph, const Node& node,
                                       const Layout& out) const = 0;
};

class LayoutCosts {
 public:
  LayoutCosts(const Graph& graph, const Target& target, const CostOracle& oracle)
      : graph_(graph),
        target_(target),
        oracle_(oracle),
        kernels_(dynamic_cast<const KernelCosts*>(&oracle)) {}

  // The layouts that a node's output may take, plain first.
  std::vector<Layout> alternatives(const Node& node) const;
  // Seconds that the node takes to write its output in that layout, its inputs in the layouts it
  // likes best.
  double node(const Node& node, const Layout& out) const;
  // What reading input i adds when it lies in `in`: directly, or after a cast to the layout that
  // the node wants there.
  struct Reading {
    double seconds = 0;
    Layout wanted;  // equal to `in`: read directly
  };
  Reading reading(const Node& node, size_t i, const Layout& in, const Layout& out) const;
  double cast(ValueId v) const;

 private:
  const TensorType& type(ValueId v) const { return graph_.value(v).type; }
  bool may_block(const Node& node, int64_t block) const;
  bool must_match(const Node& node, size_t i, const Layout& out) const;
  double direct(const Node& node, size_t i, const Layout& in, const Layout& out) const;
  double convolution(const Node& node, const Layout& out) const;
  double seconds(const WorkEstimate& work) const { return oracle_.seconds(work, target_); }

  const Graph& graph_;
  const Target& target_;
  const CostOracle& oracle_;
  const KernelCosts* kernels_;  // the oracle, where it is one
};

bool is_depthwise(const Graph& graph, const Node& node);

}  // namespace tw
