// One ONNX node while it is imported: checked access to its inputs and attributes, and short ways
// to emit core operators. Failures stick: the first one is kept, and later calls return invalid
// values that further calls pass over, so importers read as straight lines. Shape accessors of
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
  bool reported = false;  // it is one already
};

// A body as a graph of its own, while it is made.
struct RegionDraft {
  Builder builder;
  std::vector<Val> outputs;  // of the body, in `builder`
  // Of the graph around it: what the region's last inputs are given
  std::vector<Val> captured;
};

// Runs the graphs in a node's attributes; importers of control flow ask for it.
class Bodies {
 public:
  virtual ~Bodies() = default;
  // Makes the values that the body's inputs stand for
  using Inputs = std::function<std::vector<Val>(Builder&)>;
  // Imports the body into a graph of its own; null when a problem in it was reported.
  virtual std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Inputs& inputs) = 0;
  // The same of a branch, which no run may take: where all that is wrong is that its nodes do not
  // fit together, that is `misfit` and not reported.
  virtual std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit) = 0;
  virtual void warn(const std::string& text) = 0;
  virtual std::string fresh_symbol(const std::string& stem) = 0;  // no other of the model
  // Imports the body's nodes where the node stands; nothing when a problem in them was reported.
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

  // Inputs. in: a required one; has: whether an optional one is there.
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
  // Long ones, as they lie in the node; empty where they are absent
  const Ints& integer_list(const char* name);
  const std::vector<std::string>& text_list(const char* name);
  const OnnxTensor* tensor(const char* name);
  const OnnxGraph* graph(const char* name);  // a required one

  // Types.
  const TensorType& type(Val v) const;
  DType dtype(Val v) const { return type(v).dtype; }
  const Shape& shape(Val v) const { return type(v).shape; }
  int64_t rank(Val v) const { return static_cast<int64_t>(shape(v).size()); }
  Expr dim(Val v, int64_t axis) const;
  std::optional<int64_t> static_dim(Val v, int64_t axis) const { return as_const(dim(v, axis)); }
  // a failure naming the symbols, then 1
  int64_t need_static_dim(Val v, int64_t axis, const char* why);
  // non-negative; a failure when out of range, then 0
  int64_t axis(int64_t given, int64_t rank);
  Ints axes(const Ints& given, int64_t rank);  // the same, sorted, no duplicates

  // Contents of integer tensors. known, constants (plain numbers): before the model runs. dims:
  // sizes, perhaps symbols of the inputs, or such as are read while the model runs, which must then
  // not be negative. symbol_of: one of them.
  std::optional<std::vector<Expr>> known(Val v);
  std::vector<Expr> dims(Val v, const char* what);
  Expr symbol_of(Val v, int64_t element, const Expr& bound = {});
  Val dim_value(const Expr& dim) { return builder_.known({dim}, DType::i64, {}); }  // rank 0
  Val dim_values(std::vector<Expr> dims);                                           // a vector
  Val element_value(Val v, int64_t element);                                        // rank 0, i64
  Val iota(Shape shape, size_t axis) {
    return emit(op::Iota{std::move(shape), static_cast<int64_t>(axis)}, {});
  }
  // Of an integer vector or scalar; a failure when that is not known
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
  // Of input i, a sequence; a failure when it is none
  const std::vector<Val>& items(size_t i);

  // A graph of an attribute in place of the node. Nothing: the node has failed, or something in the
  // body, which is reported.
  std::optional<std::vector<Val>> inlined(const OnnxGraph& body, const std::vector<Val>& inputs);
  // The same as a graph of its own, which a node then runs. Null: as above.
  std::unique_ptr<RegionDraft> region(const OnnxGraph& body, const Bodies::Inputs& inputs);
  // null: a problem was reported, or `misfit` says it
  std::unique_ptr<RegionDraft> branch(const OnnxGraph& body, std::string& misfit);
  // Of what compiles all the same
  void warn(const std::string& text) { bodies_.warn(text); }
  // The node, emitting into the region; its problem is to be taken back
  NodeImport within(RegionDraft& draft) const;
  void take_problem(const NodeImport& inner);
  std::string fresh_symbol(const std::string& stem) { return bodies_.fresh_symbol(stem); }
  // Of several outputs; empty after a failure
  std::vector<Val> emit_all(const OpAttrs& attrs, const std::vector<Val>& inputs);

  // Core operators.
  Val emit(const OpAttrs& attrs, std::vector<Val> inputs);
  // A function of the runtime library: all its outputs, scratch memory too; inputs may be absent.
  // Invalid values after a failure.
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
  // Integers as i64, which must lie from `least` to `most`. One that is known and does not is a
  // failure; else the run ends with TW_E_ARGUMENT. The message is `what`, the number and the ends.
  Val within(Val v, const Expr& least, const Expr& most, const std::string& what);
  // v, where the bools `holds`, which are broadcast to it, are true; a run ends with `what` where
  // one is not.
  Val only_where(Val v, Val holds, const std::string& what);
  // v, whose extent along the axis is `to`: a run fails where it is not
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

  // fail: valid ONNX that is not supported; invalid: breaks the standard.
  void fail(std::string text, std::string advice = "");
  void invalid(std::string text);
  // Below `least` a number breaks the standard, above `most` it is not supported.
  void check_number(const std::string& what, int64_t number, int64_t least, int64_t most);
  // With advice to bind the symbols in the expressions.
  void fail_symbolic(std::string text, const std::vector<Expr>& because);
  // With the model's names
  std::string named(const Expr& e) const { return to_string(e, builder_.symbol_names()); }
  // What is wrong was reported at the node that it is about
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

// "bind the free dimension: --dim batch=N"; nothing where there is none.
std::string bind_advice(const std::set<std::string>& symbols, const SymbolNames& names);

}  // namespace tw::onnx_import
