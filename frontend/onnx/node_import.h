// One ONNX node during its import: checked access to its inputs and attributes, and shortcuts to
// emit core operators. Failures stick: the first one is kept, and later calls return invalid
// values, which further calls pass over. So importers read as straight lines. Shape accessors of
// invalid values give harmless answers (rank 0, extent 1).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/builder.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

struct Problem {  // becomes a Gap
  DiagCode code = DiagCode::unsupported;
  std::string text, advice;
  bool reported = false;  // the Gap exists already
};

// A body that becomes a graph of its own, while it is made.
struct RegionDraft {
  Builder builder;
  std::vector<Val> outputs;  // values of `builder`
  // Values of the graph around it that the region's last inputs get
  std::vector<Val> captured;
};

// Import of the graphs in a node's attributes, for the importers of control flow.
class Bodies {
 public:
  virtual ~Bodies() = default;
  // Makes the values of the body's inputs
  using Inputs = std::function<std::vector<Val>(Builder&)>;
  // Imports the body into a graph of its own; null if a problem in it was reported.
  virtual std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Inputs& inputs) = 0;
  // As region(), for a branch that no run may take. If its only problem is that its nodes do not
  // fit together, `misfit` says so and nothing is reported.
  virtual std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit) = 0;
  virtual void warn(const std::string& text) = 0;
  virtual std::string fresh_symbol(const std::string& stem) = 0;  // unique in the model
  // Imports the body's nodes in place of the node; nullopt if a problem in them was reported.
  virtual std::optional<std::vector<Val>> inlined(const OnnxGraph& body,
                                                  const std::vector<Val>& inputs) = 0;
};

class NodeImport {
 public:
  NodeImport(Builder& builder, Bodies& bodies, const OnnxNode& node, std::vector<Val> inputs,
             std::vector<bool> wanted);

  const OnnxNode& node;
  Origin origin() const;
  int version() const { return node.since_version; }
  Builder& builder() { return builder_; }

  // Inputs. in: a required one; has: true if an optional one is present.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  Val in(size_t i);
  Val maybe(size_t i) const { return has(i) ? inputs_[i] : Val{}; }

  // Attributes; an attribute of another kind is a failure.
  bool has_attribute(const char* name) const { return node.attributes.count(name) > 0; }
  int64_t integer(const char* name, int64_t missing);
  double real(const char* name, double missing);
  std::string text(const char* name, const char* missing);
  std::optional<Ints> integers(const char* name);
  std::optional<std::vector<float>> reals(const char* name);
  std::optional<std::vector<std::string>> texts(const char* name);
  // Long lists, as references into the node; empty if they are absent
  const Ints& integer_list(const char* name);
  const std::vector<std::string>& text_list(const char* name);
  const OnnxTensor* tensor(const char* name);
  const OnnxGraph* graph(const char* name);  // required

  // Types.
  const TensorType& type(Val v) const;
  DType dtype(Val v) const { return type(v).dtype; }
  const Shape& shape(Val v) const { return type(v).shape; }
  int64_t rank(Val v) const { return static_cast<int64_t>(shape(v).size()); }
  Expr dim(Val v, int64_t axis) const;
  std::optional<int64_t> static_dim(Val v, int64_t axis) const { return as_const(dim(v, axis)); }
  // If it is symbolic: a failure that names the symbols, and 1
  int64_t need_static_dim(Val v, int64_t axis, const char* why);
  // The axis counted from the front; if it is out of range, a failure and 0
  int64_t axis(int64_t given, int64_t rank);
  Ints axes(const Ints& given, int64_t rank);  // likewise; sorted, without duplicates

  // Contents of integer tensors. known, constants (plain numbers): known before the run. dims:
  // sizes, which may be symbols of the inputs, or symbols that the run reads and that must not be
  // negative. symbol_of: one of them.
  std::optional<std::vector<Expr>> known(Val v);
  std::vector<Expr> dims(Val v, const char* what);
  Expr symbol_of(Val v, int64_t element, const Expr& bound = {});
  Val dim_value(const Expr& dim) { return builder_.known({dim}, DType::i64, {}); }  // rank 0
  Val dim_values(std::vector<Expr> dims);                                           // a vector
  Val element_value(Val v, int64_t element);                                        // rank 0, i64
  Val iota(Shape shape, size_t axis) {
    return emit(op::Iota{std::move(shape), static_cast<int64_t>(axis)}, {});
  }
  // The number of elements of an integer vector or scalar; a failure if it is unknown
  std::optional<int64_t> length(Val v, const char* what);
  Ints constants(Val v, const char* what);
  std::optional<Tensor> constant(Val v) const {
    return v.valid() ? builder_.constant(v) : std::nullopt;
  }
  Expr simplified(const Expr& e) const { return builder_.simplified(e); }

  // Sequences and optionals.
  using ListKind = Builder::ListKind;
  bool is_list(Val v, ListKind kind) const { return builder_.list_kind(v) == kind; }
  Val sequence(std::vector<Val> items) {
    return builder_.list(ListKind::sequence, std::move(items));
  }
  // The items of input i; a failure if it is no sequence
  const std::vector<Val>& items(size_t i);

  // Imports the graph of an attribute in place of the node. nullopt if the node has failed, or if a
  // problem in the body was reported.
  std::optional<std::vector<Val>> inlined(const OnnxGraph& body, const std::vector<Val>& inputs);
  // Imports it as a graph of its own, which a node then runs. Null in the same cases.
  std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Bodies::Inputs& inputs);
  // null if a problem was reported, or `misfit` says it
  std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit);
  // Reports something that does not keep the model from compiling
  void warn(const std::string& text) { bodies_.warn(text); }
  // This node, emitting into the region; take_problem() takes over its problem
  NodeImport within(RegionDraft& draft) const;
  void take_problem(const NodeImport& inner);
  std::string fresh_symbol(const std::string& stem) { return bodies_.fresh_symbol(stem); }
  // For operators with several outputs; empty after a failure
  std::vector<Val> emit_all(const OpAttrs& attrs, const std::vector<Val>& inputs);

  // Core operators.
  Val emit(const OpAttrs& attrs, std::vector<Val> inputs);
  // Calls a function of the runtime library. Returns all its outputs, scratch memory included;
  // invalid values after a failure. Inputs may be absent.
  std::vector<Val> emit_extern(ExternFunction function, Ints ints, std::vector<double> reals,
                               const std::vector<Val>& inputs, Shape dims = {});
  Val unary(UnaryOp op, Val a) { return emit(op::Unary{op}, {a}); }
  Val binary(BinaryOp op, Val a, Val b) { return emit(op::Binary{op}, {a, b}); }
  Val add(Val a, Val b) { return binary(BinaryOp::add, a, b); }
  Val sub(Val a, Val b) { return binary(BinaryOp::sub, a, b); }
  Val mul(Val a, Val b) { return binary(BinaryOp::mul, a, b); }
  Val div(Val a, Val b) { return binary(BinaryOp::div, a, b); }
  Val min(Val a, Val b) { return binary(BinaryOp::min, a, b); }
  // max(constant, x) lets a NaN of x through
  Val max(Val a, Val b) { return binary(BinaryOp::max, a, b); }
  Val less(Val a, Val b) { return binary(BinaryOp::lt, a, b); }
  Val select(Val condition, Val a, Val b) { return emit(op::Select{}, {condition, a, b}); }
  bool unify(const Expr& a, const Expr& b) { return builder_.unify(a, b, origin()); }
  // The integers as i64; they must lie from `least` to `most`. A known number outside is a failure;
  // otherwise the run ends with TW_E_ARGUMENT. The message has `what`, the number and both ends.
  Val within(Val v, const Expr& least, const Expr& most, const std::string& what);
  // Returns v. All bools in `holds`, which broadcasts to v, must be true; a run ends with `what` if
  // one is not.
  Val only_where(Val v, Val holds, const std::string& what);
  // Returns v with the extent `to` along the axis; a run fails if v has another
  Val with_extent(Val v, int64_t axis, const Expr& to);
  Val cast(Val a, DType to);
  Val reshape(Val a, Shape shape);
  Val expand(Val a, Shape shape);
  Val transpose(Val a, Ints perm);
  Val reduce(ReduceKind kind, Val a, Ints axes, bool keep);
  Val slice(Val a, int64_t axis, const Expr& start, const Expr& size);
  Val scalar(double value, DType dtype) { return builder_.scalar(value, dtype); }
  Val scalar(double value, Val like) { return builder_.scalar(value, dtype(like)); }
  Val constant_tensor(const OnnxTensor& tensor);

  // Outputs. An output that somebody reads and no importer sets is reported.
  size_t output_count() const { return node.outputs.size(); }
  bool wanted(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  void set(size_t i, Val v);
  void set(Val v) { set(0, v); }
  const std::vector<Val>& outputs() const { return outputs_; }

  // fail: valid ONNX without support; invalid: ONNX that breaks the standard.
  void fail(std::string text, std::string advice = "");
  void invalid(std::string text);
  // A number below `least` breaks the standard, one above `most` is not supported.
  void check_number(const std::string& what, int64_t number, int64_t least, int64_t most);
  // Fails with advice to bind the symbols in the expressions.
  void fail_symbolic(std::string text, const std::vector<Expr>& because);
  // The expression with the model's names
  std::string named(const Expr& e) const { return to_string(e, builder_.symbol_names()); }
  // Fails without a message: the problem was reported at its own node
  void fail_reported();
  bool failed() const { return problem_.has_value(); }
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  const OnnxAttribute* attribute(const char* name, AttributeKind kind);
  void refused(Error error, const OpAttrs& attrs, const std::vector<Val>& inputs);

  Builder& builder_;
  Bodies& bodies_;
  std::vector<Val> inputs_, outputs_;
  std::vector<bool> wanted_;
  std::optional<Problem> problem_;
};

// "bind the free dimension: --dim batch=N"; "" if there are no symbols.
std::string bind_advice(const std::set<std::string>& symbols, const SymbolNames& names);

}  // namespace tw::onnx_import
