// Graph IR: a model as nodes (core operators) over typed values, in vectors behind typed ids. SSA:
// a value has one maker.
//
//   graph @digits(batch) {
//     %image: f32[batch, 1, 8, 8] = input
//     %w: f32[8, 1, 3, 3] = const #"1a2b3c…"          ; payload by content hash; small ones inline:
//                                                       const [1.5, 2]
//     %c: f32[batch, 8, 8, 8] = conv(%image, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]
//     %top: f32[batch, 8, 8, 3], %at: i64[batch, 8, 8, 3] = extern(%c) function=topk ints=[3,1,1]
//     dims=[3]
//     symbol k.0 = %at[0] <= [8]                        ; a size read from an element of %at, for
//                                                         what follows
//     output %top
//   }
//
// A symbol's limits stand behind it: @digits(batch >= 2 <= 64).
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

// Physical layout of a value. Plain is row-major. Blocked: axis `axis` is cut in blocks of `block`;
// the physical shape has ceil(d/block) in its place and `block` as an extra last dimension
// (NCHW16c: axis 1, block 16). Elements beyond d are 0.
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
// Equal for all values of the symbols, as far as simplify can show
bool equal(const Shape& a, const Shape& b);
// Equal for some values of the symbols, as far as bounds can show.
bool may_be_equal(const Expr& a, const Expr& b);
bool is_data_dependent(const Expr& dim);    // uses a symbol that may be 0
std::string to_string(const Shape& shape);  // "[batch, 64]"
Expr simplify_dim(const Expr& dim);         // simplify with symbol_ranges
// And with limits, so that (n + 1) // 2 is 3 where n is 5 or 6
Expr simplify_dim(const Expr& dim, const SymbolLimitsOf& limits);
// An i64 expression of symbols and integers whose divisors are positive.
Error check_dim_expr(const Expr& dim);
// Extents >= 0 and small enough that byte counts cannot overflow, a layout that fits. Untrusted
// types go through it.
Error check_type(const TensorType& t);
// "f32[1, 64, 56, 56]", blocked: "f32[1, 64, 56, 56]@1:16"
std::string to_string(const TensorType& t);
Shape physical_shape(const TensorType& t);
// Numbers of elements without the factors that both have; nothing: more than can be counted.
std::optional<std::pair<Expr, Expr>> counts_without_common_factors(const Shape& a, const Shape& b);
// As many elements for all values of the symbols, as far as can be shown
bool same_count(const Shape& a, const Shape& b);
std::optional<std::vector<int64_t>> static_shape(const Shape& shape);
Expr element_count(const Shape& shape);  // product, simplified
// Numpy rules; a symbol against 1 takes the symbol
Expected<Shape> broadcast_shapes(const Shape& a, const Shape& b);

struct Value {
  TensorType type;
  NodeId def;                    // invalid: graph input or constant
  std::string name;              // of the model, for messages and the artifact's interface; unique
  std::optional<Blob> constant;  // row-major bytes of a constant (plain layout), perhaps unaligned
};

struct Node {
  OpAttrs attrs;
  std::vector<ValueId> inputs;  // absent optional inputs are invalid ids
  ValueId output;
  std::vector<ValueId> extra;  // further outputs, of operators that may have several
  std::string name;            // of the ONNX node it came from
  std::string source;          // ONNX op type, for reports
  bool erased = false;
  std::vector<ValueId> outputs() const;
};

// A symbol of dims whose value is an element of an integer tensor, read once that is made. Its name
// says that it may be 0 (ir/symbols.h). Behind `equals` stands what the value must be; otherwise it
// must lie in [0, bound]. Anything else ends the run.
struct DataSymbol {
  std::string name;
  ValueId value;
  int64_t element = 0;    // row-major
  Expr bound, equals;     // perhaps undefined; of symbols
  std::string needed_by;  // the node that reads it, or needs `equals`, for messages: "mask (Where)"
};

class Graph {
 public:
  std::string name = "model";
  std::vector<std::string> symbols;      // in order of first use by the inputs
  std::vector<DataSymbol> data_symbols;  // in the order of their making
  SymbolLimitsOf limits;                 // of symbols that have some
  std::vector<std::string> all_symbols() const;

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(std::string name, TensorType type, Blob blob);
  ValueId add_constant(std::string name, const Tensor& tensor);
  // Infers the outputs' types from the op table. names: of the output values, made unique if taken;
  // empty or missing: fresh ones. The limits hold already: sizes are simplified by them, in types,
  // attributes and regions, which get them too.
  Expected<NodeId> add_node(OpAttrs attrs, std::vector<ValueId> inputs,
                            std::vector<std::string> names, std::string node_name = "",
                            std::string source = "");
  // The same; the result is the first output.
  Expected<ValueId> add(OpAttrs attrs, std::vector<ValueId> inputs, std::string name = "",
                        std::string node_name = "", std::string source = "");
  // infer_types, simplified by the limits
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
  // Copies; the value must be a constant of static shape
  Tensor constant_tensor(ValueId id) const;

  std::vector<NodeId> order() const;  // live nodes, topological; deterministic
  // By value index; a node appears once per use
  std::vector<std::vector<NodeId>> users() const;
  // Values that the data symbols in these expressions are read from, and those in their bounds.
  std::vector<ValueId> symbol_values(const std::vector<Expr>& dims) const;
  std::vector<ValueId> symbol_values(const OpAttrs& attrs) const;
  void replace_uses(ValueId from, ValueId to);  // in nodes, outputs and data symbols
  void erase(NodeId id);                        // its outputs must be unused
  void set_input(NodeId node, size_t index, ValueId value);
  // Never written another way: what reads a value is known
  void set_inputs(NodeId node, std::vector<ValueId> values);

 private:
  std::string unique_name(std::string wanted);
  OpAttrs within_limits(const OpAttrs& attrs) const;
  void note_reads(NodeId node);
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<Output> outputs_;
  // What reads a value, so that an edit costs what it touches: nodes and numbers of outputs, by
  // value index. Some may not read it any more, or stand there twice.
  struct Readers {
    std::vector<NodeId> nodes;
    std::vector<size_t> outputs;
  };
  std::vector<Readers> readers_;
  Readers& readers(ValueId value);
  std::map<std::string, int, std::less<>> taken_;  // value name -> next suffix
};

// Arity, dtypes and shapes against the op table, then check_type of the result. Absent inputs are
// null. Operators are defined on logical tensors and may read and write any layout: the inputs'
// layouts are ignored, the result is plain but for a LayoutCast.
Expected<std::vector<TensorType>> infer_types(const OpAttrs& attrs,
                                              const std::vector<const TensorType*>& inputs);
// The first
Expected<TensorType> infer_type(const OpAttrs& attrs, const std::vector<const TensorType*>& inputs);
// By the reference evaluators; `outs` as infer_types gives them, of static shapes.
Expected<std::vector<Tensor>> evaluate_node(const OpAttrs& attrs,
                                            const std::vector<TensorType>& outs,
                                            const std::vector<const Tensor*>& inputs);
// The attributes with symbols replaced by their values and the dims simplified; unknown symbols
// stay.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;
OpAttrs bind_symbols(const OpAttrs& attrs, const SymbolValues& values);
Shape bind_symbols(const Shape& shape, const SymbolValues& values);
// Every dim expression among them
std::vector<Expr> dims_of(const OpAttrs& attrs);
OpAttrs map_dims(const OpAttrs& attrs, const std::function<Expr(const Expr&)>& fn);

Graph bind_symbols(const Graph& graph, const SymbolValues& values);
OpAttrs map_dims(const OpAttrs& attrs, const std::function<Expr(const Expr&)>& fn);
// Of all types and attributes
Graph map_dims(const Graph& graph, const std::function<Expr(const Expr&)>& fn);

std::string print(const Graph& graph);
// Bytes of a constant by their content hash, blob_hash; nothing: unknown.
using ConstantLookup = std::function<std::optional<Blob>(std::string_view hash, const TensorType&)>;
std::string blob_hash(const Blob& blob);
// Constants whose bytes are not inline are looked up; a missing one is an error.
Expected<Graph> parse_graph(std::string_view text, std::string_view file = "",
                            const ConstantLookup& lookup = nullptr);
// Ids, arity, types equal to what infer says, acyclic, unique names
Error verify(const Graph& graph);
std::string graph_hash(const Graph& graph);  // structure, types and constants' content

// Runs the whole graph with the reference evaluators; symbols must be bound by the inputs' shapes.
// keep, when given, is called for every value as it is made (for per-node comparison); its error
// ends the evaluation.
Expected<std::vector<Tensor>> evaluate(
    const Graph& graph, const std::vector<Tensor>& inputs,
    const std::function<Error(ValueId, const Tensor&)>& keep = nullptr);
// What the nodes of one op compute, in multiply-accumulates (conv, matmul) for static shapes; 0 for
// others.
int64_t macs(const Graph& graph, const Node& node);

}  // namespace tw
