// The graph while it is imported: a tape of values in the order of their making, each with its type
// and, where known, its elements as dim expressions. Shape arithmetic thus folds away as it is
// written; only what the outputs need reaches the Graph.
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

// Integer tensors up to this many elements carry their elements; constants up to kFoldElements are
// evaluated.
inline constexpr int64_t kKnownElements = 256;
inline constexpr int64_t kFoldElements = 4096;

struct Origin {          // of the values of one ONNX node
  std::string node, op;  // name, or that of its first output; operator
  std::string title() const { return node.empty() ? op : node + " (" + op + ")"; }
};

class Builder {
 public:
  Val add_input(std::string name, TensorType type);
  // The blob of strings: each with a zero byte behind it
  Val add_constant(std::string name, TensorType type, Blob blob);
  Val add_constant(const Tensor& tensor);
  Val scalar(double value, DType dtype);  // rank 0, shared
  // Integer (or bool: 0, 1) elements in row-major order; shape must be static.
  Val known(std::vector<Expr> elements, DType dtype, Shape shape);

  // Lists are known while importing, never in the Graph. sequence: its items. optional: at most
  // one. rows: a sequence whose length only the run knows (run_list.h). maybe: an optional of which
  // only the run knows whether it is there: a bool of rank 0, what it holds. growing: a sequence
  // that a loop carries, inside its body: the number of the carried value, what this iteration has
  // put behind it.
  enum class ListKind : uint8_t { sequence, optional, rows, maybe, growing };
  Val list(ListKind kind, std::vector<Val> items);
  std::optional<ListKind> list_kind(Val v) const;
  const std::vector<Val>& items(Val v) const { return entry(v).inputs; }  // of a list

  // Infers, folds, and appends. Errors are those of the operator's infer function.
  Expected<Val> emit(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin);
  // The same for operators of several outputs.
  Expected<std::vector<Val>> emit_all(OpAttrs attrs, std::vector<Val> inputs, const Origin& origin);

  const TensorType& type(Val v) const { return entry(v).type; }
  // Elements of an integer or bool value of static shape and at most kKnownElements, or null.
  const std::vector<Expr>* elements(Val v);
  // a constant's
  const Blob* blob(Val v) const { return entry(v).blob ? &*entry(v).blob : nullptr; }
  const std::string& name(Val v) const { return entry(v).name; }
  bool is_constant(Val v) const { return entry(v).blob.has_value(); }
  std::optional<Tensor> constant(Val v) const;    // a copy, of constants up to kFoldElements
  void set_name(Val v, const std::string& name);  // keeps the name of inputs and constants
  Expr simplified(const Expr& e) const { return simplify(e, symbols_); }
  void add_symbol(const std::string& symbol);
  void add_symbol(const std::string& symbol, Range range);
  // Of an input, with what the model calls it and what is said of it
  void add_symbol(const std::string& symbol, const std::string& name,
                  const std::optional<SymbolLimits>& limits);
  void share_symbols(const Builder& around);  // of a region: those of the graph around it
  const Ranges& symbols() const { return symbols_; }
  const SymbolNames& symbol_names() const { return symbol_names_; }
  // A text for each free dimension of the inputs that only one number fits: which node needs it
  const std::vector<std::string>& fixed_sizes() const { return fixed_sizes_; }
  // Of the inputs' symbols those in the expressions, those that decide about a value (in its shape,
  // or in what it is made from), and those that made the operator's types known if they were bound:
  // none where they are wrong for other reasons.
  std::set<std::string> symbols_in(const std::vector<Expr>& dims) const;
  std::set<std::string> symbols_behind(Val v) const;
  std::set<std::string> symbols_to_bind(const OpAttrs& attrs, const std::vector<Val>& inputs) const;

  // An element of an integer value as a dim: what is known of it, else a symbol that is read while
  // the model runs and must then lie in [0, bound] (bound may be undefined).
  Expr element(Val v, int64_t index, const Expr& bound, const Origin& origin);
  // Follows the element to where it was made, through operators that move it: v and index then say
  // where. The result, if it is known.
  std::optional<Expr> known_element(Val& v, int64_t& index);
  // The largest number that a dim can be, without the symbols that this graph reads from data;
  // undefined: not to be said. is_made_here: it has such symbols.
  Expr most_outside(const Expr& dim) const;
  bool is_made_here(const Shape& shape) const;
  // From now on a and b are one: the model's run fails where they are not. False: neither of them
  // is a symbol that could go. origin: the node that needs it.
  bool unify(const Expr& a, const Expr& b, const Origin& origin);
  // v, whose extent along the axis is `to`: the model's run fails where it is not. Errors: it never
  // is.
  Expected<Val> with_extent(Val v, size_t axis, const Expr& to, const Origin& origin);

  struct Output {
    std::string name;
    Val value;
  };
  // Values made from now on are those of the next ONNX node.
  void next_node() { ++node_; }
  // The graph of everything the outputs need; all inputs stay, in order. Its nodes stand in the
  // order of the ONNX nodes, and those of one ONNX node in an order that the graph itself decides:
  // C++ leaves open which of a call's arguments is made first.
  Expected<Graph> finish(const std::string& name, const std::vector<Output>& outputs);

 private:
  // extra: a further output of the operator `inputs[0]`
  enum class Kind : uint8_t { input, constant, known, op, extra, list };
  struct Entry {
    Kind kind;
    TensorType type;
    std::string name;
    std::optional<Blob> blob;  // constants
    std::optional<std::vector<Expr>> elements;
    std::optional<OpAttrs> attrs;
    std::vector<Val> inputs;  // of an op; a list's items
    Origin origin;
    ValueId made;
    ListKind list{};   // of a list
    int32_t node = 0;  // which ONNX node it belongs to
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
  struct Symbol {  // read from an element of a value
    std::string name;
    Val value;
    int64_t element;
    Expr bound, equals;
    std::string needed_by;  // as DataSymbol has it
  };
  bool may_replace(const std::string& symbol, const Expr& by);
  void replace_symbol(const std::string& symbol, const Expr& by, const Origin& origin);
  void unify_expanded();
  bool limit(const Expr& symbol, const Expr& cut);
  void refresh();
  Expr current(const Expr& dim) const;  // with replaced symbols replaced
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

  std::deque<Entry> entries_;  // references to types stay good while values are added
  std::map<std::pair<uint64_t, DType>, Val> scalars_;  // by the value's bits
  std::vector<std::string> symbol_order_;
  std::vector<Symbol> data_symbols_;
  std::set<std::string, std::less<>> around_;  // symbols of the graph around
  int32_t node_ = 0;
  int depth_ = 0;  // of a region: 1, within it 2
  std::map<std::string, Expr, std::less<>> replaced_;
  Ranges symbols_;
  SymbolNames symbol_names_;
  std::vector<std::string> fixed_sizes_;
  SymbolLimitsOf limits_;  // that the user says, and the model itself
};

}  // namespace tw::onnx_import
