// How passes edit a Graph: uses are counted, edits keep the name of a node's output, and what an
// edit leaves without users is erased at once.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/queries.h"

namespace tw {

class Rewriter {
 public:
  explicit Rewriter(Graph& graph);
  Graph& graph() { return graph_; }
  bool changed() const { return changed_; }

  const Node& node(NodeId id) const { return graph_.node(id); }
  const TensorType& type(ValueId value) const { return graph_.value(value).type; }
  int uses(ValueId value) const;  // by live nodes (once a use), graph outputs and data symbols

  // A node beside `like`, whose names it derives its own from. Operands must suit: infer failing is
  // a bug of the pass.
  ValueId add(OpAttrs attrs, std::vector<ValueId> inputs, NodeId like, const std::string& suffix);
  ValueId add_constant(const std::string& name, const Tensor& tensor) {
    return graph_.add_constant(name, tensor);
  }
  // The node computes something else from now on; its output keeps identity, name and type.
  void update(NodeId id, OpAttrs attrs, std::vector<ValueId> inputs);
  // Users of the node's output read `by`, of the same type; the node goes.
  void replace(NodeId id, ValueId by);
  // The same with a new constant, which takes over the output's name.
  void replace_by_constant(NodeId id, Blob blob);
  void replace_by_constant(NodeId id, const Tensor& tensor);
  // One an output of the node
  void replace_by_constants(NodeId id, const std::vector<Tensor>& tensors);

 private:
  int& count(ValueId value);
  void release(std::vector<ValueId> values);  // a use less of each
  void swap_names(ValueId a, ValueId b);
  Graph& graph_;
  std::vector<int> uses_;
  bool changed_ = false;
};

}  // namespace tw
