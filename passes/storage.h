// Values that share memory: reshapes and layout casts only rename a value, kernels write parts of a
// concat straight into the concatenated tensor, and readers find a slice inside the sliced tensor.
// All this is decided once, after fusion.
#pragma once
#include <map>

#include "ir/group.h"
#include "passes/pass.h"

namespace tw {

// A value's bytes start `offset` bytes into those of `root`.
struct Residence {
  ValueId root;
  Expr offset = 0;
};

// A part of a concat that no kernel computes in place: it is copied into the concatenated tensor.
struct PartCopy {
  ValueId part, into;
  Expr offset;  // bytes into `into`
};

class Storage {
 public:
  Storage(const Graph& graph, const std::vector<Group>& groups);
  Residence of(ValueId v) const;
  // True if the group has no kernel of its own; copies() may remain
  bool in_place(const Group& group) const;
  const std::vector<PartCopy>& copies(const Group& group) const;

 private:
  bool rename(const Node& node);
  bool slice(const Node& node);
  bool concat(const Node& node);
  bool may_move(ValueId part, const Expr& bytes) const;

  const Graph& graph_;
  // By value index; absent: the value has its own memory
  mutable std::map<int32_t, Residence> home_;
  // By node index, for groups without a kernel
  std::map<int32_t, std::vector<PartCopy>> done_;
  // By value index: true if an output of the graph shows the value
  std::vector<bool> outputs_;
};

Expr byte_count(const TensorType& type);  // size of the physical tensor, with the padding of blocks

// True if the parts of the concat are contiguous in its memory: every physical dimension before its
// axis is 1, and on a blocked axis the parts are whole blocks.
bool is_contiguous(const Graph& graph, const Node& concat);

}  // namespace tw
