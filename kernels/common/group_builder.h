// Builds one kernel for one group: parameters, temps, stages, and the expression of any value of
// the group at an index.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "ir/group.h"
#include "ir/schedule/schedule.h"
#include "ir/simplify.h"
#include "ir/target.h"
#include "kernels/common/handles.h"
#include "kernels/common/lowered.h"

namespace tw {

using Index = std::vector<Expr>;

// An axis of a stage: loop variable, extent, role.
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
  GroupBuilder(const Graph& graph, const Group& group, const Target& target);

  const Graph& graph;
  const Group& group;
  const Target& target;
  // Why nothing can be made of the group, which a text may have put together; "": something can
  std::string problem;

  ValueId output_value() const;  // the group's one result
  // Made by a node of the group
  bool inside(ValueId v) const { return inside_.count(v.index) != 0; }
  const TensorType& type(ValueId v) const { return graph.value(v).type; }

  // Parameters. shape: overrides the physical shape with one of as many elements (collapsed axes).
  BufferId input(ValueId v, const Shape& shape = {});
  BufferId output(ValueId v, const Shape& shape = {});
  // A constant buffer of the given contents; pack (one input, one output buffer) makes them from
  // blob.
  BufferId constant(std::string name, DType dtype, Shape shape, Blob blob,
                    std::shared_ptr<const Kernel> pack = nullptr, ValueId source = {});
  BufferId constant_values(std::string name, const Tensor& tensor);
  BufferId temp(std::string name, DType dtype, Shape shape);
  const Shape& shape_of(BufferId b) const { return kernel_.buffer(b).shape; }
  DType dtype_of(BufferId b) const { return kernel_.buffer(b).dtype; }

  // The element of a value at a logical index: immediates, loads of parameters, or, for nodes of
  // the group, their expression (or what `define` said).
  Expr element(ValueId v, const Index& logical);
  Expr parameter_element(ValueId v, const Index& logical);  // of a value from outside the group
  // A re-arranged copy of v (usually weights) with one element per point of the axes. Constants
  // become a const buffer with a pack kernel, so the work is done at compile time; others a temp
  // that a stage `name` fills at run time. element(read) gives the value at the axes' variables;
  // read(index) is v's element. schedule: applied to the pack kernel, whose loops are the axes.
  BufferId packed(ValueId v, const std::string& name, const std::vector<Axis>& axes,
                  const std::function<Expr(const std::function<Expr(const Index&)>& read)>& element,
                  const Schedule& schedule = {});
  // A copy "xp" of x, made by stage "pad", with `fill` around: its spatial axes (all behind the
  // channels) have these extents, and x's first element lies at `before`.
  BufferId padded(ValueId x, const Shape& spatial, const Ints& before, int64_t fill = 0);
  // Inside the group, v's elements are made by this function instead of its node's own expression.
  void define(ValueId v, std::function<Expr(const Index&)> maker) {
    makers_[v.index] = std::move(maker);
  }

  // Adds a stage: a perfect nest over the axes around one store. Axis names must be new; they
  // become known ranges. value and where are simplified. The label is the stage's name.
  Stage stage(std::string label, const std::vector<Axis>& axes, BufferId buffer,
              const Index& indices, const Expr& value, Combiner combiner = Combiner::none,
              Expr init = {}, Expr where = {});
  // Several stores at each point of one nest, one after the other.
  struct Store {
    std::string label;
    BufferId buffer;
    Index indices;
    Expr value, where;
  };
  Stages nest(const std::vector<Axis>& axes, const std::vector<Store>& stores);
  // Stages that `body` adds run once in each iteration of the scan, or at each point of the axes.
  void scan(const Axis& axis, const std::function<void()>& body) { within({axis}, body); }
  void within(const std::vector<Axis>& axes, const std::function<void()>& body);
  // Only where the condition holds; undefined: always.
  void when(const Expr& condition, const std::function<void()>& body);
  // Makes the ranges of axes known before their stage is added, so that element() can simplify.
  void declare(const std::vector<Axis>& axes);
  Expr simplified(const Expr& e) const { return simplify(e, ranges_); }
  const Ranges& ranges() const { return ranges_; }

  // The last stage, y: writes the group's output over its physical shape, with loops i0, i1, .. by
  // physical dimension.
  struct Output {
    Stage stage;
    Loops loops;
  };
  Output store_output();
  // The stage that writes the buffer, the last one of several; none: a parameter or packed before.
  Stage stage_of(BufferId b) const;
  BufferName name_of(BufferId b) const { return BufferName(kernel_.buffer(b).name); }
  // Logical index from physical axes of a layout; physical index of a logical one.
  static Index to_logical(const TensorType& t, const Index& physical);
  Index to_physical(const TensorType& t, const Index& logical) const;

  // The kernel, named by the family of the stages.
  template <class FamilyStages>
  Lowered<FamilyStages> finish(FamilyStages stages) {
    GroupKernel whole = kernel(stages.family());
    return {std::move(whole), std::move(stages)};
  }

 private:
  GroupKernel kernel(const char* name);
  Expr node_element(const Node& node, const Index& index);
  BufferId add_buffer(Buffer buffer, LoweredArgument argument);
  stmt::Store store_of(std::string label, BufferId buffer, const Index& indices, const Expr& value,
                       const Expr& where) const;
  std::string fresh_buffer_name(const std::string& wanted) const;

  Kernel kernel_;
  std::vector<LoweredArgument> arguments_;  // by buffer index
  std::map<int32_t, BufferId> inputs_;      // by value
  std::map<int32_t, std::function<Expr(const Index&)>> makers_;
  std::set<int32_t> inside_;  // values made by the group's nodes
  std::vector<Stmt> stages_;
  std::map<int32_t, Stage> writers_;  // by buffer
  Ranges ranges_;
};

// Operators an element of whose output is an expression of its inputs' elements.
template <class Op>
concept InjectiveOp =
    OneOf<Op, op::Unary, op::Binary, op::Select, op::Cast, op::Quantize, op::Dequantize, op::Lookup,
          op::BatchNorm, op::Transpose, op::Reshape, op::Expand, op::Concat, op::Slice, op::Gather,
          op::Take, op::Within, op::Iota, op::Pad, op::Resize, op::ShapeOf, op::DimVector,
          op::LayoutCast>;
// The element's expression; for other operators 0, and the builder gets a problem.
Expr injective_element(GroupBuilder& b, const Node& node, const Index& index);
// x / count, where the inverse is exact as a product by it.
Expr divide(const Expr& x, const Expr& count);
Expr less_zero(const Expr& x, int64_t zero);  // x - zero, of a quantized operand
DType accumulator_type(DType t);              // f32 for the short floats, else itself
// Index of x's element for one of the broadcast result: aligned at the last axis, extent 1 reads 0.
Index broadcast_index(const Shape& operand, const Index& result);
// Row-major flattening and its inverse.
Expr flatten_index(const Shape& shape, const Index& index);
Index unflatten_index(const Shape& shape, const Expr& flat);

}  // namespace tw
