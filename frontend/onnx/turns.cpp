#include "frontend/onnx/turns.h"

#include <algorithm>

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
      n.invalid("a result of all turns is not a tensor");
      return {};
    }
    Shape shape = n.shape(v);
    shape.insert(shape.begin(), Expr(1));
    parts.push_back(n.reshape(v, std::move(shape)));
  }
  return parts.size() == 1 ? parts[0] : n.emit(op::Concat{0}, std::move(parts));
}

Region finished(NodeImport& n, RegionDraft& draft, const std::vector<Val>& outputs, const char* name) {
  std::vector<Builder::Output> list;
  for (size_t i = 0; i < outputs.size(); ++i) list.push_back({"out" + std::to_string(i), outputs[i]});
  Expected<Graph> graph = draft.builder.finish(name, list);
  if (graph) return {std::make_shared<const Graph>(std::move(*graph))};
  n.fail(take_diags(graph.takeError())[0].message);
  return {};
}

namespace {

// Body nodes times turns. Sequences have no other way.
constexpr int64_t kUnrolledNodes = 64, kUnrolledListNodes = 20'000;

constexpr const char* kListInLoop = "a sequence in a loop whose number of turns is computed from the data, or large";

int64_t count_nodes(const OnnxGraph& graph) {
  int64_t count = 0;
  for (const OnnxNode& node : graph.nodes) {
    ++count;
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.graph) count += count_nodes(*attribute.graph);
  }
  return count;
}

// The values that the body's inputs stand for, in its own graph.
std::vector<Val> region_inputs(NodeImport& n, const Turns& turns, const std::string& turn, Builder& b) {
  std::vector<Val> inputs;
  b.add_symbol(turn, {Expr(1), turns.trip.value_or(Expr())});
  if (turns.counts) {
    inputs.push_back(b.known({var(turn) - Expr(1)}, DType::i64, {}));
    inputs.push_back(b.known({Expr(1)}, DType::boolean, {}));   // no turn begins otherwise
  }
  for (size_t i = 0; i < turns.carried.size(); ++i) inputs.push_back(b.add_input("carried" + std::to_string(i), n.type(turns.carried[i])));
  for (size_t i = 0; i < turns.sliced.size(); ++i) {
    TensorType row = n.type(turns.sliced[i]);
    row.shape.erase(row.shape.begin());
    inputs.push_back(b.add_input("row" + std::to_string(i), std::move(row)));
  }
  return inputs;
}

// No turn at all: the body only tells the types of the results.
std::optional<Results> no_turns(NodeImport& n, const Turns& turns) {
  const auto draft = n.region(*turns.body, [&](Builder& b) { return region_inputs(n, turns, n.fresh_symbol("turn"), b); });
  if (!draft) return std::nullopt;
  Results out{turns.carried, {}, {}};
  for (size_t i = draft->outputs.size() - turns.stacked_count(); i < draft->outputs.size(); ++i) {
    const TensorType& row = draft->builder.type(draft->outputs[i]);
    std::vector<int64_t> shape = {0};
    for (const Expr& dim : row.shape) {
      if (!as_const(dim)) n.fail_symbolic("a loop without turns, whose results have rows of " + to_string(row));
      shape.push_back(as_const(dim).value_or(0));
    }
    out.stacked.push_back(n.builder().add_constant(Tensor::zeros(row.dtype, shape)));
  }
  return n.failed() ? std::nullopt : std::optional(out);
}

std::optional<std::vector<Val>> one_turn(NodeImport& n, const Turns& turns, const std::vector<Val>& carried, int64_t turn) {
  std::vector<Val> inputs;
  if (turns.counts) {
    inputs.push_back(n.builder().known({Expr(turn)}, DType::i64, {}));
    inputs.push_back(n.builder().known({Expr(1)}, DType::boolean, {}));
  }
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  for (Val v : turns.sliced) inputs.push_back(row(n, v, turn));
  return n.inlined(*turns.body, inputs);
}

// Nothing, without a failure: how many turns there are is not known, or they are too many.
std::optional<Results> unrolled(NodeImport& n, const Turns& turns) {
  const std::optional<int64_t> trip = turns.trip ? as_const(*turns.trip) : std::nullopt;
  if (turns.trip && !trip) return std::nullopt;
  const bool lists = std::any_of(turns.carried.begin(), turns.carried.end(), [&](Val v) { return n.builder().list_kind(v).has_value(); });
  const int64_t limit = (lists ? kUnrolledListNodes : kUnrolledNodes) / std::max<int64_t>(count_nodes(*turns.body), 1);
  if (trip && *trip > limit) return std::nullopt;
  Results out{turns.carried, {}, {}};
  std::vector<std::vector<Val>> rows(turns.stacked_count());
  std::optional<bool> going = known_bool(n, turns.condition);
  int64_t turn = 0;
  for (; going == true && (!trip || turn < *trip); ++turn) {
    if (turn >= limit) return std::nullopt;
    const auto outputs = one_turn(n, turns, out.carried, turn);
    if (!outputs) return std::nullopt;
    const auto first = outputs->begin() + (turns.counts ? 1 : 0), behind = first + static_cast<std::ptrdiff_t>(out.carried.size());
    if (turns.counts && turn + 1 != trip) going = known_bool(n, outputs->front());
    out.carried.assign(first, behind);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].push_back(behind[static_cast<std::ptrdiff_t>(i)]);
  }
  if (!going) return std::nullopt;
  if (turn == 0 && !rows.empty()) return no_turns(n, turns);
  for (const std::vector<Val>& list : rows) out.stacked.push_back(stack(n, list));
  return n.failed() ? std::nullopt : std::optional(out);
}

// Gives output i that shape where the sizes, made from data, may be it: the run ends where they are not.
bool reshaped(NodeImport& n, RegionDraft& draft, size_t i, const TensorType& type) {
  const Val v = draft.outputs[i];
  const Shape& shape = draft.builder.type(v).shape;
  if (draft.builder.type(v).dtype != type.dtype || shape.size() != type.shape.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (!may_be_equal(shape[axis], type.shape[axis])) return false;
  Expected<Val> made = draft.builder.emit(op::Reshape{type.shape}, {v}, {n.node.name, n.node.op_type});
  if (!made) {
    llvm::consumeError(made.takeError());
    return false;
  }
  std::replace(draft.outputs.begin(), draft.outputs.end(), v, *made);   // stacked under another name, it has the same size
  return true;
}

// Only tensors leave a region, and what is carried keeps its type.
void check_outputs(NodeImport& n, const Turns& turns, RegionDraft& draft) {
  for (size_t i = 0; i < draft.outputs.size(); ++i) {
    if (draft.builder.list_kind(draft.outputs[i])) return n.fail(kListInLoop);
    const size_t lead = turns.counts ? 1 : 0;
    if (i < lead || i >= lead + turns.carried.size()) continue;
    const TensorType &before = n.type(turns.carried[i - lead]), &behind = draft.builder.type(draft.outputs[i]);
    if (!equal(before, behind) && !reshaped(n, draft, i, before))
      return n.fail(llvm::formatv("carried value {0} is {1} before a turn and {2} behind it", i - lead, to_string(before), to_string(behind)).str(),
                    "give it one shape: pad it to its largest size");
  }
}

// Of a loop's results the rows of the turns that were made.
void cut(NodeImport& n, Results& results, const Expr& trip) {
  const Expr made = n.symbol_of(results.count, 0, trip);
  for (Val& v : results.stacked)
    if (v.valid()) v = n.slice(v, 0, 0, made);
}

bool any_wanted(const Turns& turns) { return std::find(turns.wanted.begin(), turns.wanted.end(), true) != turns.wanted.end(); }

// The attributes but for the body; whether the condition may end it.
op::Loop described(NodeImport& n, const Turns& turns, RegionDraft& draft, const std::string& turn) {
  const auto* goes_on = turns.counts ? draft.builder.elements(draft.outputs[0]) : nullptr;
  const bool always = !turns.counts || turns.counted || (goes_on && goes_on->size() == 1 && is_const((*goes_on)[0], 1));
  op::Loop loop;
  loop.carried = static_cast<int64_t>(turns.carried.size());
  loop.sliced = static_cast<int64_t>(turns.sliced.size());
  loop.conditional = !always || (!turns.counted && known_bool(n, turns.condition) != true);
  loop.turn = turn;
  if (turns.trip) loop.trip = {n.simplified(max(*turns.trip, Expr(0)))};
  return loop;
}

// A node that runs the body as often as it must.
std::optional<Results> looped(NodeImport& n, const Turns& turns) {
  for (Val v : turns.carried)
    if (n.builder().list_kind(v)) n.fail(kListInLoop, "make the trip count and the condition constants");
  if (n.failed()) return std::nullopt;
  const std::string turn = n.fresh_symbol("turn");
  const auto draft = n.region(*turns.body, [&](Builder& b) { return region_inputs(n, turns, turn, b); });
  if (draft) check_outputs(n, turns, *draft);
  if (n.failed()) return std::nullopt;
  op::Loop loop = described(n, turns, *draft, turn);
  const size_t lead = turns.counts ? 1 : 0, carried = turns.carried.size();
  std::vector<Val> inputs, outputs;
  if (loop.conditional) {
    inputs.push_back(turns.condition.valid() ? turns.condition : n.builder().known({Expr(1)}, DType::boolean, {}));
    outputs.push_back(draft->outputs[0]);
  }
  for (const std::vector<Val>* list : {&turns.carried, &turns.sliced, &std::as_const(draft->captured)}) inputs.insert(inputs.end(), list->begin(), list->end());
  for (size_t i = 0; i + lead < draft->outputs.size(); ++i)
    if (i < carried || turns.wanted[i - carried]) outputs.push_back(draft->outputs[lead + i]);
  const bool conditional = loop.conditional;
  if (!turns.trip && !conditional) n.fail("a loop that never ends", "give it a trip count or a condition");
  if (outputs.empty()) n.fail("a loop without results");
  loop.body = finished(n, *draft, outputs, "body");
  const std::vector<Val> made = n.emit_all(std::move(loop), std::move(inputs));
  if (n.failed()) return std::nullopt;
  Results results{{made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carried)}, {}, conditional ? made.back() : Val{}};
  for (size_t i = 0, next = carried; i < turns.stacked_count(); ++i) results.stacked.push_back(turns.wanted[i] ? made[next++] : Val{});
  if (conditional && any_wanted(turns)) cut(n, results, *turns.trip);
  return n.failed() ? std::nullopt : std::optional(results);
}

// Without a trip count nobody knows how large the results of all turns become: a first loop counts the turns.
std::optional<Results> counted_and_looped(NodeImport& n, const Turns& turns) {
  Turns first = turns;
  first.wanted.assign(turns.wanted.size(), false);
  const std::optional<Results> count = looped(n, first);
  if (!count) return std::nullopt;
  Turns second = turns;
  second.trip = n.symbol_of(count->count, 0);
  second.counted = true;
  return looped(n, second);
}

}  // namespace

std::optional<Results> run_turns(NodeImport& n, const Turns& turns) {
  if (std::optional<Results> results = unrolled(n, turns); results || n.failed()) return results;
  return turns.trip || !any_wanted(turns) ? looped(n, turns) : counted_and_looped(n, turns);
}

}  // namespace tw::onnx_import
