#include "program/size_conditions.h"

#include <algorithm>

#include "ir/graph/index_checks.h"
#include "passes/storage.h"
#include "program/sizes.h"

namespace tw {
namespace {

// Replaces each symbol of `steps` by a multiple of its step.
Expr in_steps(const Expr& e, const SymbolLimitsOf& steps, Ranges& ranges) {
  Expr out = e;
  for (const auto& [symbol, limits] : steps) {
    if (limits.step <= 1 || !uses_var(e, symbol)) continue;
    const std::string times = "times_" + symbol;  // no symbol of a graph has this name
    ranges[times] = {Expr((limits.least + limits.step - 1) / limits.step),
                     limits.most < INT64_MAX ? Expr(limits.most / limits.step) : Expr()};
    out = substitute(out, symbol, var(times) * Expr(limits.step));
  }
  return out;
}

bool holds_in_steps(const Expr& e, const SymbolLimitsOf& steps, Ranges ranges) {
  const Expr replaced = in_steps(e, steps, ranges);
  return is_const(simplify(replaced, ranges), 1);
}

// "; multiples of 32 of H, W fit", or "" if no step up to 256 fits.
std::string what_fits(const Expr& condition, const Graph& graph, const Ranges& ranges) {
  SymbolLimitsOf steps;
  std::string names;
  for (const std::string& symbol : graph.symbols)
    if (uses_var(condition, symbol)) {
      steps[symbol] = limits_of(graph.limits, symbol);
      names += (names.empty() ? "" : ", ") + interface_name(symbol);
    }
  for (int64_t step = 2; step <= 256; step *= 2) {
    for (auto& [symbol, limits] : steps) limits.step = step;
    if (holds_in_steps(condition, steps, ranges))
      return "; multiples of " + std::to_string(step) + " of " + names + " fit";
  }
  return "";
}

// "'image', axis 2", or "the inputs" if no axis is the symbol alone.
std::string place_of_symbol(const Graph& graph, const std::string& symbol) {
  for (const ValueId input : graph.inputs()) {
    const Shape& shape = graph.value(input).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (is_var(shape[axis], symbol))
        return "'" + graph.value(input).name + "', axis " + std::to_string(axis);
  }
  return "the inputs";
}

}  // namespace

Expr interface_terms(const Expr& e) {
  return rewrite(e, [](const Expr& part) {
    const std::string* name = var_name(part);
    return name && interface_name(*name) != *name ? var(interface_name(*name)) : Expr();
  });
}

void require_steps(const Graph& graph, Program& program) {
  for (const auto& [symbol, limits] : graph.limits)
    if (limits.step > 1)
      program.conditions.push_back({eq(floor_mod(var(symbol), Expr(limits.step)), Expr(0)),
                                    interface_name(symbol) + " (" + place_of_symbol(graph, symbol) +
                                        ") must be a multiple of " + std::to_string(limits.step)});
}

std::string node_title(const Graph& graph, const Node& node) {
  return (node.name.empty() ? graph.value(node.output).name : node.name) + " (" +
         (node.source.empty() ? op_info(node.attrs).name : node.source) + ")";
}

std::string where_it_runs(const Graph& graph, const Node& node) {
  const bool loop = std::holds_alternative<op::Loop>(node.attrs);
  return std::string(" where ") + (loop ? "the body of " : "a branch of ") +
         node_title(graph, node) + " runs";
}

Ranges ranges_of(const Graph& graph) {
  Ranges ranges;
  for (const std::string& symbol : graph.all_symbols()) ranges[symbol] = symbol_range(symbol);
  for (const DataSymbol& symbol : graph.data_symbols) ranges[symbol.name].max = symbol.bound;
  for (const auto& [symbol, limits] : graph.limits)
    ranges[symbol] = {Expr(limits.least), limits.most < INT64_MAX ? Expr(limits.most) : Expr()};
  return ranges;
}

void add_needs_of_region(const std::vector<std::string>& region, const Graph& graph,
                         const Node& node, std::vector<std::string>& needs) {
  for (const std::string& need : region)
    if (std::string text = need + where_it_runs(graph, node); !std::ranges::count(needs, text))
      needs.push_back(std::move(text));
}

static std::vector<std::string> needs_within(const Graph& graph, bool in_region) {
  Program program;
  const Ranges ranges = ranges_of(graph);
  SizeConditions conditions(graph, ranges, in_region, program);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (Error error = conditions.add(node)) llvm::consumeError(std::move(error));
    for (const Graph* region : regions_of(node.attrs))
      add_needs_of_region(needs_within(*region, true), graph, node, program.needs);
  }
  return program.needs;
}

std::vector<std::string> needs_of(const Graph& graph) { return needs_within(graph, false); }

Error SizeConditions::add(const Node& node) {
  for (const Expr& condition : conditions_of(graph_, node)) TW_TRY(need(condition, node));
  for (const auto& [condition, what] : index_conditions(graph_, node))
    TW_TRY(need(condition, node, what));
  for (const ValueId made : node.outputs()) {
    TensorType type = graph_.value(made).type;
    for (Expr& extent : type.shape) extent = interface_terms(extent);
    const std::string title = node_title(graph_, node) + ": " + to_string(type);
    need_walkable(made, title);
    need_countable(made, title);
  }
  return Error::success();
}

// Handles a condition that may depend on sizes. `index` names the index and its range, "" for other
// conditions.
Error SizeConditions::need(const Expr& condition, const Node& node, const std::string& index) {
  if (!needed_.insert(to_string(condition)).second) return Error::success();
  const Expr open = simplify(condition, symbols_);
  if (is_const(open, 1)) return Error::success();
  const std::string need = node_title(graph_, node) +
                           (is_const(open, 0) && !index.empty()
                                ? " has " + index
                                : " needs " + to_string(interface_terms(condition)));
  if (is_const(open, 0) && !in_region_) return make_error(DiagCode::invalid_model, "{0}", need);
  if (holds_in_steps(open, graph_.limits, symbols_)) return Error::success();
  add_condition(known_before_run(open) ? open : condition,
                need + (index.empty() ? what_fits(open, graph_, symbols_) : ""));
  program_.needs.push_back(need);
  return Error::success();
}

// Limits the other extents of a value without elements, as loops run over them all the same: 2^31
// iterations take moments.
void SizeConditions::need_walkable(ValueId value, const std::string& title) {
  constexpr int64_t kMostElements = int64_t{1} << 31;
  const Shape& shape = graph_.value(value).type.shape;
  if (shape.size() < 2 || static_shape(shape)) return;
  Expr filled = bool_imm(true), walked = 1;
  for (const Expr& extent : shape) {
    filled = logical_and(filled, simplify(le(Expr(1), extent), symbols_));
    walked = walked * simplify(max(extent, Expr(1)), symbols_);
  }
  const Expr few = le(walked, Expr(kMostElements));
  if (is_const(filled, 1) || is_const(few, 1) ||
      !needed_.insert("walk " + to_string(walked)).second)
    return;
  add_condition(is_const(filled, 0) ? few : binary(BinaryOp::logical_or, filled, few),
                title + " has no elements, and an extent that is too large");
}

// Checks that the value's bytes fit in 64 bits, so that numbers inside kernels do too. Among
// multiples of one size, the largest stands for all.
void SizeConditions::need_countable(ValueId value, const std::string& title) {
  const Expr bytes = byte_count(graph_.value(value).type);
  if (as_const(bytes) || !needed_.insert(to_string(bytes)).second) return;
  const auto* product = as_binary(bytes, BinaryOp::mul);
  const auto factor = product ? as_const(product->b) : std::nullopt;
  const int64_t times = factor.value_or(1);
  const auto [of_size, fresh] = multiples_.try_emplace(to_string(factor ? product->a : bytes),
                                                       times, program_.conditions.size());
  auto& [most, condition] = of_size->second;
  if (!fresh && times <= most) return;
  most = times;
  SizeCondition own{le(Expr(0), bytes), title + " has more bytes than can be counted"};
  if (fresh || !known_before_run(bytes)) add_condition(own.holds, own.what);
  else program_.conditions[condition] = std::move(own);
}

bool SizeConditions::known_before_run(const Expr& e) const {
  return !in_region_ && std::ranges::none_of(graph_.data_symbols, [&](const DataSymbol& symbol) {
    return uses_var(e, symbol.name);
  });
}

void SizeConditions::add_condition(const Expr& holds, const std::string& what) {
  if (known_before_run(holds)) {
    program_.conditions.push_back({holds, what});
    return;
  }
  SizeStep step{.kind = SizeStep::Kind::check, .before = program_.calls.size()};
  step.equals = holds;
  step.what = what;
  program_.steps.push_back(std::move(step));
}

}  // namespace tw
