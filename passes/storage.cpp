#include "passes/storage.h"

#include <algorithm>

#include "ir/group.h"
#include "ir/simplify.h"

namespace tw {
namespace {

const std::vector<PartCopy> kNoCopies;

bool same_layout(const TensorType& a, const TensorType& b) { return a.layout == b.layout; }

bool is_contiguous_axis(const TensorType& type, size_t axis) {
  Shape physical = physical_shape(type);
  return std::all_of(physical.begin(), physical.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](const Expr& e) { return is_const(e, 1); });
}

// The type of a part with the given extent; its byte count is the offset of the next part.
TensorType with_extent(TensorType type, size_t axis, const Expr& extent) {
  type.shape[axis] = extent;
  return type;
}

bool whole_blocks(const TensorType& type, size_t axis, const Expr& extent) {
  if (type.layout.plain() || type.layout.axis != static_cast<int>(axis)) return true;
  auto known = as_const(extent);
  return known && *known % type.layout.block == 0;
}

}  // namespace

Expr byte_count(const TensorType& type) {
  Expr bytes(dtype_bytes(type.dtype));
  for (const Expr& extent : physical_shape(type)) bytes = bytes * extent;
  return simplify_dim(bytes);
}

bool is_contiguous(const Graph& graph, const Node& concat) {
  auto axis = static_cast<size_t>(std::get<op::Concat>(concat.attrs).axis);
  const TensorType& type = graph.value(concat.output).type;
  return is_contiguous_axis(type, axis) &&
         std::all_of(concat.inputs.begin(), concat.inputs.end(), [&](ValueId part) {
           const TensorType& t = graph.value(part).type;
           return same_layout(t, type) && whole_blocks(type, axis, t.shape[axis]);
         });
}

Storage::Storage(const Graph& graph, const std::vector<Group>& groups)
    : graph_(graph), outputs_(graph.value_count()) {
  // Names come first, as an output may show a value under another shape.
  auto single = [&](const Group& group) -> const Node* {
    return group.nodes.size() == 1 ? &graph.node(group.nodes.front()) : nullptr;
  };
  for (const Group& group : groups)
    if (const Node* node = single(group); node && rename(*node)) done_[group.nodes.front().index];
  for (const Graph::Output& output : graph.outputs())
    outputs_[static_cast<size_t>(of(output.value).root.index)] = true;
  for (const Group& group : groups) {
    const Node* node = single(group);
    if (node && (slice(*node) || concat(*node))) done_[group.nodes.front().index];
  }
}

Residence Storage::of(ValueId v) const {
  std::vector<Residence*> way;
  for (auto found = home_.find(v.index); found != home_.end();
       found = home_.find(found->second.root.index))
    way.push_back(&found->second);
  if (way.empty()) return {v, 0};
  // Shortens the path for the next lookup.
  for (size_t i = way.size() - 1; i-- > 0;)
    *way[i] = {way[i + 1]->root, simplify_dim(way[i]->offset + way[i + 1]->offset)};
  return *way.front();
}

bool Storage::in_place(const Group& group) const {
  return group.nodes.size() == 1 && done_.count(group.nodes.front().index) != 0;
}

const std::vector<PartCopy>& Storage::copies(const Group& group) const {
  auto found = done_.find(group.nodes.front().index);
  return found == done_.end() ? kNoCopies : found->second;
}

bool Storage::rename(const Node& node) {
  bool renames = std::holds_alternative<op::Reshape>(node.attrs) ||
                 std::holds_alternative<op::LayoutCast>(node.attrs);
  if (!renames || node.inputs.empty() || graph_.is_constant(node.inputs[0])) return false;
  const TensorType &in = graph_.value(node.inputs[0]).type, &out = graph_.value(node.output).type;
  bool same = in.layout.plain() && out.layout.plain();
  if (std::holds_alternative<op::LayoutCast>(node.attrs) && !equal(in, out)) {
    if (in.layout.plain() == out.layout.plain()) return false;
    // [N, C, 1, 1] in blocks of a divisor of C is the plain tensor.
    const Layout& blocked = in.layout.plain() ? out.layout : in.layout;
    auto axis = static_cast<size_t>(blocked.axis);
    auto channels = as_const(in.shape[axis]);
    same = channels && *channels % blocked.block == 0 &&
           std::all_of(in.shape.begin() + blocked.axis + 1, in.shape.end(),
                       [](const Expr& e) { return is_const(e, 1); });
  } else if (std::holds_alternative<op::LayoutCast>(node.attrs)) {
    same = true;
  }
  if (same) home_[node.output.index] = {node.inputs[0], 0};
  return same;
}

// Handles a slice of step 1 along one axis, if all dimensions in front of the axis are 1.
bool Storage::slice(const Node& node) {
  const auto* attrs = std::get_if<op::Slice>(&node.attrs);
  if (!attrs || graph_.is_constant(node.inputs[0])) return false;
  const TensorType &in = graph_.value(node.inputs[0]).type, &out = graph_.value(node.output).type;
  if (!same_layout(in, out) || outputs_[static_cast<size_t>(node.output.index)]) return false;
  std::optional<size_t> axis;
  for (size_t i = 0; i < in.shape.size(); ++i) {
    if (equal(Shape{in.shape[i]}, Shape{out.shape[i]}) && is_const(attrs->starts[i], 0) &&
        attrs->steps[i] == 1)
      continue;
    if (axis || attrs->steps[i] != 1) return false;
    axis = i;
  }
  if (!axis) return false;
  const Expr& start = attrs->starts[*axis];
  if (!is_contiguous_axis(in, *axis) || !whole_blocks(in, *axis, start) ||
      !whole_blocks(in, *axis, out.shape[*axis]))
    return false;
  home_[node.output.index] = {node.inputs[0], byte_count(with_extent(in, *axis, start))};
  return true;
}

// Handles a concat if that saves something: at least half of its bytes come from kernels that can
// write in place.
bool Storage::concat(const Node& node) {
  const auto* attrs = std::get_if<op::Concat>(&node.attrs);
  if (!attrs || !is_contiguous(graph_, node)) return false;
  auto axis = static_cast<size_t>(attrs->axis);
  const TensorType& type = graph_.value(node.output).type;
  // A part may be made before its place is known.
  if (is_data_dependent(type.shape[axis])) return false;
  std::map<ValueId, Expr> moved;  // root -> offset
  std::vector<PartCopy> copies;
  Expr extent(0);
  double in_place = 0, all = 0;
  auto weight = [](const Expr& e) {
    return static_cast<double>(eval_int(e, [](std::string_view) { return int64_t{1}; }));
  };
  for (ValueId part : node.inputs) {
    Expr offset = byte_count(with_extent(type, axis, extent)),
         bytes = byte_count(graph_.value(part).type);
    extent = simplify_dim(extent + graph_.value(part).type.shape[axis]);
    ValueId root = of(part).root;
    if (!moved.contains(root) && may_move(part, bytes))
      moved.emplace(root, offset), in_place += weight(bytes);
    else copies.push_back({part, node.output, offset});
    all += weight(bytes);
  }
  if (in_place * 2 < all || all == 0) return false;
  NodeId self = graph_.value(node.output).def;
  for (const auto& [root, offset] : moved) home_[root.index] = {node.output, offset};
  done_[self.index] = std::move(copies);
  return true;
}

// True if a kernel makes the part and the part is the whole of its memory.
bool Storage::may_move(ValueId part, const Expr& bytes) const {
  Residence at = of(part);
  return graph_.def(at.root) && !outputs_[static_cast<size_t>(at.root.index)] &&
         is_const(at.offset, 0) &&
         is_const(simplify_dim(bytes - byte_count(graph_.value(at.root).type)), 0);
}

}  // namespace tw
