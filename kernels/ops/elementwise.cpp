// Groups of injective operators: one store over the output, or one for every piece into which the
// group's concats cut it.
#include <set>

#include "kernels/common/group_builder.h"
#include "kernels/elementwise/elementwise.h"

namespace tw {

namespace {

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

// The quotient, if b divides a for all sizes
std::optional<Expr> divided(const Expr& a, const Expr& b, const Ranges& ranges) {
  Ranges filled = ranges;  // divisors are above 0; all sizes are asked below
  for (auto& [name, range] : filled)
    if (range.min.defined() && is_const(range.min, 0) && !range.max.defined()) range.min = Expr(1);
  Expr quotient = simplify(floor_div(a, b), filled);
  const bool exact = is_const(simplify(quotient * b - a, ranges), 0);
  return exact ? std::optional(std::move(quotient)) : std::nullopt;
}

// Extents of loops, outermost first, for each axis of `out`: each axis of both shapes is a product
// of some of them that follow each other. nullopt: an axis of one ends within one of the other.
std::optional<std::vector<Shape>> common_refinement(const Shape& in, const Shape& out,
                                                    const Ranges& ranges) {
  std::vector<Shape> parts(out.size());
  size_t i = in.size();
  Expr left = 1;  // the part of the input's axis i that the loops so far do not have
  for (size_t o = out.size(); o-- > 0;) {
    Expr needed = out[o];
    while (!is_const(needed, 1)) {
      while (is_const(left, 1) && i > 0) left = in[--i];
      Expr part;
      if (const std::optional<Expr> more = divided(needed, left, ranges)) {
        part = left, needed = *more, left = 1;
      } else if (const std::optional<Expr> rest = divided(left, needed, ranges)) {
        part = needed, left = *rest, needed = 1;
      } else {
        return std::nullopt;
      }
      if (is_const(part, 1)) return std::nullopt;  // the input has no more
      parts[o].insert(parts[o].begin(), part);
    }
    if (parts[o].empty()) parts[o] = {Expr(1)};
  }
  return parts;
}

// The reshape inside the group that gives the value its shape, or null
const Node* shaping_reshape(const GroupBuilder& b, ValueId v) {
  if (!b.inside(v)) return nullptr;
  const Node& node = *b.graph.def(v);
  if (std::holds_alternative<op::Reshape>(node.attrs)) return &node;
  if (!is_elementwise(node)) return nullptr;
  for (ValueId input : node.inputs)
    if (input.valid() && equal(b.type(input).shape, b.type(v).shape))
      if (const Node* found = shaping_reshape(b, input)) return found;
  return nullptr;
}

// Where a reshape joins axes whose sizes are free, loops go over these axes: an index of the joined
// axis would be divided by sizes. False: nothing is joined.
bool store_refined(GroupBuilder& b) {
  const ValueId out = b.output_value();
  const TensorType& t = b.type(out);
  const Node* reshape = t.layout.plain() ? shaping_reshape(b, out) : nullptr;
  if (!reshape) return false;
  const auto parts = common_refinement(b.type(reshape->inputs[0]).shape, t.shape, b.ranges());
  if (!parts) return false;
  bool joins = false;
  for (size_t i = 0; i < t.shape.size(); ++i)
    joins |= (*parts)[i].size() > 1 && !as_const(t.shape[i]);
  if (!joins) return false;
  std::vector<Axis> axes;
  Index at;
  for (const Shape& extents : *parts) {
    Index own;
    for (const Expr& extent : extents) {
      axes.push_back({"i" + std::to_string(axes.size()), extent});
      own.push_back(var(axes.back().name));
    }
    at.push_back(flatten_index(extents, own));
  }
  b.declare(axes);
  b.stage("y", axes, b.output(out), at, b.element(out, at));
  return true;
}

}  // namespace

Expected<Lowered<ElementwiseStages>> define_elementwise(GroupBuilder& b) {
  if (!store_pieces(b) && !store_refined(b)) b.store_output();
  return b.finish(ElementwiseStages{});
}

Expected<Lowered<ElementwiseStages>> define_concat(GroupBuilder& b, const Node& node) {
  const auto& attrs = std::get<op::Concat>(node.attrs);
  const TensorType& t = b.type(node.output);
  auto axis = static_cast<size_t>(attrs.axis);
  if (!t.layout.plain() && t.layout.axis == attrs.axis)
    for (ValueId input : node.inputs) {  // pieces must be whole blocks
      auto extent = as_const(b.type(input).shape[axis]);
      if (!extent || *extent % t.layout.block != 0) return define_elementwise(b);
    }
  BufferId y = b.output(node.output);
  Expr start(0);
  int part = 0;
  for (ValueId input : node.inputs) {
    std::vector<Axis> axes;
    for (const Expr& extent : b.type(input).shape)
      axes.push_back({"p" + std::to_string(part) + "i" + std::to_string(axes.size()), extent});
    b.declare(axes);
    const Index index = variables(axes);
    Index target = index;
    target[axis] = index[axis] + start;
    b.stage("y" + std::to_string(part++), axes, y, target, b.element(input, index));
    start = start + b.type(input).shape[axis];
  }
  return b.finish(ElementwiseStages{});
}

}  // namespace tw
