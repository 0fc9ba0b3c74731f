// Groups of injective operators: one store over the output, or one for every piece into which the
// group's concats cut it.
#include <set>

#include "kernels/common/group_builder.h"
#include "kernels/elementwise/elementwise.h"

namespace tw {

namespace {

// True: the input is a table, which is not read at points of the output.
bool is_table(const Node& node, size_t input) {
  return input == 1 && std::holds_alternative<op::Lookup>(node.attrs);
}

// True: one flat axis suffices. Every value of the group and every input, except single elements
// and tables, has the output's type.
bool is_flat(const GroupBuilder& b) {
  const TensorType& out = b.type(b.output_value());
  if (!out.layout.plain()) {  // padding lanes are zeroed by channel, so there must be none
    auto channels = as_const(out.shape[static_cast<size_t>(out.layout.axis)]);
    if (!channels || *channels % out.layout.block != 0) return false;
  }
  for (NodeId id : b.group.nodes) {
    const Node& node = b.graph.node(id);
    if (!is_elementwise(node)) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId v = node.inputs[k];
      if (!v.valid() || (is_table(node, k) && !b.inside(v))) continue;
      const TensorType& t = b.type(v);
      if (is_table(node, k)) return false;
      if (is_const(element_count(t.shape), 1)) continue;
      if (t.shape.size() != out.shape.size() || !(t.layout == out.layout)) return false;
      for (size_t i = 0; i < t.shape.size(); ++i)
        if (!is_const(simplify(t.shape[i] - out.shape[i]), 0)) return false;
    }
  }
  return true;
}

Expr flat_element(GroupBuilder& b, ValueId v, const Expr& flat, const Expr& count) {
  const Node* node = b.graph.def(v);
  if (!b.inside(v)) {
    if (is_const(element_count(b.type(v).shape), 1))
      return b.parameter_element(v, Index(b.type(v).shape.size(), Expr(0)));
    return load(b.input(v, {count}), b.type(v).dtype, {flat});
  }
  for (size_t k = 0; k < node->inputs.size(); ++k)
    if (const ValueId input = node->inputs[k]; input.valid() && !is_table(*node, k))
      b.define(input, [&b, input, flat, count](const Index&) {
        return flat_element(b, input, flat, count);
      });
  return injective_element(b, *node, Index(b.type(v).shape.size(), flat));
}

// The axis of the reshape's input that becomes the output's axis, whole and in the same place;
// nullopt: there is none.
std::optional<size_t> axis_before_reshape(const Shape& in, const Shape& out, size_t axis) {
  Expr before = element_count(Shape(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(axis)));
  for (size_t i = 0; i < in.size(); ++i) {
    Expr own = element_count(Shape(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(i)));
    if (equal(Shape{own, in[i]}, Shape{before, out[axis]})) return i;
  }
  return std::nullopt;
}

// Positions where concats inside the group cut an axis of v, each between two points
std::set<int64_t> cuts_of(const GroupBuilder& b, ValueId v, size_t axis) {
  std::set<int64_t> cuts;
  if (!b.inside(v)) return cuts;
  const Node& node = *b.graph.def(v);
  if (const auto* transpose = std::get_if<op::Transpose>(&node.attrs))
    return cuts_of(b, node.inputs[0], static_cast<size_t>(transpose->perm[axis]));
  if (std::holds_alternative<op::Reshape>(node.attrs)) {
    auto before = axis_before_reshape(b.type(node.inputs[0]).shape, b.type(v).shape, axis);
    return before ? cuts_of(b, node.inputs[0], *before) : cuts;
  }
  if (is_elementwise(node)) {
    for (ValueId input : node.inputs)
      if (input.valid() && equal(b.type(input).shape, b.type(v).shape))
        cuts.merge(cuts_of(b, input, axis));
    return cuts;
  }
  const auto* concat = std::get_if<op::Concat>(&node.attrs);
  if (!concat) return cuts;
  bool along = static_cast<size_t>(concat->axis) == axis;
  int64_t start = 0;
  for (ValueId input : node.inputs) {
    if (along && start > 0) cuts.insert(start);
    for (int64_t cut : cuts_of(b, input, axis)) cuts.insert(start + cut);
    if (!along) continue;
    auto extent = as_const(b.type(input).shape[axis]);
    if (!extent) return {};
    start += *extent;
  }
  return cuts;
}

// Adds a stage for every piece; in each one, a concat reads one part only. False: there is one
// piece, or too many.
bool store_pieces(GroupBuilder& b) {
  constexpr size_t kMostPieces = 16;
  ValueId out = b.output_value();
  const TensorType& t = b.type(out);
  using Piece = std::vector<std::pair<int64_t, Expr>>;  // start and extent for each axis
  std::vector<Piece> pieces(1);
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    std::set<int64_t> cuts = cuts_of(b, out, axis);
    cuts.insert(0);
    std::vector<Piece> next;
    for (const Piece& piece : pieces)
      for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
        Expr end = std::next(cut) == cuts.end() ? t.shape[axis] : Expr(*std::next(cut));
        next.push_back(piece);
        next.back().emplace_back(*cut, simplify(end - Expr(*cut)));
      }
    pieces = std::move(next);
    if (pieces.size() > kMostPieces) return false;
  }
  if (!t.layout.plain() || pieces.size() == 1) return false;
  BufferId y = b.output(out);
  for (size_t p = 0; p < pieces.size(); ++p) {
    std::vector<Axis> axes;
    Index at;
    for (size_t i = 0; i < pieces[p].size(); ++i) {
      axes.push_back({"p" + std::to_string(p) + "i" + std::to_string(i), pieces[p][i].second});
      at.push_back(var(axes.back().name) + Expr(pieces[p][i].first));
    }
    b.declare(axes);
    b.stage("y" + std::to_string(p), axes, y, at, b.element(out, at));
  }
  return true;
}

}  // namespace

Expected<Lowered<ElementwiseStages>> lower_elementwise(GroupBuilder& b) {
  ValueId out = b.output_value();
  const TensorType& t = b.type(out);
  if (is_flat(b)) {
    Expr count(1);
    for (const Expr& extent : physical_shape(t)) count = count * extent;
    count = simplify(count);
    std::vector<Axis> axes = {{"i0", count}};
    b.declare(axes);
    Expr value = flat_element(b, out, var("i0"), count);
    b.stage("y", axes, b.output(out, {count}), {var("i0")}, value);
  } else if (!store_pieces(b)) {
    b.store_output();
  }
  return b.finish(ElementwiseStages{});
}

Expected<Lowered<ElementwiseStages>> lower_concat(GroupBuilder& b, const Node& node) {
  const auto& attrs = std::get<op::Concat>(node.attrs);
  const TensorType& t = b.type(node.output);
  auto axis = static_cast<size_t>(attrs.axis);
  bool blocked_here = !t.layout.plain() && t.layout.axis == attrs.axis;
  if (!t.layout.plain())
    for (ValueId input : node.inputs) {
      auto extent = as_const(b.type(input).shape[axis]);
      if (blocked_here && (!extent || *extent % t.layout.block != 0)) return lower_elementwise(b);
    }
  BufferId y = b.output(node.output);
  Expr start(0);
  int part = 0;
  for (ValueId input : node.inputs) {
    TensorType piece = t;
    piece.shape[axis] = b.type(input).shape[axis];
    Shape physical = physical_shape(piece);
    std::vector<Axis> axes;
    Index index;
    for (size_t i = 0; i < physical.size(); ++i) {
      axes.push_back({"p" + std::to_string(part) + "i" + std::to_string(i), physical[i]});
      index.push_back(var(axes.back().name));
    }
    b.declare(axes);
    Expr value = b.element(input, GroupBuilder::to_logical(piece, index));
    if (!t.layout.plain() && !blocked_here) {
      auto blocked = static_cast<size_t>(t.layout.axis);
      value = select(lt(GroupBuilder::to_logical(piece, index)[blocked], t.shape[blocked]), value,
                     imm(0, t.dtype));
    }
    Index target = index;
    target[axis] = index[axis] + (blocked_here ? floor_div(start, t.layout.block) : start);
    b.stage("y" + std::to_string(part++), axes, y, target, value);
    start = start + b.type(input).shape[axis];
  }
  return b.finish(ElementwiseStages{});
}

}  // namespace tw
