// Checks the graph's invariants and reports every broken one.
#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <set>

#include "ir/graph/graph.h"

namespace tw {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), inputs_(graph.inputs().begin(), graph.inputs().end()) {
    for (const std::string& symbol : graph.all_symbols()) symbols_.insert(symbol);
  }

  Error run() {
    for (ValueId id : graph_.inputs())
      if (valid_id(id, "an input")) value(id);
    std::vector<bool> made(graph_.node_count());
    if (!ids_in_range()) return make_error(std::move(diags_));
    for (NodeId id : graph_.order()) {
      node(id, made);
      made[static_cast<size_t>(id.index)] = true;
    }
    std::set<std::string> output_names;
    for (const Graph::Output& output : graph_.outputs()) {
      if (!valid_id(output.value, "output '" + output.name + "'")) continue;
      use(output.value, "output '" + output.name + "'");
      if (!output_names.insert(output.name).second)
        fail("two outputs are called '" + output.name + "'");
    }
    for (const std::string& symbol : graph_.all_symbols()) check_symbol(symbol);
    for (const DataSymbol& symbol : graph_.data_symbols) check_data_symbol(symbol);
    return make_error(std::move(diags_));
  }

 private:
  void fail(std::string message) {
    diags_.push_back({DiagCode::invalid_model, std::move(message), {}, {}});
  }
  void fail(const std::string& where, Error error) {
    for (Diag& diag : take_diags(std::move(error))) fail(where + ": " + diag.message);
  }
  std::string label(const Node& n) const {
    return std::string(op_info(n.attrs).name) + " '" + n.name + "'";
  }

  bool valid_id(ValueId id, const std::string& where) {
    bool valid = id.valid() && static_cast<size_t>(id.index) < graph_.value_count();
    if (!valid) fail(where + " refers to no value");
    return valid;
  }
  bool ids_in_range() {
    for (size_t i = 0; i < graph_.node_count(); ++i) {
      const Node& n = graph_.node(NodeId{static_cast<int32_t>(i)});
      if (n.erased) continue;
      for (ValueId output : n.outputs()) valid_id(output, label(n));
      for (ValueId input : n.inputs)
        if (input.valid()) valid_id(input, label(n));
    }
    return diags_.empty();
  }

  void value(ValueId id) {
    if (!seen_.insert(id).second) return;
    const Value& v = graph_.value(id);
    if (v.name.empty()) fail("a value without a name");
    if (!names_.insert(v.name).second) fail("two values are called '" + v.name + "'");
    if (Error error = check_type(v.type)) return fail("'" + v.name + "'", std::move(error));
    check_dims(v.type.shape, "'" + v.name + "'");
    if (!v.constant) return;
    std::optional<std::vector<int64_t>> shape = static_shape(v.type.shape);
    bool fits = shape && v.type.layout.plain() &&
                static_cast<int64_t>(v.constant->bytes.size()) ==
                    element_count(*shape) * dtype_bytes(v.type.dtype);
    if (!fits)
      fail(llvm::formatv("constant '{0}' of {1} has {2} bytes", v.name, to_string(v.type),
                         v.constant->bytes.size())
               .str());
  }
  void check_dims(const Shape& shape, const std::string& where) {
    for (const Expr& dim : shape)
      visit(dim, [&](const Expr& e) {
        const std::string* name = var_name(e);
        if (name && !symbols_.count(*name))
          fail(where + ": symbol '" + *name + "' is not one of the graph's");
      });
  }

  void use(ValueId id, const std::string& where) {
    const Value& v = graph_.value(id);
    bool input = inputs_.count(id) > 0;
    int makers = input + v.constant.has_value() + v.def.valid();
    if (makers != 1) fail(where + ": '" + v.name + "' has " + std::to_string(makers) + " makers");
    if (v.def.valid() &&
        (static_cast<size_t>(v.def.index) >= graph_.node_count() || graph_.node(v.def).erased))
      fail(where + ": the node that makes '" + v.name + "' is erased");
    value(id);
  }

  void node(NodeId id, const std::vector<bool>& made) {
    const Node& n = graph_.node(id);
    for (ValueId output : n.outputs())
      if (graph_.value(output).def != id)
        fail(label(n) + ": '" + graph_.value(output).name + "' says that another node makes it");
    std::vector<const TensorType*> types;
    for (ValueId input : n.inputs) {
      types.push_back(input.valid() ? &graph_.value(input).type : nullptr);
      if (!input.valid()) continue;
      use(input, label(n));
      NodeId def = graph_.value(input).def;
      bool later = def.valid() && static_cast<size_t>(def.index) < made.size() &&
                   !made[static_cast<size_t>(def.index)];
      if (later && !graph_.node(def).erased)
        fail(label(n) + " is on a cycle through '" + graph_.value(input).name + "'");
    }
    for (ValueId output : n.outputs()) value(output);
    for (const Graph* region : regions_of(n.attrs)) check_region(n, *region);
    if (!diags_.empty()) return;
    Expected<std::vector<TensorType>> inferred = graph_.infer(n.attrs, types);
    if (!inferred) return fail(label(n), inferred.takeError());
    const std::vector<ValueId> outputs = n.outputs();
    if (outputs.size() != inferred->size())
      return fail(llvm::formatv("{0}: {1} outputs, but the operator has {2}", label(n),
                                outputs.size(), inferred->size())
                      .str());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value& made = graph_.value(outputs[i]);
      TensorType& type = (*inferred)[i];
      if (!keeps_layout(n)) type.layout = made.type.layout;
      if (!equal(type, made.type))
        fail(llvm::formatv("{0}: '{1}' is {2}, but the operator gives {3}", label(n), made.name,
                           to_string(made.type), to_string(type))
                 .str());
    }
  }

  // True: verify requires the inferred layout. Other operators may write any layout.
  static bool keeps_layout(const Node& n) {
    return std::holds_alternative<op::LayoutCast>(n.attrs) || has_several_outputs(n.attrs);
  }

  // The region may use the symbols of the graph around it and, in a loop, the iteration's symbol.
  void check_region(const Node& n, const Graph& region) {
    if (Error error = verify(region)) fail(label(n), std::move(error));
    const auto* loop = std::get_if<op::Loop>(&n.attrs);
    for (const std::string& symbol : region.symbols)
      if (!symbols_.count(symbol) && !(loop && loop->iteration == symbol))
        fail(label(n) + ": symbol '" + symbol + "' of the region is not one of the graph's");
  }

  void check_symbol(const std::string& symbol) {
    auto fits = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
    bool valid = !symbol.empty() && !llvm::isDigit(symbol[0]) && symbol[0] != '.' &&
                 std::ranges::all_of(symbol, fits);
    for (const char* word : {"true", "false", "inf", "nan"}) valid &= symbol != word;
    if (!valid) fail("symbol '" + symbol + "' is not an identifier");
    if (std::ranges::count(graph_.symbols, symbol) +
            std::ranges::count(graph_.data_symbols, symbol, &DataSymbol::name) >
        1)
      fail("symbol '" + symbol + "' is listed twice");
  }

  void check_data_symbol(const DataSymbol& symbol) {
    const std::string where = "symbol '" + symbol.name + "'";
    if (!valid_id(symbol.value, where)) return;
    use(symbol.value, where);
    const TensorType& type = graph_.value(symbol.value).type;
    const std::optional<int64_t> size = as_const(element_count(type.shape));
    if (least_of(symbol.name) != 0)
      fail(where + " is read from data, so its name must end in '" + std::string(kMayBeZero) + "'");
    if (!is_int(type.dtype))
      fail(where + " is read from '" + graph_.value(symbol.value).name + "', which is " +
           to_string(type));
    if (symbol.element < 0 || symbol.element >= size.value_or(INT64_MAX))
      fail(where + " is element " + std::to_string(symbol.element) + " of " + to_string(type));
    for (const Expr* e : {&symbol.bound, &symbol.equals})
      if (e->defined()) check_dims(Shape(1, *e), where);
  }

  const Graph& graph_;
  std::set<ValueId> inputs_;
  std::set<std::string> symbols_;
  std::vector<Diag> diags_;
  std::set<ValueId> seen_;
  std::set<std::string> names_;
};

}  // namespace

Error verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace tw
