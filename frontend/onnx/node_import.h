// One ONNX node while it is imported: checked access to its inputs and attributes, and short ways to emit core operators.
// Failures stick: the first one is kept, and later calls return invalid values that further calls pass over, so importers
// read as straight lines. Shape accessors of invalid values give harmless answers (rank 0, extent 1).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/builder.h"
#include "frontend/onnx/onnx_model.h"

namespace tw::onnx_import {

struct Problem {          // becomes a Gap
  DiagCode code = DiagCode::unsupported;
  std::string text, advice;
};

class NodeImport {
 public:
  NodeImport(Builder& builder, const OnnxNode& node, std::vector<Val> inputs, std::vector<bool> wanted);

  const OnnxNode& node;
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
  const OnnxTensor* tensor(const char* name);

  // Types.
  const TensorType& type(Val v) const;
  DType dtype(Val v) const { return type(v).dtype; }
  const Shape& shape(Val v) const { return type(v).shape; }
  int64_t rank(Val v) const { return static_cast<int64_t>(shape(v).size()); }
  Expr dim(Val v, int64_t axis) const;
  std::optional<int64_t> static_dim(Val v, int64_t axis) const { return as_const(dim(v, axis)); }
  int64_t need_static_dim(Val v, int64_t axis, const char* why);  // a failure naming the symbols, then 1
  int64_t axis(int64_t given, int64_t rank);                      // non-negative; a failure when out of range, then 0
  Ints axes(const Ints& given, int64_t rank);                     // the same, sorted, no duplicates

  // Contents of integer tensors, known before the model runs. dims: perhaps symbolic; constants: plain numbers.
  std::optional<std::vector<Expr>> known(Val v);
  std::vector<Expr> dims(Val v, const char* what);
  Ints constants(Val v, const char* what);
  std::optional<Tensor> constant(Val v) const { return v.valid() ? builder_.constant(v) : std::nullopt; }
  Expr simplified(const Expr& e) const { return builder_.simplified(e); }

  // Core operators.
  Val emit(OpAttrs attrs, std::vector<Val> inputs);
  Val unary(UnaryOp op, Val a) { return emit(op::Unary{op}, {a}); }
  Val binary(BinaryOp op, Val a, Val b) { return emit(op::Binary{op}, {a, b}); }
  Val add(Val a, Val b) { return binary(BinaryOp::add, a, b); }
  Val sub(Val a, Val b) { return binary(BinaryOp::sub, a, b); }
  Val mul(Val a, Val b) { return binary(BinaryOp::mul, a, b); }
  Val div(Val a, Val b) { return binary(BinaryOp::div, a, b); }
  Val min(Val a, Val b) { return binary(BinaryOp::min, a, b); }
  Val max(Val a, Val b) { return binary(BinaryOp::max, a, b); }   // max(constant, x) lets a NaN of x through
  Val less(Val a, Val b) { return binary(BinaryOp::lt, a, b); }
  Val select(Val condition, Val a, Val b) { return emit(op::Select{}, {condition, a, b}); }
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
  void fail_symbolic(std::string text);          // with advice to bind the symbols
  bool failed() const { return problem_.has_value(); }
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  const OnnxAttribute* attribute(const char* name, AttributeKind kind);

  Builder& builder_;
  std::vector<Val> inputs_, outputs_;
  std::vector<bool> wanted_;
  std::optional<Problem> problem_;
};

std::string bind_advice(const Ranges& symbols);  // "bind the symbols: --dim batch=N"

}  // namespace tw::onnx_import
