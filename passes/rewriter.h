// Editing a graph in a pass. The rewriter counts uses, keeps the name of a node's output, and
// erases at once the nodes that an edit leaves without users.
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
  int uses(ValueId value) const;  // by live nodes (each use), graph outputs and data symbols

  // Adds a node beside `like`, with names made from that one's. The operands must suit: an infer
  // function that fails is a bug of the pass.
  ValueId add(OpAttrs attrs, std::vector<ValueId> inputs, NodeId like, const std::string& suffix);
  ValueId add_constant(const std::string& name, const Tensor& tensor) {
    return graph_.add_constant(name, tensor);
  }
  // Makes the node compute something else; its output keeps identity, name and type.
  void update(NodeId id, OpAttrs attrs, std::vector<ValueId> inputs);
  // Makes users of the node's output read `by`, of the same type, and erases the node.
  void replace(NodeId id, ValueId by);
  // As replace(), by a new constant that takes over the output's name.
  void replace_by_constant(NodeId id, Blob blob);
  void replace_by_constant(NodeId id, const Tensor& tensor);
  void replace_by_constants(NodeId id, const std::vector<Tensor>& tensors);

 private:
  int& count(ValueId value);
  void release(std::vector<ValueId> values);  // takes one use from each
  void swap_names(ValueId a, ValueId b);
  Graph& graph_;
  std::vector<int> uses_;
  bool changed_ = false;
};

}  // namespace tw
