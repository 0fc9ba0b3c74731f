// The graph while it is imported: a tape of values in the order of their making, each with its type and, where known, its
// elements as dim expressions. Shape arithmetic thus folds away as it is written; only what the outputs need reaches the Graph.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/simplify.h"

namespace tw::onnx_import {

using Val = Id<struct ImportValueTag>;

// Integer tensors up to this many elements carry their elements; constants up to kFoldElements are evaluated.
inline constexpr int64_t kKnownElements = 256;
inline constexpr int64_t kFoldElements = 4096;

struct Origin {          // of the values of one ONNX node
  std::string node, op;  // name, operator
};

class Builder {
 public:
  Val add_input(std::string name, TensorType type);
  Val add_constant(std::string name, TensorType type, Blob blob);
  Val add_constant(const Tensor& tensor);
  Val scalar(double value, DType dtype);         // rank 0, shared
  // Integer (or bool: 0, 1) elements in row-major order; shape must be static.
  Val known(std::vector<Expr> elements, DType dtype, Shape shape);

  // Infers, folds, and appends. Errors are those of the operator's infer function.
  Expected<Val> emit(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin);

  const TensorType& type(Val v) const { return entry(v).type; }
  // Elements of an integer or bool value of static shape and at most kKnownElements, or null.
  const std::vector<Expr>* elements(Val v);
  bool is_constant(Val v) const { return entry(v).blob.has_value(); }
  std::optional<Tensor> constant(Val v) const;   // a copy, of constants up to kFoldElements
  void set_name(Val v, const std::string& name); // keeps the name of inputs and constants
  Expr simplified(const Expr& e) const { return simplify(e, symbols_); }
  void add_symbol(const std::string& symbol);
  const Ranges& symbols() const { return symbols_; }
  bool has_symbols(Val v) const;                 // in its shape

  struct Output {
    std::string name;
    Val value;
  };
  // The graph of everything the outputs need; all inputs stay, in order.
  Expected<Graph> finish(const std::string& name, const std::vector<Output>& outputs);

 private:
  enum class Kind : uint8_t { input, constant, known, op };
  struct Entry {
    Kind kind;
    TensorType type;
    std::string name;
    std::optional<Blob> blob;                      // constants
    std::optional<std::vector<Expr>> elements;
    std::optional<OpAttrs> attrs;
    std::vector<Val> inputs;
    Origin origin;
    ValueId made;
  };
  const Entry& entry(Val v) const { return entries_[static_cast<size_t>(v.index)]; }
  Entry& entry(Val v) { return entries_[static_cast<size_t>(v.index)]; }
  Val push(Entry entry);
  std::optional<Val> fold(const OpAttrs& attrs, const std::vector<Val>& inputs, const TensorType& type);
  Expected<ValueId> make(Graph& graph, const Entry& entry);
  Expected<ValueId> make_known(Graph& graph, const Entry& entry);

  std::deque<Entry> entries_;  // references to types stay good while values are added
  std::map<std::pair<uint64_t, DType>, Val> scalars_;  // by the value's bits
  std::vector<std::string> symbol_order_;
  Ranges symbols_;
};

}  // namespace tw::onnx_import
