// Builds one kernel for one group: parameters, temps, stages, and the expression of any of the
// group's values at an index.
//
//   const std::vector<Axis> axes = {{"i", rows}, {"k", depth, AxisRole::reduce}};
//   b.declare(axes);
//   const Expr x_ik = b.element(x, {var("i"), var("k")});  // a load, or the group's own expression
//   b.stage("acc", axes, acc, {var("i")}, x_ik, Combiner::add, imm(0, type));
#pragma once
#include <functional>
#include <map>
#include <set>

#include "ir/group.h"
#include "ir/schedule/schedule.h"
#include "ir/simplify.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

using Index = std::vector<Expr>;

struct Axis {
  std::string name;
  Expr extent;
  AxisRole role = AxisRole::spatial;
  Loop loop() const { return Loop(name); }
};

Index variables(const std::vector<Axis>& axes);  // the axes' loop variables
Shape extents(const std::vector<Axis>& axes);
Loops loops(const std::vector<Axis>& axes);

class GroupBuilder {
 public:
  GroupBuilder(const Graph& graph, const Group& group);

  const Graph& graph;
  const Group& group;
  // The reason why the group cannot be lowered, for groups that a text describes; "": it can
  std::string problem;

  ValueId output_value() const;  // the group's one result
  // True: a node of the group makes the value.
  bool inside(ValueId v) const { return inside_.count(v.index) != 0; }
  const TensorType& type(ValueId v) const { return graph.value(v).type; }

  // Parameters. `shape` replaces the tensor's shape by one of as many elements (collapsed axes).
  // A constant that is asked for by another name than "k" has it.
  BufferId input(ValueId v, const Shape& shape = {}, const char* constant_name = "k");
  BufferId output(ValueId v, const Shape& shape = {});
  BufferId constant_values(std::string name, const Tensor& tensor);
  BufferId temp(std::string name, DType dtype, Shape shape);
  const Shape& shape_of(BufferId b) const { return kernel_.buffer(b).shape; }
  DType dtype_of(BufferId b) const { return kernel_.buffer(b).dtype; }

  // A value's element at a logical index: an immediate or a load of a parameter. For the group's
  // own nodes it is their expression, or the one given to `define`.
  Expr element(ValueId v, const Index& logical);
  // Element of a value from outside the group
  Expr parameter_element(ValueId v, const Index& logical);
  // A copy "xp" of x, made by stage "pad", with `fill` around it. `spatial` has the extents of its
  // spatial axes, which are all behind the channels. x's first element lies at `before`.
  BufferId padded(ValueId x, const Shape& spatial, const Ints& before, int64_t fill = 0);
  // Lets `maker` give v's elements inside the group, in place of its node's own expression.
  void define(ValueId v, std::function<Expr(const Index&)> maker) {
    makers_[v.index] = std::move(maker);
  }

  // Adds a stage: a perfect nest over the axes around one store. Axis names must be new; they
  // become known ranges. value and where are simplified. The label is the stage's name.
  Stage stage(std::string label, const std::vector<Axis>& axes, BufferId buffer,
              const Index& indices, const Expr& value, Combiner combiner = Combiner::none,
              Expr init = {}, Expr where = {});
  // Several stores at each point of one nest, in order
  struct Store {
    std::string label;
    BufferId buffer;
    Index indices;
    Expr value, where;
  };
  Stages nest(const std::vector<Axis>& axes, const std::vector<Store>& stores);
  // Runs the stages that `body` adds in each iteration of the scan, or at each point of the axes.
  void scan(const Axis& axis, const std::function<void()>& body) { within({axis}, body); }
  void within(const std::vector<Axis>& axes, const std::function<void()>& body);
  // Runs them only where the condition holds; undefined: always.
  void when(const Expr& condition, const std::function<void()>& body);
  // Makes the ranges of axes known before their stage is added, so that element() can simplify.
  void declare(const std::vector<Axis>& axes);
  Expr simplified(const Expr& e) const { return simplify(e, ranges_); }
  const Ranges& ranges() const { return ranges_; }

  // Adds the last stage, y. It writes the group's output with one loop i0, i1, .. for each
  // dimension.
  struct Output {
    Stage stage;
    Loops loops;
  };
  Output store_output();
  // The last stage that writes the buffer; none: it is a parameter or was packed earlier.
  Stage stage_of(BufferId b) const;
  BufferName name_of(BufferId b) const { return BufferName(kernel_.buffer(b).name); }

  // The finished kernel, named after the family of its stages
  template <class FamilyStages>
  Lowered<FamilyStages> finish(FamilyStages stages) {
    GroupKernel whole = kernel(stages.family());
    return {std::move(whole), std::move(stages)};
  }

 private:
  GroupKernel kernel(const char* name);
  BufferId add_buffer(Buffer buffer, LoweredArgument argument);
  Layout layout_to_arrange(ValueId v, const Shape& shape) const;
  stmt::Store store_of(std::string label, BufferId buffer, const Index& indices, const Expr& value,
                       const Expr& where) const;
  std::string fresh_buffer_name(const std::string& wanted) const;

  Kernel kernel_;
  std::vector<LoweredArgument> arguments_;  // by buffer index
  std::map<int32_t, BufferId> inputs_;      // by value
  std::map<int32_t, std::function<Expr(const Index&)>> makers_;
  std::set<int32_t> inside_;  // values that the group's nodes make
  std::vector<Stmt> stages_;
  std::map<int32_t, Stage> writers_;  // by buffer
  Ranges ranges_;
};

// Operators whose output element is an expression of input elements
template <class Op>
concept InjectiveOp =
    OneOf<Op, op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize, op::Lookup,
          op::BatchNorm, op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice, op::Gather,
          op::Take, op::Within, op::Iota, op::Pad, op::Resize, op::ShapeOf, op::DimVector,
          op::LayoutCast>;
// The element's expression. For other operators it is 0, and the builder gets a problem.
Expr injective_element(GroupBuilder& b, const Node& node, const Index& index);
// x / count, as a product if the inverse is exact
Expr divide(const Expr& x, const Expr& count);
Expr less_zero(const Expr& x, int64_t zero);  // x - zero, for a quantized operand
DType accumulator_type(DType t);              // f32 for the short floats, otherwise t
// True: nodes of the group round both operands of its product to tf32.
bool multiplies_tf32(const GroupBuilder& b);
// The operand's index for an index of the broadcast result. Axes align at the last one, and extent
// 1 reads index 0.
Index broadcast_index(const Shape& operand, const Index& result);
// Row-major flattening and its inverse
Expr flatten_index(const Shape& shape, const Index& index);
Index unflatten_index(const Shape& shape, const Expr& flat);

}  // namespace tw
