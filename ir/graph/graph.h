// Graph IR: a model as nodes (core operators) over typed values. Vectors behind typed ids hold
// both. The graph is in SSA form: a value has one maker.
//
//   graph @digits(batch) {
//     %image: f32[batch, 1, 8, 8] = input
//     %w: f32[8, 1, 3, 3] = const #"1a2b3c…"
//     %c: f32[batch, 8, 8, 8] = conv(%image, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
//     %top: f32[batch, 8, 8, 3], %at: i64[batch, 8, 8, 3] =
//         extern(%c) function=topk ints=[3,1,1] dims=[3]
//     symbol k.0 = %at[0] <= [8]
//     output %top
//   }
//
// * A large constant is named by the hash of its content. A small one stands inline: const [1.5,
//   2].
// * The `symbol` line declares a size that is read from an element of %at, for use in later lines.
// * Limits of a symbol follow its name: @digits(batch >= 2 <= 64).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/ops.h"
#include "ir/graph/tensor.h"
#include "ir/simplify.h"

namespace tw {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

// Physical layout of a value. A plain layout is row-major. A blocked layout cuts axis `axis` in
// blocks of `block`: the physical shape has ceil(d/block) in the axis' place and `block` as an
// extra last dimension (NCHW16c: axis 1, block 16). Elements beyond d are 0.
struct Layout {
  int axis = -1;
  int64_t block = 0;
  bool plain() const { return block == 0; }
  bool operator==(const Layout&) const = default;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;  // logical
  Layout layout;
};
bool equal(const TensorType& a, const TensorType& b);
// True: equal for all values of the symbols. False where simplify cannot show it.
bool equal(const Shape& a, const Shape& b);
// True: equal for some values of the symbols. False where bounds exclude it.
bool may_be_equal(const Expr& a, const Expr& b);
bool is_data_dependent(const Expr& dim);    // true: the dim uses a symbol that may be 0
std::string to_string(const Shape& shape);  // "[batch, 64]"
Expr simplify_dim(const Expr& dim);         // simplifies with symbol_ranges
// Uses limits too, so that (n + 1) // 2 is 3 where n is 5 or 6.
Expr simplify_dim(const Expr& dim, const SymbolLimitsOf& limits);
// Requires an i64 expression of symbols and integers whose divisors are positive.
Error check_dim_expr(const Expr& dim);
// Requires extents >= 0, byte counts that cannot overflow, and a layout that fits. Untrusted types
// must pass it.
Error check_type(const TensorType& t);
// "f32[1, 64, 56, 56]"; with a blocked layout "f32[1, 64, 56, 56]@1:16"
std::string to_string(const TensorType& t);
Shape physical_shape(const TensorType& t);
// The element counts of a and b without their common factors; nullopt: too large to count
std::optional<std::pair<Expr, Expr>> counts_without_common_factors(const Shape& a, const Shape& b);
// True: equal element counts for all values of the symbols. False where that cannot be shown.
bool same_count(const Shape& a, const Shape& b);
std::optional<std::vector<int64_t>> static_shape(const Shape& shape);
Expr element_count(const Shape& shape);  // simplified product of the extents
// Follows the numpy rules. Where a symbol meets 1, the result is the symbol.
Expected<Shape> broadcast_shapes(const Shape& a, const Shape& b);

struct Value {
  TensorType type;
  NodeId def;        // invalid: the value is a graph input or a constant
  std::string name;  // unique; the model's name, for messages and the artifact's interface
  // Row-major bytes of a constant, in the plain layout, maybe unaligned
  std::optional<Blob> constant;
};

struct Node {
  OpAttrs attrs;
  std::vector<ValueId> inputs;  // absent optional inputs are invalid ids
  ValueId output;
  std::vector<ValueId> extra;  // further outputs of operators with several
  std::string name;            // the original ONNX node's name
  std::string source;          // the ONNX operator's type, for reports
  bool erased = false;
  std::vector<ValueId> outputs() const;
};

// A symbol of dims whose value is an element of an integer tensor, read when the tensor has been
// made. Its name says that it may be 0 (ir/symbols.h). The value must equal `equals` if that is
// defined, and otherwise lie in [0, bound]. Any other value ends the run.
struct DataSymbol {
  std::string name;
  ValueId value;
  int64_t element = 0;    // row-major number
  Expr bound, equals;     // expressions of symbols, may be undefined
  std::string needed_by;  // for messages: the node that reads it or needs `equals`, "mask (Where)"
};

class Graph {
 public:
  std::string name = "model";
  std::vector<std::string> symbols;      // in order of first use by the inputs
  std::vector<DataSymbol> data_symbols;  // in the order in which nodes make them
  SymbolLimitsOf limits;                 // for the symbols that have limits
  std::vector<std::string> all_symbols() const;

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, TensorType type, Blob blob);
  ValueId add_constant(std::string name, const Tensor& tensor);
  // Infers the outputs' types from the op table. `names` are the output values' names, made unique;
  // empty or missing ones are chosen. Sizes in types, attributes and regions are simplified by the
  // limits, which must hold already. Regions get the limits too.
  Expected<NodeId> add_node(OpAttrs attrs, std::vector<ValueId> inputs,
                            std::vector<std::string> names, std::string node_name = "",
                            std::string source = "");
  // Returns the first output.
  Expected<ValueId> add(OpAttrs attrs, std::vector<ValueId> inputs, std::string name = "",
                        std::string node_name = "", std::string source = "");
  // Calls infer_types and simplifies by the limits.
  Expected<std::vector<TensorType>> infer(const OpAttrs& attrs,
                                          const std::vector<const TensorType*>& inputs) const;
  void add_output(ValueId value, std::string name);
  void set_output(size_t index, ValueId value);  // the output keeps its name

  const std::vector<ValueId>& inputs() const { return inputs_; }
  struct Output {
    ValueId value;
    std::string name;
  };
  const std::vector<Output>& outputs() const { return outputs_; }

  size_t node_count() const { return nodes_.size(); }  // erased ones included
  size_t value_count() const { return values_.size(); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id.index)]; }
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id.index)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  Value& value(ValueId id) { return values_[static_cast<size_t>(id.index)]; }
  const Node* def(ValueId id) const;  // null for inputs and constants
  bool is_constant(ValueId id) const { return id.valid() && value(id).constant.has_value(); }
  // Copies the constant. Its shape must be static.
  Tensor constant_tensor(ValueId id) const;

  std::vector<NodeId> order() const;  // live nodes in a deterministic topological order
  // By value index. A node appears once for each use.
  std::vector<std::vector<NodeId>> users() const;
  // The values from which the data symbols in these expressions are read, and those in the symbols'
  // bounds
  std::vector<ValueId> symbol_values(const std::vector<Expr>& dims) const;
  std::vector<ValueId> symbol_values(const OpAttrs& attrs) const;
  void replace_uses(ValueId from, ValueId to);  // in nodes, outputs and data symbols
  void erase(NodeId id);                        // the node's outputs must be unused
  void set_input(NodeId node, size_t index, ValueId value);
  // Inputs change only through here and set_input, so that the graph knows the readers of each
  // value.
  void set_inputs(NodeId node, std::vector<ValueId> values);

 private:
  std::string unique_name(std::string wanted);
  OpAttrs within_limits(const OpAttrs& attrs) const;
  void note_reads(NodeId node);
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<Output> outputs_;
  // The readers of each value, by value index: nodes and output numbers. They make an edit cost no
  // more than the readers it touches. Entries may be stale or double.
  struct Readers {
    std::vector<NodeId> nodes;
    std::vector<size_t> outputs;
  };
  std::vector<Readers> readers_;
  Readers& readers(ValueId value);
  std::map<std::string, int, std::less<>> taken_;  // value name -> next suffix
};

// Checks arity, dtypes and shapes against the op table, then applies check_type to the result.
// Absent inputs are null. Operators are defined on logical tensors and may read and write any
// layout. The inputs' layouts are therefore ignored, and the result is plain except for a
// LayoutCast.
Expected<std::vector<TensorType>> infer_types(const OpAttrs& attrs,
                                              const std::vector<const TensorType*>& inputs);
// The type of the first output
Expected<TensorType> infer_type(const OpAttrs& attrs, const std::vector<const TensorType*>& inputs);
// Runs the reference evaluator. `outs` are the types from infer_types, with static shapes.
Expected<std::vector<Tensor>> evaluate_node(const OpAttrs& attrs,
                                            const std::vector<TensorType>& outs,
                                            const std::vector<const Tensor*>& inputs);
// Replaces symbols by their values and simplifies the dims. Unknown symbols stay.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;
OpAttrs bind_symbols(const OpAttrs& attrs, const SymbolValues& values);
Shape bind_symbols(const Shape& shape, const SymbolValues& values);
std::vector<Expr> dims_of(const OpAttrs& attrs);
OpAttrs map_dims(const OpAttrs& attrs, const std::function<Expr(const Expr&)>& fn);

Graph bind_symbols(const Graph& graph, const SymbolValues& values);
OpAttrs map_dims(const OpAttrs& attrs, const std::function<Expr(const Expr&)>& fn);
Graph map_dims(const Graph& graph, const std::function<Expr(const Expr&)>& fn);

std::string print(const Graph& graph);
// Finds a constant's bytes by their content hash (blob_hash); nullopt: unknown.
using ConstantLookup = std::function<std::optional<Blob>(std::string_view hash, const TensorType&)>;
std::string blob_hash(const Blob& blob);
// Looks up the constants whose bytes are not inline. A missing one is an error.
Expected<Graph> parse_graph(std::string_view text, std::string_view file = "",
                            const ConstantLookup& lookup = nullptr);
// Checks ids, arity, types against inference, cycles, and unique names.
Error verify(const Graph& graph);
std::string graph_hash(const Graph& graph);  // covers structure, types and the constants' content

// Runs the whole graph with the reference evaluators. The inputs' shapes must bind all symbols.
// `keep` is optional and sees every value as it is made, for comparison node by node. Its error
// ends the evaluation.
Expected<std::vector<Tensor>> evaluate(
    const Graph& graph, const std::vector<Tensor>& inputs,
    const std::function<Error(ValueId, const Tensor&)>& keep = nullptr);
// Multiply-accumulates of a conv or matmul of static shapes; 0 for other operators
int64_t macs(const Graph& graph, const Node& node);

}  // namespace tw
