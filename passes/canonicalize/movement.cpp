// Rules for operators that move data (transpose, reshape, expand, slice, concat, gather, pad,
// resize, layout casts), and for pools and reductions without effect.
#include <algorithm>
#include <set>
#include <string>

#include "passes/canonicalize/canonicalize.h"

namespace tw {
namespace {

bool all_are(const Shape& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(),
                     [&](const Expr& e) { return is_const(e, wanted); });
}
bool all_are(const Ints& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

// True if the node passes its first input through unchanged. The caller compares the types.
bool copies_input(const Rewriter& rewriter, const Node& node) {
  const OpAttrs& attrs = node.attrs;
  if (const op::Transpose* transpose = std::get_if<op::Transpose>(&attrs))
    return std::is_sorted(transpose->perm.begin(), transpose->perm.end());
  if (const op::Slice* slice = std::get_if<op::Slice>(&attrs))
    return all_are(slice->starts, 0) && all_are(slice->steps, 1);
  if (const op::Pad* pad = std::get_if<op::Pad>(&attrs))
    return all_are(pad->begins, 0) && all_are(pad->ends, 0);
  if (const op::Resize* resize = std::get_if<op::Resize>(&attrs))
    return std::all_of(resize->scales.begin(), resize->scales.end(),
                       [](double scale) { return scale == 1; });
  if (const op::Pool* pool = std::get_if<op::Pool>(&attrs))
    return all_are(pool->kernel, 1) && all_are(pool->strides, 1) && all_are(pool->pads, 0);
  if (std::holds_alternative<op::Concat>(attrs)) return node.inputs.size() == 1;
  if (const op::LayoutCast* cast = std::get_if<op::LayoutCast>(&attrs)) {
    const Layout& layout = rewriter.type(node.inputs[0]).layout;
    return layout.block == cast->block && (layout.plain() || layout.axis == cast->axis);
  }
  return std::holds_alternative<op::Reshape>(attrs) || std::holds_alternative<op::Expand>(attrs);
}

bool drop_copy(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (node.inputs.empty() || !copies_input(rewriter, node)) return false;
  if (!equal(rewriter.type(node.inputs[0]), rewriter.type(node.output))) return false;
  rewriter.replace(id, node.inputs[0]);
  return true;
}

// transpose(transpose(x)) is one transpose.
bool merge_transposes(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Transpose* outer = get_if<op::Transpose>(&node);
  if (!outer) return false;
  const Node* maker = rewriter.graph().def(node.inputs[0]);
  const op::Transpose* inner = get_if<op::Transpose>(maker);
  if (!inner) return false;
  op::Transpose merged = *outer;
  for (int64_t& axis : merged.perm) axis = inner->perm[static_cast<size_t>(axis)];
  rewriter.update(id, merged, {maker->inputs[0]});
  return true;
}

// A transpose that only moves axes of extent 1 is a reshape.
bool transpose_as_reshape(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Transpose* transpose = get_if<op::Transpose>(&node);
  if (!transpose) return false;
  const Shape& shape = rewriter.type(node.inputs[0]).shape;
  int64_t last = -1;
  for (int64_t axis : transpose->perm) {
    if (is_const(shape[static_cast<size_t>(axis)], 1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  rewriter.update(id, op::Reshape{rewriter.type(node.output).shape}, {node.inputs[0]});
  return true;
}

// reshape(reshape(x)) is one reshape, expand(expand(x)) one expand, a layout cast of a layout cast
// one layout cast. An exact expand stays, as it checks sizes.
bool merge_same_movement(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  bool forgets = std::holds_alternative<op::Reshape>(node.attrs) ||
                 std::holds_alternative<op::Expand>(node.attrs) ||
                 std::holds_alternative<op::LayoutCast>(node.attrs);
  if (!forgets) return false;
  const Node* maker = rewriter.graph().def(node.inputs[0]);
  if (!maker || maker->attrs.index() != node.attrs.index()) return false;
  for (const Node* one : {&node, maker})
    if (const auto* expand = get_if<op::Expand>(one); expand && expand->exact) return false;
  rewriter.update(id, OpAttrs(node.attrs), {maker->inputs[0]});
  return true;
}

// slice(slice(x)): out[i] = x[s1 + t1 * (s2 + t2 * i)].
bool merge_slices(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Slice* outer = get_if<op::Slice>(&node);
  if (!outer) return false;
  const Node* maker = rewriter.graph().def(node.inputs[0]);
  const op::Slice* inner = get_if<op::Slice>(maker);
  if (!inner) return false;
  op::Slice merged = *outer;
  for (size_t i = 0; i < merged.steps.size(); ++i) {
    merged.starts[i] = simplify_dim(inner->starts[i] + Expr(inner->steps[i]) * outer->starts[i]);
    merged.steps[i] = inner->steps[i] * outer->steps[i];
  }
  rewriter.update(id, merged, {maker->inputs[0]});
  return true;
}

// A slice of a concatenation that reads only one part is a slice of that part.
bool slice_of_concat(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Slice* slice = get_if<op::Slice>(&node);
  if (!slice) return false;
  const Node* maker = rewriter.graph().def(node.inputs[0]);
  const op::Concat* concat = get_if<op::Concat>(maker);
  if (!concat) return false;
  size_t axis = static_cast<size_t>(concat->axis);
  std::optional<int64_t> start = as_const(slice->starts[axis]), size = as_const(slice->sizes[axis]);
  if (!start || !size || *size == 0) return false;
  int64_t last = *start + (*size - 1) * slice->steps[axis], begin = 0;
  for (ValueId part : maker->inputs) {
    std::optional<int64_t> extent = as_const(rewriter.type(part).shape[axis]);
    if (!extent) return false;
    if (std::min(*start, last) >= begin && std::max(*start, last) < begin + *extent) {
      op::Slice moved = *slice;
      moved.starts[axis] = *start - begin;
      rewriter.update(id, moved, {part});
      return true;
    }
    begin += *extent;
  }
  return false;
}

// The kernel of a concat has a loop nest for each part, and every step of its schedule looks at all
// of them. If the parts' extents have many symbols, each nest begins at a sum of the extents before
// it, and the code grows with the square of the number of parts.
constexpr size_t kMaxParts = 64, kMaxPartsOfSymbols = 16, kManySymbols = 16;

size_t most_parts(Rewriter& rewriter, const Node& node, size_t axis) {
  std::set<std::string> symbols;
  for (const ValueId part : node.inputs)
    visit(rewriter.type(part).shape[axis], [&](const Expr& e) {
      if (const auto* symbol = as<expr::Var>(e)) symbols.insert(symbol->name);
    });
  return symbols.size() > kManySymbols ? kMaxPartsOfSymbols : kMaxParts;
}

std::vector<ValueId> in_groups(Rewriter& rewriter, NodeId id, const std::vector<ValueId>& parts,
                               size_t most) {
  const op::Concat concat = *get_if<op::Concat>(&rewriter.node(id));
  std::vector<ValueId> groups;
  for (size_t first = 0; first < parts.size(); first += most) {
    const std::vector<ValueId> group(
        parts.begin() + static_cast<std::ptrdiff_t>(first),
        parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), first + most)));
    groups.push_back(group.size() == 1 ? group[0] : rewriter.add(concat, group, id, "parts"));
  }
  return groups;
}

// concat(concat(a, b), c) along one axis is concat(a, b, c), if nobody else reads the inner one.
// Empty parts are dropped. A concat of more than most_parts becomes a tree.
bool flatten_concat(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Concat* concat = get_if<op::Concat>(&node);
  if (!concat) return false;
  const auto axis = static_cast<size_t>(concat->axis);
  const size_t most = most_parts(rewriter, node, axis);
  std::vector<ValueId> parts;
  size_t count = node.inputs.size();
  for (ValueId input : node.inputs) {
    const Node* maker = rewriter.graph().def(input);
    const op::Concat* inner = get_if<op::Concat>(maker);
    if (inner && inner->axis == concat->axis && rewriter.uses(input) == 1 &&
        count + maker->inputs.size() <= most + 1) {
      count += maker->inputs.size() - 1;
      parts.insert(parts.end(), maker->inputs.begin(), maker->inputs.end());
    } else if (!is_const(rewriter.type(input).shape[axis], 0)) {
      parts.push_back(input);
    }
  }
  while (parts.size() > most) parts = in_groups(rewriter, id, parts, most);
  if (parts.empty() || parts == rewriter.node(id).inputs) return false;
  rewriter.update(id, OpAttrs(rewriter.node(id).attrs), parts);
  return true;
}

// Gathering at one constant index is a slice.
bool gather_as_slice(Rewriter& rewriter, NodeId id) {
  const op::Gather* gather = get_if<op::Gather>(&rewriter.node(id));
  if (!gather) return false;
  ValueId x = rewriter.node(id).inputs[0], indices = rewriter.node(id).inputs[1];
  const Graph& graph = rewriter.graph();
  if (!graph.is_constant(indices) || !is_const(element_count(rewriter.type(indices).shape), 1))
    return false;
  const Shape shape = rewriter.type(x).shape;
  size_t axis = static_cast<size_t>(gather->axis);
  int64_t index = graph.constant_tensor(indices).int_at(0);
  std::optional<int64_t> extent = as_const(shape[axis]);
  if (!extent || index >= *extent || index < -*extent) return false;
  op::Slice slice{Shape(shape.size(), Expr(0)), Ints(shape.size(), 1), shape};
  slice.starts[axis] = index < 0 ? index + *extent : index;
  slice.sizes[axis] = 1;
  ValueId part = rewriter.add(std::move(slice), {x}, id, "slice");
  rewriter.update(id, op::Reshape{rewriter.type(rewriter.node(id).output).shape}, {part});
  return true;
}

// A reduction over axes of extent 1, or over none, is a reshape.
bool reduction_as_reshape(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const op::Reduce* reduce = get_if<op::Reduce>(&node);
  if (!reduce) return false;
  const Shape& shape = rewriter.type(node.inputs[0]).shape;
  for (int64_t axis : reduce->axes)
    if (!is_const(shape[static_cast<size_t>(axis)], 1)) return false;
  rewriter.update(id, op::Reshape{rewriter.type(node.output).shape}, {node.inputs[0]});
  return true;
}

// The shape beside a tensor of shape `from` for a constant that stands beside one of shape `to`.
// nullopt if these shapes differ in more than axes of extent 1.
std::optional<Shape> beside(const Shape& constant, const Shape& to, const Shape& from) {
  Shape shape(from.size(), Expr(1));
  size_t axis = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (is_const(to[d], 1)) continue;
    while (axis < from.size() && is_const(from[axis], 1)) ++axis;
    if (axis == from.size() || !equal(Shape{from[axis]}, Shape{to[d]})) return std::nullopt;
    const size_t missing = to.size() - constant.size();
    if (d >= missing) shape[axis] = constant[d - missing];
    ++axis;
  }
  for (; axis < from.size(); ++axis)
    if (!is_const(from[axis], 1)) return std::nullopt;
  return shape;
}

// The operand that takes the place of `other` when the node moves in front of its reshape of `x`: a
// uniform constant itself, another constant reshaped. Invalid if there is none.
ValueId in_front_of_reshape(Rewriter& rewriter, NodeId id, ValueId other, ValueId x) {
  if (splat(rewriter.graph(), other)) return other;
  if (!rewriter.graph().is_constant(other)) return {};
  const Shape& out = rewriter.type(rewriter.node(id).output).shape;
  if (rewriter.type(other).shape.size() > out.size()) return {};
  const auto shape = beside(rewriter.type(other).shape, out, rewriter.type(x).shape);
  return shape ? rewriter.add(op::Reshape{*shape}, {other}, id, "beside") : ValueId();
}

// f(reshape(x)) -> reshape(f(x)), for f of one tensor and uniform constants. Other constants do if
// the reshape only adds or drops axes of extent 1 (the mask of shifted windows). Transposes move
// behind f with uniform constants only. A scale then reaches the weights of the matmul in front
// (attention's queries and keys), and an activation reaches its kernel.
bool hoist_element_wise(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const Graph& graph = rewriter.graph();
  if (!std::holds_alternative<op::Unary>(node.attrs) &&
      !std::holds_alternative<op::Binary>(node.attrs))
    return false;
  size_t side = node.inputs.size() == 2 && graph.is_constant(node.inputs[0]) ? 1 : 0;
  ValueId moved = node.inputs[side];
  const Node* maker = graph.def(moved);
  if (!get_if<op::Transpose>(maker) && !get_if<op::Reshape>(maker)) return false;
  // The constant must not broadcast the tensor
  if (!equal(rewriter.type(node.output).shape, rewriter.type(moved).shape)) return false;
  if (rewriter.uses(moved) != 1) return false;
  const OpAttrs movement = maker->attrs;
  std::vector<ValueId> inputs = node.inputs;
  inputs[side] = maker->inputs[0];
  if (inputs.size() == 2) {
    ValueId& other = inputs[1 - side];
    if (std::holds_alternative<op::Reshape>(movement))
      other = in_front_of_reshape(rewriter, id, other, inputs[side]);
    else if (!splat(graph, other)) other = {};
    if (!other.valid()) return false;
  }
  std::vector<const TensorType*> types;
  for (ValueId input : inputs) types.push_back(&rewriter.type(input));
  Expected<std::vector<TensorType>> type = graph.infer(rewriter.node(id).attrs, types);
  if (!type) {
    llvm::consumeError(type.takeError());
    return false;
  }
  if (!equal((*type)[0].shape, rewriter.type(inputs[side]).shape)) return false;
  ValueId computed = rewriter.add(OpAttrs(rewriter.node(id).attrs), inputs, id, "early");
  rewriter.update(id, movement, {computed});
  return true;
}

// Layout casts merge in any layout, other movement only in plain tensors.
bool merge_movement(Rewriter& rewriter, NodeId id) {
  if (std::holds_alternative<op::LayoutCast>(rewriter.node(id).attrs))
    return merge_same_movement(rewriter, id);
  return all_plain(rewriter.graph(), rewriter.node(id)) && merge_same_movement(rewriter, id);
}

}  // namespace

std::span<const Rule> movement_rules() {
  static constexpr Rule kRules[] = {
      {"drop-copy", drop_copy},
      {"merge-transposes", when_plain<merge_transposes>},
      {"transpose-as-reshape", when_plain<transpose_as_reshape>},
      {"merge-movement", merge_movement},
      {"merge-slices", when_plain<merge_slices>},
      {"slice-of-concat", when_plain<slice_of_concat>},
      {"flatten-concat", when_plain<flatten_concat>},
      {"hoist-element-wise", when_plain<hoist_element_wise>},
      {"gather-as-slice", when_plain<gather_as_slice>},
      {"reduction-as-reshape", when_plain<reduction_as_reshape>},
  };
  return kRules;
}

}  // namespace tw
