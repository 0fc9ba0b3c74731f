// The costs of operators in each layout, and the layouts that they can have at all. These are the
// numbers behind assign_layouts.
#pragma once
#include <optional>

#include "ir/cost.h"
#include "passes/pass.h"

namespace tw {

// A cost oracle that also knows kernels of the graph. A known kernel's time overrides the estimate.
class KernelCosts : public CostOracle {
 public:
  // Seconds of the kernel around a node that writes this layout; nullopt: unknown.
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

  // The layouts that a node's output may have, plain first.
  std::vector<Layout> alternatives(const Node& node) const;
  // Seconds that the node takes to write its output in this layout, with each input in its best
  // layout.
  double node(const Node& node, const Layout& out) const;
  // The cost that input i adds if it lies in `in`: of reading it directly, or after a cast to the
  // layout that the node wants.
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
  const KernelCosts* kernels_;  // the oracle, if it is a KernelCosts
};

bool is_depthwise(const Graph& graph, const Node& node);

}  // namespace tw
