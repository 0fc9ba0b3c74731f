#include "frontend/onnx/loops.h"

#include <algorithm>

#include "frontend/onnx/run_list.h"
#include "ir/simplify.h"

namespace tw::onnx_import {

std::optional<bool> known_bool(NodeImport& n, Val v) {
  if (!v.valid()) return true;
  const auto elements = n.known(v);
  const auto value = elements && elements->size() == 1 ? as_const((*elements)[0]) : std::nullopt;
  return value ? std::optional<bool>(*value != 0) : std::nullopt;
}

Val row(NodeImport& n, Val v, const Expr& at) {
  const Val slice = n.slice(v, 0, at, 1);
  if (n.failed()) return {};
  return n.reshape(slice, Shape(n.shape(v).begin() + 1, n.shape(v).end()));
}

Val stack(NodeImport& n, const std::vector<Val>& rows) {
  std::vector<Val> parts;
  for (Val v : rows) {
    if (n.builder().list_kind(v)) {
      n.invalid("a result of all iterations is not a tensor");
      return {};
    }
    Shape shape = n.shape(v);
    shape.insert(shape.begin(), Expr(1));
    parts.push_back(n.reshape(v, std::move(shape)));
  }
  return parts.size() == 1 ? parts[0] : n.emit(op::Concat{0}, std::move(parts));
}

Region finished(NodeImport& n, RegionDraft& draft, const std::vector<Val>& outputs,
                const char* name) {
  std::vector<Builder::Output> list;
  for (size_t i = 0; i < outputs.size(); ++i)
    list.push_back({"out" + std::to_string(i), outputs[i]});
  Expected<Graph> graph = draft.builder.finish(name, list);
  if (graph) return {std::make_shared<const Graph>(std::move(*graph))};
  n.fail(take_diags(graph.takeError())[0].message);
  return {};
}

namespace {

// Limits of body nodes times iterations. The limit is larger with sequences, as few loops can carry
// them otherwise.
constexpr int64_t kUnrolledNodes = 64, kUnrolledListNodes = 20'000;

constexpr const char
    *kListInLoop =
        "a sequence in a loop whose number of iterations is computed from the data, or large",
    *kKnownCount = "make the trip count and the condition constants";

int64_t count_nodes(const OnnxGraph& graph) {
  int64_t count = 0;
  for (const OnnxNode& node : graph.nodes) {
    ++count;
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.graph) count += count_nodes(*attribute.graph);
  }
  return count;
}

// The type of a carried value after `made` iterations.
TensorType carried_type(NodeImport& n, const LoopSpec& spec, size_t i, const Expr& made) {
  TensorType type = n.type(spec.carried[i]);
  if (!spec.growth[i]) return type;
  const auto& [axis, by] = *spec.growth[i];
  type.shape[axis] = n.simplified(type.shape[axis] + made * by);
  return type;
}

std::string carried_name(size_t i) { return "carried" + std::to_string(i); }

bool is_idle(const LoopSpec& spec, size_t i) { return !spec.idle.empty() && spec.idle[i]; }

// A placeholder for a carried value that nobody reads.
Val unread(Builder& b, const TensorType& type) {
  Expected<Val> made = b.emit(op::Expand{type.shape}, {b.scalar(0, type.dtype)}, {});
  TW_CHECK(static_cast<bool>(made), "{0} is no type of a scalar's", to_string(type));
  return *made;
}

// The values of the body's inputs, in its own graph.
std::vector<Val> region_inputs(NodeImport& n, const LoopSpec& spec, const std::string& iteration,
                               Builder& b) {
  std::vector<Val> inputs;
  b.add_symbol(iteration, {Expr(1), spec.trip.value_or(Expr())});
  if (spec.counts) {
    inputs.push_back(b.known({var(iteration) - Expr(1)}, DType::i64, {}));
    inputs.push_back(b.known({Expr(1)}, DType::boolean, {}));  // true when an iteration begins
  }
  for (size_t i = 0; i < spec.carried.size(); ++i) {
    if (n.builder().list_kind(spec.carried[i])) {
      inputs.push_back(b.list(Builder::ListKind::growing,
                              {b.known({Expr(static_cast<int64_t>(i))}, DType::i64, {})}));
      continue;
    }
    const TensorType type = carried_type(n, spec, i, var(iteration) - Expr(1));
    inputs.push_back(is_idle(spec, i) ? unread(b, type) : b.add_input(carried_name(i), type));
  }
  for (size_t i = 0; i < spec.sliced.size(); ++i) {
    TensorType row = n.type(spec.sliced[i]);
    row.shape.erase(row.shape.begin());
    inputs.push_back(b.add_input("row" + std::to_string(i), std::move(row)));
  }
  return inputs;
}

// A loop without iterations: the body only gives the types of the results.
std::optional<Results> no_iterations(NodeImport& n, const LoopSpec& spec) {
  const auto draft = n.region(
      *spec.body, [&](Builder& b) { return region_inputs(n, spec, n.fresh_symbol("turn"), b); });
  if (!draft) return std::nullopt;
  Results out{spec.carried, {}, {}};
  for (size_t i = draft->outputs.size() - spec.stacked_count(); i < draft->outputs.size(); ++i) {
    const TensorType& row = draft->builder.type(draft->outputs[i]);
    std::vector<int64_t> shape = {0};
    for (const Expr& dim : row.shape) {
      if (!as_const(dim))
        n.fail_symbolic("a loop without iterations, whose results have rows of " + to_string(row),
                        row.shape);
      shape.push_back(as_const(dim).value_or(0));
    }
    out.stacked.push_back(n.builder().add_constant(Tensor::zeros(row.dtype, shape)));
  }
  return n.failed() ? std::nullopt : std::optional(out);
}

std::optional<std::vector<Val>> one_iteration(NodeImport& n, const LoopSpec& spec,
                                              const std::vector<Val>& carried, int64_t iteration) {
  std::vector<Val> inputs;
  if (spec.counts) {
    inputs.push_back(n.builder().known({Expr(iteration)}, DType::i64, {}));
    inputs.push_back(n.builder().known({Expr(1)}, DType::boolean, {}));
  }
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  for (Val v : spec.sliced) inputs.push_back(row(n, v, iteration));
  return n.inlined(*spec.body, inputs);
}

// nullopt without a failure: the number of iterations is unknown or too large.
std::optional<Results> unrolled(NodeImport& n, const LoopSpec& spec) {
  const std::optional<int64_t> trip = spec.trip ? as_const(*spec.trip) : std::nullopt;
  if (spec.trip && !trip) return std::nullopt;
  const bool lists = std::any_of(spec.carried.begin(), spec.carried.end(),
                                 [&](Val v) { return n.builder().list_kind(v).has_value(); });
  const int64_t limit = (lists ? kUnrolledListNodes : kUnrolledNodes) /
                        std::max<int64_t>(count_nodes(*spec.body), 1);
  if (trip && *trip > limit) return std::nullopt;
  Results out{spec.carried, {}, {}};
  std::vector<std::vector<Val>> rows(spec.stacked_count());
  std::optional<bool> going = known_bool(n, spec.condition);
  int64_t iteration = 0;
  for (; going == true && (!trip || iteration < *trip); ++iteration) {
    if (iteration >= limit) return std::nullopt;
    const auto outputs = one_iteration(n, spec, out.carried, iteration);
    if (!outputs) return std::nullopt;
    const auto first = outputs->begin() + (spec.counts ? 1 : 0),
               behind = first + static_cast<std::ptrdiff_t>(out.carried.size());
    if (spec.counts && iteration + 1 != trip) going = known_bool(n, outputs->front());
    out.carried.assign(first, behind);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].push_back(behind[static_cast<std::ptrdiff_t>(i)]);
  }
  if (!going) return std::nullopt;
  if (iteration == 0 && !rows.empty()) return no_iterations(n, spec);
  for (const std::vector<Val>& list : rows) out.stacked.push_back(stack(n, list));
  return n.failed() ? std::nullopt : std::optional(out);
}

// Reshapes output i to the shape of `type`, if sizes made from data may be equal to it. The run
// fails if they are not.
bool reshaped(NodeImport& n, RegionDraft& draft, size_t i, const TensorType& type) {
  const Val v = draft.outputs[i];
  const Shape& shape = draft.builder.type(v).shape;
  if (draft.builder.type(v).dtype != type.dtype || shape.size() != type.shape.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (!may_be_equal(shape[axis], type.shape[axis])) return false;
  Expected<Val> made = draft.builder.emit(op::Reshape{type.shape}, {v}, n.origin());
  if (!made) {
    llvm::consumeError(made.takeError());
    return false;
  }
  // A stacked result may be the same value, and has the same size
  std::replace(draft.outputs.begin(), draft.outputs.end(), v, *made);
  return true;
}

// True if all symbols of the expression belong to the graph around the body.
bool known_outside(NodeImport& n, const Expr& e) {
  bool known = true;
  visit(e, [&](const Expr& part) {
    const std::string* name = var_name(part);
    known = known && (!name || n.builder().symbols().contains(*name));
  });
  return known;
}

// By stacked result: true if it is wanted and the body computes the size of its rows, from data or
// from the number of the iteration.
std::vector<bool> sized_in_body(const LoopSpec& spec, const RegionDraft& draft,
                                const std::string& iteration) {
  std::vector<bool> sized(spec.stacked_count());
  const size_t first = draft.outputs.size() - sized.size();
  for (size_t i = 0; i < sized.size(); ++i) {
    const Val row = draft.outputs[first + i];
    if (!spec.wanted[i] || draft.builder.list_kind(row)) continue;
    const Shape& shape = draft.builder.type(row).shape;
    sized[i] = draft.builder.is_made_here(shape) ||
               std::ranges::any_of(shape, [&](const Expr& e) { return uses_var(e, iteration); });
  }
  return sized;
}

// Replaces wanted rows by their sizes, or by rows of the sizes in the spec, which the run checks.
void fit_rows(NodeImport& n, const LoopSpec& spec, RegionDraft& draft) {
  const size_t first = draft.outputs.size() - spec.stacked_count();
  NodeImport inner = n.within(draft);
  for (size_t i = 0; i < spec.stacked_count(); ++i) {
    Val& row = draft.outputs[first + i];
    if (!spec.wanted[i]) continue;
    if (spec.sizes) row = inner.dim_values(inner.shape(row));
    else if (spec.rows[i])
      for (size_t axis = 0; axis < spec.rows[i]->size() && !inner.failed(); ++axis)
        row = inner.with_extent(row, static_cast<int64_t>(axis), (*spec.rows[i])[axis]);
  }
  n.take_problem(inner);
}

// Fails if an output has a size that the body makes from data.
void check_sizes(NodeImport& n, const RegionDraft& draft, const std::vector<Val>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (draft.builder.is_made_here(draft.builder.type(outputs[i]).shape))
      return n.fail(
          llvm::formatv("result {0} of a loop's body has a size that is computed in it", i).str(),
          "compute the size in front of the loop, or give the result a size that is known there");
}

// Fails unless the list is the carried one, as it came or longer.
void check_list(NodeImport& n, RegionDraft& draft, Val list, size_t number) {
  if (draft.builder.list_kind(list) != Builder::ListKind::growing ||
      !is_const((*draft.builder.elements(draft.builder.items(list)[0]))[0],
                static_cast<int64_t>(number)))
    n.fail(llvm::formatv("carried sequence {0}: {1}, in which it does more than grow at its end",
                         number, kListInLoop)
               .str(),
           kKnownCount);
}

// Finds carried values that grow along one axis, by the same amount in every iteration, and notes
// the growth in the spec. Returns true if it has found any.
bool find_growth(NodeImport& n, LoopSpec& spec, const RegionDraft& draft,
                 const std::string& iteration) {
  bool found = false;
  for (size_t i = 0; i < spec.carried.size(); ++i) {
    const Val out = draft.outputs[i + (spec.counts ? 1 : 0)];
    if (draft.builder.list_kind(out) || n.builder().list_kind(spec.carried[i])) continue;
    const TensorType &before = n.type(spec.carried[i]), &behind = draft.builder.type(out);
    if (before.dtype != behind.dtype || before.shape.size() != behind.shape.size()) continue;
    std::optional<std::pair<size_t, Expr>> growth;
    int axes = 0;
    for (size_t axis = 0; axis < before.shape.size(); ++axis) {
      const Expr by = n.simplified(behind.shape[axis] - before.shape[axis]);
      if (is_const(by, 0)) continue;
      ++axes;
      const bool steady = !uses_var(by, iteration) &&
                          constant_bounds(by, draft.builder.symbols()).min.value_or(-1) >= 0;
      if (steady && known_outside(n, by)) growth = {axis, by};
    }
    if (axes != 1 || !growth) continue;
    spec.growth[i] = growth;
    found = true;
  }
  return found;
}

// Checks that only tensors leave the region, and that each carried value keeps its type, grows, or
// is a sequence.
void check_outputs(NodeImport& n, const LoopSpec& spec, RegionDraft& draft,
                   const std::string& iteration) {
  for (size_t i = 0; i < draft.outputs.size(); ++i) {
    const size_t lead = spec.counts ? 1 : 0;
    const bool carried = i >= lead && i < lead + spec.carried.size(),
               list = carried && n.builder().list_kind(spec.carried[i - lead]);
    if (draft.builder.list_kind(draft.outputs[i]).has_value() != list) return n.fail(kListInLoop);
    if (list) check_list(n, draft, draft.outputs[i], i - lead);
    if (!carried || list || is_idle(spec, i - lead)) continue;
    const TensorType before = carried_type(n, spec, i - lead, var(iteration)),
                     &behind = draft.builder.type(draft.outputs[i]);
    if (!equal(before, behind) && (spec.growth[i - lead] || !reshaped(n, draft, i, before)))
      return n.fail(
          llvm::formatv("carried value {0} is {1} before an iteration and {2} behind it", i - lead,
                        to_string(carried_type(n, spec, i - lead, var(iteration) - Expr(1))),
                        to_string(behind))
              .str(),
          "give it one shape, or let it grow along one axis by as much in every iteration");
  }
}

// True if a result that grows with every iteration is wanted.
bool any_wanted(NodeImport& n, const LoopSpec& spec) {
  return std::ranges::find(spec.wanted, true) != spec.wanted.end() ||
         std::ranges::any_of(spec.carried,
                             [&](Val v) { return n.builder().list_kind(v).has_value(); });
}

// The loop's attributes without the body. `conditional` is true if the condition may end the loop.
op::Loop described(NodeImport& n, const LoopSpec& spec, RegionDraft& draft,
                   const std::string& iteration) {
  const auto* goes_on = spec.counts ? draft.builder.elements(draft.outputs[0]) : nullptr;
  const bool always = !spec.counts || spec.counted ||
                      (goes_on && goes_on->size() == 1 && is_const((*goes_on)[0], 1));
  op::Loop loop;
  for (size_t i = 0; i < spec.carried.size(); ++i)
    if (!n.builder().list_kind(spec.carried[i]) && !is_idle(spec, i)) ++loop.carried;
  loop.sliced = static_cast<int64_t>(spec.sliced.size());
  loop.conditional = !always || (!spec.counted && known_bool(n, spec.condition) != true);
  loop.iteration = iteration;
  if (spec.trip) loop.trip = {n.simplified(max(*spec.trip, Expr(0)))};
  return loop;
}

// The value of an optional that has one: operators treat both alike.
Val held(NodeImport& n, Val v) {
  if (!n.is_list(v, Builder::ListKind::optional)) return v;
  if (!n.builder().items(v).empty()) return held(n, n.builder().items(v)[0]);
  n.fail(
      "an empty optional in a loop whose number of iterations is computed from the data, or large",
      kKnownCount);
  return v;
}

// The items that an iteration appends to the list, as a stacked result. Rows have the largest size
// of any iteration.
RunList appended(NodeImport& n, RegionDraft& draft, Val list, const op::Loop& loop) {
  NodeImport inner = n.within(draft);
  std::vector<Val> items = draft.builder.items(list);
  items.erase(items.begin());
  RunList out = run_list(inner, items);
  Ranges over, all = draft.builder.symbols();
  if (!loop.trip.empty()) over[loop.iteration] = all[loop.iteration] = {Expr(1), loop.trip[0]};
  Shape most;
  for (int64_t axis = 1; axis < inner.rank(out.rows); ++axis) {
    const auto interval = interval_over(inner.dim(out.rows, axis), over, all);
    if (!interval || !interval->max.defined())
      inner.fail("items of a sequence whose largest size in any iteration is not known");
    else most.push_back(inner.simplified(interval->max));
  }
  out = filled_up(inner, out, most, out.least_rank);
  n.take_problem(inner);
  return out;
}

// Puts the node of a loop together: its inputs, the outputs of its body, and which results are
// lists.
class LoopNode {
 public:
  LoopNode(NodeImport& n, const LoopSpec& spec, RegionDraft& draft, const std::string& iteration)
      : n_(n), spec_(spec), draft_(draft), loop_(described(n, spec, draft, iteration)) {
    if (loop_.conditional) {
      inputs_.push_back(spec.condition.valid() ? spec.condition
                                               : n.builder().known({Expr(1)}, DType::boolean, {}));
      outputs_.push_back(draft.outputs[0]);
    }
    const size_t lead = spec.counts ? 1 : 0, carried = spec.carried.size();
    for (size_t i = 0; i < carried; ++i) {
      if (is_list(i) || is_idle(spec, i)) continue;
      inputs_.push_back(spec.carried[i]);
      outputs_.push_back(draft.outputs[lead + i]);
    }
    for (const std::vector<Val>* list : {&spec.sliced, &std::as_const(draft.captured)})
      inputs_.insert(inputs_.end(), list->begin(), list->end());
    for (size_t i = 0; i < spec.stacked_count(); ++i)
      if (spec.wanted[i]) outputs_.push_back(draft.outputs[lead + carried + i]);
    for (size_t i = 0; i < carried; ++i) {
      if (!spec.lists || !grows(i)) continue;
      lists_.push_back(appended(n, draft, draft.outputs[lead + i], loop_));
      outputs_.push_back(lists_.back().rows);
      outputs_.push_back(lists_.back().sizes);
    }
  }

  std::optional<Results> emit() {
    if (!spec_.trip && !loop_.conditional)
      n_.fail("a loop that never ends", "give it a trip count or a condition");
    if (outputs_.empty()) n_.fail("a loop without results");
    if (n_.failed()) return std::nullopt;
    const bool conditional = loop_.conditional;
    check_sizes(n_, draft_, outputs_);
    if (n_.failed()) return std::nullopt;
    loop_.body = finished(n_, draft_, outputs_, "body");
    const std::vector<Val> made = n_.emit_all(loop_, inputs_);
    if (n_.failed()) return std::nullopt;
    Results results;
    auto next = made.begin();
    if (conditional) results.count = count_ = made.back();
    for (size_t i = 0; i < spec_.carried.size(); ++i)
      results.carried.push_back(is_list(i) || is_idle(spec_, i) ? spec_.carried[i]
                                                                : grown(i, *next++));
    // A condition may end the loop early, so only rows of actual iterations count
    const auto rows = [&] {
      return conditional ? n_.slice(*next++, 0, 0, n_.symbol_of(results.count, 0, *spec_.trip))
                         : *next++;
    };
    for (size_t i = 0; i < spec_.stacked_count(); ++i)
      results.stacked.push_back(spec_.wanted[i] ? rows() : Val{});
    for (size_t i = 0, list = 0; i < spec_.carried.size(); ++i) {
      if (!spec_.lists || !grows(i)) continue;
      const Val items = rows(), sizes = rows();
      results.carried[i] = longer(spec_.carried[i],
                                  {together(items), together(sizes), lists_[list++].least_rank});
    }
    return n_.failed() ? std::nullopt : std::optional(results);
  }

 private:
  bool is_list(size_t i) const { return n_.builder().list_kind(spec_.carried[i]).has_value(); }
  bool grows(size_t i) const {
    return is_list(i) &&
           draft_.builder.items(draft_.outputs[(spec_.counts ? 1 : 0) + i]).size() > 1;
  }

  // A growing value, cut to the size after the actual iterations.
  Val grown(size_t i, Val v) {
    if (!count_.valid() || !spec_.growth[i] || n_.failed()) return v;
    const Shape shape = carried_type(n_, spec_, i, n_.symbol_of(count_, 0, *spec_.trip)).shape;
    const Val flat = n_.reshape(v, {element_count(n_.shape(v))});
    return n_.reshape(n_.slice(flat, 0, 0, element_count(shape)), shape);
  }

  // Reshapes [iterations, items of one, ...] to [items, ...].
  Val together(Val v) {
    if (n_.failed()) return {};
    Shape shape(n_.shape(v).begin() + 1, n_.shape(v).end());
    shape[0] = n_.simplified(shape[0] * n_.dim(v, 0));
    return n_.reshape(v, shape);
  }

  Val longer(Val list, const RunList& by) {
    const bool empty = n_.is_list(list, Builder::ListKind::sequence) &&
                       n_.builder().items(list).empty();
    return as_value(n_, empty ? by : joined(n_, run_list(n_, list), by));
  }

  NodeImport& n_;
  const LoopSpec& spec_;
  RegionDraft& draft_;
  op::Loop loop_;
  std::vector<Val> inputs_, outputs_;
  std::vector<RunList> lists_;
  Val count_;
};

std::optional<Results> sized_and_looped(NodeImport& n, const LoopSpec& spec,
                                        const std::vector<bool>& sized);
std::optional<Results> counted_and_looped(NodeImport& n, const LoopSpec& spec);

bool any_grows(const LoopSpec& spec) {
  for (size_t i = 0; i < spec.growth.size(); ++i)
    if (spec.growth[i] && !is_idle(spec, i)) return true;
  return false;
}

// A draft of the body in which carried values have the types of an iteration.
std::unique_ptr<RegionDraft> drafted(NodeImport& n, LoopSpec& spec, const std::string& iteration) {
  const auto inputs = [&](Builder& b) { return region_inputs(n, spec, iteration, b); };
  auto draft = n.region(*spec.body, inputs);
  if (draft && find_growth(n, spec, *draft, iteration)) draft = n.region(*spec.body, inputs);
  return draft;
}

// Makes a node that runs the body as often as needed.
std::optional<Results> looped(NodeImport& n, LoopSpec spec) {
  for (Val& v : spec.carried) v = held(n, v);
  if (n.failed()) return std::nullopt;
  const std::string iteration = n.fresh_symbol("turn");
  const auto draft = drafted(n, spec, iteration);
  if (draft && !spec.trip && any_grows(spec)) {
    if (spec.idle.empty()) return counted_and_looped(n, spec);
    n.fail("a loop without a trip count, whose condition reads a carried value that grows",
           "give it a trip count");
  }
  if (draft) check_outputs(n, spec, *draft, iteration);
  if (n.failed()) return std::nullopt;
  const std::vector<bool> sized = sized_in_body(spec, *draft, iteration);
  if (!spec.sizes && spec.rows.empty() && std::ranges::count(sized, true) > 0)
    return sized_and_looped(n, spec, sized);
  if (!spec.rows.empty() || spec.sizes) fit_rows(n, spec, *draft);
  if (n.failed()) return std::nullopt;
  return LoopNode(n, spec, *draft, iteration).emit();
}

// The rows of a stacked result have the same size in every iteration. If the body computes that
// size, a first loop finds the largest one, and the run ends if an iteration of the second loop has
// another.
std::optional<Results> sized_and_looped(NodeImport& n, const LoopSpec& spec,
                                        const std::vector<bool>& sized) {
  LoopSpec first = spec;
  first.wanted = sized;
  first.sizes = true;
  first.lists = false;
  const std::optional<Results> sizes = looped(n, first);
  if (!sizes) return std::nullopt;
  LoopSpec second = spec;
  second.rows.resize(sized.size());
  for (size_t i = 0; i < sized.size(); ++i) {
    if (!sized[i]) continue;
    const int64_t rank = *n.static_dim(sizes->stacked[i], 1);
    const Val none = n.dim_values(std::vector<Expr>(static_cast<size_t>(rank), Expr(0))),
              all = n.emit(op::Concat{0}, {n.reshape(none, {1, rank}), sizes->stacked[i]}),
              most = n.reduce(ReduceKind::max, all, {0}, false);
    Shape& row = second.rows[i].emplace();
    for (int64_t axis = 0; axis < rank; ++axis) row.push_back(n.symbol_of(most, axis));
  }
  return n.failed() ? std::nullopt : looped(n, second);
}

// The names of the inputs that the graph's nodes and outputs read.
std::set<std::string> read_inputs(const Graph& graph) {
  std::set<int32_t> read;
  for (const NodeId id : graph.order())
    for (const ValueId input : graph.node(id).inputs) read.insert(input.index);
  for (const DataSymbol& symbol : graph.data_symbols) read.insert(symbol.value.index);
  for (const auto& output : graph.outputs()) read.insert(output.value.index);
  std::set<std::string> names;
  for (const ValueId input : graph.inputs())
    if (read.contains(input.index)) names.insert(graph.value(input).name);
  return names;
}

// By carried value: true if neither this iteration's condition nor a later one depends on it.
// nullopt after a failure.
std::optional<std::vector<bool>> find_idle(NodeImport& n, LoopSpec spec) {
  const auto draft = drafted(n, spec, n.fresh_symbol("turn"));
  if (!draft) return std::nullopt;
  std::vector<Builder::Output> outputs = {{"condition", draft->outputs[0]}};
  std::vector<bool> idle(spec.carried.size(), true);
  for (size_t known = 0; known < outputs.size();) {
    known = outputs.size();
    Expected<Graph> graph = draft->builder.finish("condition", outputs);
    if (!graph) {
      n.fail(take_diags(graph.takeError())[0].message);
      return std::nullopt;
    }
    const std::set<std::string> read = read_inputs(*graph);
    for (size_t i = 0; i < idle.size(); ++i) {
      if (!idle[i] || !read.contains(carried_name(i))) continue;
      idle[i] = false;
      outputs.push_back({carried_name(i), draft->outputs[1 + i]});
    }
  }
  return idle;
}

// Without a trip count, the size of the results of all iterations is unknown. So a first loop
// counts the iterations.
std::optional<Results> counted_and_looped(NodeImport& n, const LoopSpec& spec) {
  LoopSpec first = spec;
  first.wanted.assign(spec.wanted.size(), false);
  first.lists = false;
  for (Val& v : first.carried) v = held(n, v);
  const auto idle = n.failed() ? std::nullopt : find_idle(n, first);
  if (!idle) return std::nullopt;
  first.idle = *idle;
  const std::optional<Results> count = looped(n, first);
  if (!count) return std::nullopt;
  LoopSpec second = spec;
  second.trip = n.symbol_of(count->count, 0);
  second.counted = true;
  return looped(n, second);
}

}  // namespace

std::optional<Results> import_loop(NodeImport& n, LoopSpec spec) {
  spec.growth.assign(spec.carried.size(), std::nullopt);
  if (std::optional<Results> results = unrolled(n, spec); results || n.failed()) return results;
  return spec.trip || !any_wanted(n, spec) ? looped(n, spec) : counted_and_looped(n, spec);
}

}  // namespace tw::onnx_import
