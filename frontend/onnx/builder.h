// The graph during import: a tape of values in the order of their making. Each value has its type
// and, if they are known, its elements as dim expressions. So shape arithmetic folds away as it is
// written. Only values that the outputs need reach the Graph.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/dim_names.h"
#include "ir/graph/graph.h"
#include "ir/simplify.h"

namespace tw::onnx_import {

using Val = Id<struct ImportValueTag>;

// Integer tensors of up to kKnownElements elements carry their elements; constants of up to
// kFoldElements are evaluated.
inline constexpr int64_t kKnownElements = 256;
inline constexpr int64_t kFoldElements = 4096;

struct Origin {          // source of a value: the ONNX node that made it
  std::string node, op;  // name of the node, or of its first output
  std::string title() const { return node.empty() ? op : node + " (" + op + ")"; }
};

class Builder {
 public:
  Val add_input(std::string name, TensorType type);
  // In a blob of strings, each string ends with a zero byte.
  Val add_constant(std::string name, TensorType type, Blob blob);
  Val add_constant(const Tensor& tensor);
  Val scalar(double value, DType dtype);  // rank 0; equal ones are shared
  // Integer or bool (0, 1) elements in row-major order. The shape must be static.
  Val known(std::vector<Expr> elements, DType dtype, Shape shape);

  // Lists exist only during import, never in the Graph. Kinds and their items:
  //   sequence  the items
  //   optional  one item or none
  //   rows      a sequence whose length only the run knows (run_list.h)
  //   maybe     an optional that may be absent in a run: a bool of rank 0, and the value
  //   growing   in a loop's body, a sequence that the loop carries: the number of the carried
  //             value, and what this iteration has appended
  enum class ListKind : uint8_t { sequence, optional, rows, maybe, growing };
  Val list(ListKind kind, std::vector<Val> items);
  std::optional<ListKind> list_kind(Val v) const;
  const std::vector<Val>& items(Val v) const { return entry(v).inputs; }  // v must be a list

  // Infers, folds and appends. Errors are those of the operator's infer function.
  Expected<Val> emit(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin);
  // As emit(), for operators with several outputs.
  Expected<std::vector<Val>> emit_all(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin);

  const TensorType& type(Val v) const { return entry(v).type; }
  // The elements of an integer or bool value with a static shape and at most kKnownElements of
  // them; else null.
  const std::vector<Expr>* elements(Val v);
  // The bytes of a constant; null for other values
  const Blob* blob(Val v) const { return entry(v).blob ? &*entry(v).blob : nullptr; }
  const std::string& name(Val v) const { return entry(v).name; }
  bool is_constant(Val v) const { return entry(v).blob.has_value(); }
  std::optional<Tensor> constant(Val v) const;    // a copy, for constants up to kFoldElements
  void set_name(Val v, const std::string& name);  // inputs and constants keep their name
  Expr simplified(const Expr& e) const { return simplify(e, symbols_); }
  void add_symbol(const std::string& symbol);
  void add_symbol(const std::string& symbol, Range range);
  // Adds the symbol of an input, with the model's name for it and the user's limits.
  void add_symbol(const std::string& symbol, const std::string& name,
                  const std::optional<SymbolLimits>& limits);
  void share_symbols(const Builder& around);  // a region takes over those of the graph around it
  const Ranges& symbols() const { return symbols_; }
  const SymbolNames& symbol_names() const { return symbol_names_; }
  // A text for each free dimension of the inputs that only one size fits, with the node that needs
  // it
  const std::vector<std::string>& fixed_sizes() const { return fixed_sizes_; }
  // Three sets of the inputs' symbols: those in the expressions; those that decide about a value,
  // through its shape or the values that it is made from; and those that, once bound, make the
  // operator's types known. The last is empty if the types are wrong for other reasons.
  std::set<std::string> symbols_in(const std::vector<Expr>& dims) const;
  std::set<std::string> symbols_behind(Val v) const;
  std::set<std::string> symbols_to_bind(const OpAttrs& attrs, const std::vector<Val>& inputs) const;

  // An element of an integer value as a dim: its known value, else a symbol. A run reads the symbol
  // from the tensor, and it must then lie in [0, bound]; `bound` may be undefined.
  Expr element(Val v, int64_t index, const Expr& bound, const Origin& origin);
  // Follows the element to the place where it was made, through operators that move it, and sets v
  // and index to that place. Returns the element if it is known.
  std::optional<Expr> known_element(Val& v, int64_t& index);
  // The largest value of a dim, without the symbols that this graph reads from data; undefined if
  // it is unknown. is_made_here: the shape has such symbols.
  Expr most_outside(const Expr& dim) const;
  bool is_made_here(const Shape& shape) const;
  // Makes a and b one from here on; the model's run fails if they differ. Returns false if neither
  // is a symbol that could go. `origin` is the node that needs it.
  bool unify(const Expr& a, const Expr& b, const Origin& origin);
  // Returns v with the extent `to` along the axis; the model's run fails if v has another. Errors:
  // v never has it.
  Expected<Val> with_extent(Val v, size_t axis, const Expr& to, const Origin& origin);

  struct Output {
    std::string name;
    Val value;
  };
  // Begins the next ONNX node: values made from here on belong to it.
  void next_node() { ++node_; }
  // The graph of all that the outputs need; all inputs stay, in their order. Nodes are ordered by
  // ONNX node. Within an ONNX node the graph itself decides the order, as C++ leaves open which of
  // a call's arguments is made first.
  Expected<Graph> finish(const std::string& name, const std::vector<Output>& outputs);

 private:
  // extra: a further output of the operator inputs[0]
  enum class Kind : uint8_t { input, constant, known, op, extra, list };
  struct Entry {
    Kind kind;
    TensorType type;
    std::string name;
    std::optional<Blob> blob;  // bytes of a constant
    std::optional<std::vector<Expr>> elements;
    std::optional<OpAttrs> attrs;
    std::vector<Val> inputs;  // operands of an op; items of a list
    Origin origin;
    ValueId made;
    ListKind list{};   // kind of a list
    int32_t node = 0;  // number of the ONNX node that made it
  };
  const Entry& entry(Val v) const { return entries_[static_cast<size_t>(v.index)]; }
  Entry& entry(Val v) { return entries_[static_cast<size_t>(v.index)]; }
  Val push(Entry entry);
  Error check_constant_indices(const OpAttrs& attrs, const std::vector<Val>& inputs) const;
  std::optional<Val> fold(const OpAttrs& attrs, const std::vector<Val>& inputs,
                          const TensorType& type);
  Expected<TensorType> checked(TensorType type) const;
  bool foldable(const OpAttrs& attrs, const std::vector<Val>& inputs,
                const std::vector<TensorType>& types) const;
  Expected<ValueId> make(Graph& graph, size_t index);
  Expected<ValueId> make_op(Graph& graph, size_t index);
  struct Symbol {  // a symbol that is read from an element of a value
    std::string name;
    Val value;
    int64_t element;
    Expr bound, equals;
    std::string needed_by;  // as in DataSymbol
  };
  bool may_replace(const std::string& symbol, const Expr& by);
  void replace_symbol(const std::string& symbol, const Expr& by, const Origin& origin);
  void unify_expanded();
  bool limit(const Expr& symbol, const Expr& cut);
  void refresh();
  Expr current(const Expr& dim) const;  // replaces the symbols that are gone
  Symbol* data_symbol(std::string_view name);
  Expected<std::vector<TensorType>> infer(OpAttrs& attrs, std::vector<Val>& inputs,
                                          const Origin& origin);
  Expected<bool> fit_operands(Expr simple, Expr other, std::vector<Val>& inputs,
                              const Origin& origin);
  Expected<std::optional<Val>> with_extents(Val operand, const Expr& from, const Expr& to,
                                            const Origin& origin);
  void add_symbol_values(const std::vector<Expr>& dims, std::vector<Val>& values);
  std::vector<size_t> needed_in_order(const std::vector<Output>& outputs);
  Expected<ValueId> make_known(Graph& graph, const Entry& entry);

  std::deque<Entry> entries_;  // a deque keeps references to types valid as values are added
  std::map<std::pair<uint64_t, DType>, Val> scalars_;  // by the bits of the value
  std::vector<std::string> symbol_order_;
  std::vector<Symbol> data_symbols_;
  std::set<std::string, std::less<>> around_;  // symbols of the graph around
  int32_t node_ = 0;
  int depth_ = 0;  // nesting of regions: 1 in a region, 2 in a region of that
  std::map<std::string, Expr, std::less<>> replaced_;
  Ranges symbols_;
  SymbolNames symbol_names_;
  std::vector<std::string> fixed_sizes_;
  SymbolLimitsOf limits_;  // by the user and by the model itself
};

}  // namespace tw::onnx_import
