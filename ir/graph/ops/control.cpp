// If and Loop: nodes that run graphs of their own. The types of a region's inputs and outputs must
// match the operator's.
#include <algorithm>

#include "ir/graph/ops/common.h"
#include "ir/size_ends.h"

namespace tw {
namespace {

Error check_input(const Graph& region, size_t index, const TensorType& given, const char* what) {
  const Value& value = region.value(region.inputs()[index]);
  if (equal(value.type, given)) return Error::success();
  return make_error(DiagCode::invalid_model, "{0} is given {1}, its input '{2}' is {3}", what,
                    to_string(given), value.name, to_string(value.type));
}

Error check_condition(const TensorType& type) {
  if (type.dtype == DType::boolean && is_const(element_count(type.shape), 1))
    return Error::success();
  return make_error(DiagCode::invalid_model, "the condition is {0}, expected one bool",
                    to_string(type));
}

const TensorType& output_type(const Graph& region, size_t index) {
  return region.value(region.outputs()[index].value).type;
}

Error check_present(const Types& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i]) return make_error(DiagCode::invalid_model, "input {0} is absent", i);
  return Error::success();
}

TensorType at_iteration(TensorType type, const std::string& iteration, const Expr& value) {
  for (Expr& dim : type.shape) dim = simplify_dim(substitute(dim, iteration, value));
  return type;
}

bool changes(const TensorType& type, const std::string& iteration) {
  return std::ranges::any_of(type.shape, [&](const Expr& dim) { return uses_var(dim, iteration); });
}

// stacks: true where the loop stacks rows of its iterations.
Error check_trip(const op::Loop& op, bool stacks) {
  if (op.trip.empty() && (op.sliced > 0 || stacks || !op.conditional))
    return make_error(DiagCode::invalid_model,
                      "a loop without a trip count has a condition, and no slices");
  if (op.conditional || as_const(op.trip[0]).value_or(0) <= kMostExtent) return Error::success();
  return make_error(DiagCode::limit, "{0} iterations, expected at most 2^40",
                    to_string(op.trip[0]));
}

// Requires countable extents after the last iteration. A plain substitution could wrap.
Error check_growth(const TensorType& type, const op::Loop& loop, size_t carried) {
  const Expr behind = loop.trip[0] + Expr(1);
  for (const Expr& dim : type.shape)
    if (!size_ends(dim, {{loop.iteration, {behind, behind}}}))
      return make_error(
          DiagCode::limit,
          "carried value {0} is {1} in iteration {2} of {3}: more than can be counted", carried,
          to_string(type), loop.iteration, to_string(loop.trip[0]));
  return Error::success();
}

// Requires that the body's value i has the shape `wanted` after the iteration.
Error check_made(const Tensor& made, const std::vector<int64_t>& wanted, const char* what, size_t i,
                 int64_t iteration) {
  if (made.shape == wanted) return Error::success();
  return make_error(DiagCode::invalid_argument, "{0} {1} is {2} behind iteration {3}, expected {4}",
                    what, i, to_string(Shape(made.shape.begin(), made.shape.end())), iteration,
                    to_string(Shape(wanted.begin(), wanted.end())));
}

bool is_true(const Tensor& t) { return t.size() > 0 && t.int_at(0) != 0; }

Tensor row_of(const Tensor& t, int64_t at) {
  Tensor row{t.dtype, {t.shape.begin() + 1, t.shape.end()}, {}};
  const auto bytes = static_cast<std::ptrdiff_t>(element_count(row.shape) * dtype_bytes(t.dtype));
  row.bytes.assign(t.bytes.begin() + at * bytes, t.bytes.begin() + (at + 1) * bytes);
  return row;
}

}  // namespace

Expected<std::vector<TensorType>> infer_if(const OpAttrs& attrs, const Types& inputs) {
  const op::If& op = std::get<op::If>(attrs);
  if (!op.then_branch.graph || !op.else_branch.graph)
    return make_error(DiagCode::invalid_model, "a branch is missing");
  const Graph &yes = *op.then_branch.graph, &no = *op.else_branch.graph;
  TW_TRY(check_present(inputs));
  if (inputs.size() != 1 + yes.inputs().size() + no.inputs().size())
    return make_error(DiagCode::invalid_model, "{0} inputs for branches of {1} and {2}",
                      inputs.size(), yes.inputs().size(), no.inputs().size());
  TW_TRY(check_condition(*inputs[0]));
  for (size_t i = 0; i < yes.inputs().size(); ++i)
    TW_TRY(check_input(yes, i, *inputs[1 + i], "then_branch"));
  for (size_t i = 0; i < no.inputs().size(); ++i)
    TW_TRY(check_input(no, i, *inputs[1 + yes.inputs().size() + i], "else_branch"));
  if (yes.outputs().size() != no.outputs().size() || yes.outputs().empty())
    return make_error(DiagCode::invalid_model, "branches of {0} and {1} outputs",
                      yes.outputs().size(), no.outputs().size());
  std::vector<TensorType> types;
  for (size_t i = 0; i < yes.outputs().size(); ++i) {
    types.push_back(output_type(yes, i));
    if (!equal(types[i], output_type(no, i)))
      return make_error(DiagCode::invalid_model,
                        "output {0} is {1} of one branch and {2} of the other", i,
                        to_string(types[i]), to_string(output_type(no, i)));
  }
  return types;
}

Expected<std::vector<Tensor>> evaluate_if(const OpAttrs& attrs, const std::vector<TensorType>&,
                                          const Tensors& inputs) {
  const op::If& op = std::get<op::If>(attrs);
  const bool yes = is_true(*inputs[0]);
  const Graph& branch = yes ? *op.then_branch.graph : *op.else_branch.graph;
  const size_t first = 1 + (yes ? 0 : op.then_branch.graph->inputs().size());
  std::vector<Tensor> given;
  for (size_t i = 0; i < branch.inputs().size(); ++i) given.push_back(*inputs[first + i]);
  return evaluate(branch, given);
}

Expected<std::vector<TensorType>> infer_loop(const OpAttrs& attrs, const Types& inputs) {
  const op::Loop& op = std::get<op::Loop>(attrs);
  if (!op.body.graph) return make_error(DiagCode::invalid_model, "the body is missing");
  const Graph& body = *op.body.graph;
  const size_t lead = op.conditional ? 1 : 0;
  TW_TRY(check_present(inputs));
  if (op.carried < 0 || op.sliced < 0 || op.trip.size() > 1)
    return make_error(DiagCode::invalid_model, "a negative count, or two trip counts");
  const auto carried = static_cast<size_t>(op.carried), sliced = static_cast<size_t>(op.sliced);
  if (inputs.size() != lead + body.inputs().size() || body.inputs().size() < carried + sliced)
    return make_error(DiagCode::invalid_model, "{0} inputs for a body of {1}", inputs.size(),
                      body.inputs().size());
  if (body.outputs().size() < lead + carried)
    return make_error(DiagCode::invalid_model, "a body of {0} outputs", body.outputs().size());
  TW_TRY(check_trip(op, body.outputs().size() > lead + carried));
  if (op.conditional) {
    TW_TRY(check_condition(*inputs[0]));
    TW_TRY(check_condition(output_type(body, 0)));
  }
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    TensorType given = *inputs[lead + i];
    if (i >= carried && i < carried + sliced) {
      if (given.shape.empty() || !equal(Shape{given.shape[0]}, op.trip))
        return make_error(DiagCode::invalid_model, "slices of {0} in {1} iterations",
                          to_string(given), to_string(op.trip));
      given.shape.erase(given.shape.begin());
    }
    const TensorType& own = body.value(body.inputs()[i]).type;
    const bool grows = i < carried && changes(own, op.iteration);
    if (grows && op.trip.empty())
      return make_error(DiagCode::invalid_model,
                        "carried value {0} grows in a loop without a trip count", i);
    if (grows) TW_TRY(check_growth(own, op, i));
    if (!grows) TW_TRY(check_input(body, i, given, "the body"));
    else if (!equal(at_iteration(own, op.iteration, Expr(1)), given))
      return make_error(DiagCode::invalid_model,
                        "carried value {0} is {1} at iteration 1 and given {2}", i, to_string(own),
                        to_string(given));
    const TensorType next = grows ? at_iteration(own, op.iteration, var(op.iteration) + Expr(1))
                                  : given;
    if (i < carried && !equal(output_type(body, lead + i), next))
      return make_error(DiagCode::invalid_model,
                        "carried value {0} is {1} before an iteration and {2} behind it", i,
                        to_string(own), to_string(output_type(body, lead + i)));
  }
  std::vector<TensorType> types;
  for (size_t i = 0; i < carried; ++i) {
    const TensorType& own = body.value(body.inputs()[i]).type;
    types.push_back(
        changes(own, op.iteration) ? at_iteration(own, op.iteration, op.trip[0] + Expr(1)) : own);
  }
  for (size_t i = lead + carried; i < body.outputs().size(); ++i) {
    types.push_back(output_type(body, i));
    types.back().shape.insert(types.back().shape.begin(), op.trip[0]);
  }
  if (op.conditional) types.push_back({DType::i64, {}, {}});
  if (types.empty()) return make_error(DiagCode::invalid_model, "a loop without outputs");
  return types;
}

Expected<std::vector<Tensor>> evaluate_loop(const OpAttrs& attrs,
                                            const std::vector<TensorType>& outs,
                                            const Tensors& inputs) {
  const op::Loop& op = std::get<op::Loop>(attrs);
  const size_t lead = op.conditional ? 1 : 0;
  const auto carried = static_cast<size_t>(op.carried), sliced = static_cast<size_t>(op.sliced);
  const int64_t trip = op.trip.empty() ? INT64_MAX : as_const(op.trip[0]).value_or(0);
  std::vector<Tensor> given;
  for (size_t i = lead; i < inputs.size(); ++i) given.push_back(*inputs[i]);
  std::vector<Tensor> results;
  for (const TensorType& out : outs)
    results.push_back(Tensor::zeros(out.dtype, *static_shape(out.shape)));
  bool going = !op.conditional || is_true(*inputs[0]);
  int64_t iteration = 0;
  for (; going && iteration < trip; ++iteration) {
    for (size_t i = 0; i < sliced; ++i)
      given[carried + i] = row_of(*inputs[lead + carried + i], iteration);
    TW_ASSIGN(std::vector<Tensor> made,
              evaluate(bind_symbols(*op.body.graph, {{op.iteration, iteration + 1}}), given));
    if (op.conditional) going = is_true(made[0]);
    for (size_t i = 0; i < carried; ++i) {
      const TensorType& type = op.body.graph->value(op.body.graph->inputs()[i]).type;
      if (const auto shape = static_shape(type.shape))
        TW_TRY(check_made(made[lead + i], *shape, "carried value", i, iteration));
      given[i] = std::move(made[lead + i]);
    }
    for (size_t i = carried; lead + i < made.size(); ++i) {
      const std::vector<int64_t>& all = results[i].shape;
      TW_TRY(check_made(made[lead + i], {all.begin() + 1, all.end()}, "stacked result", i - carried,
                        iteration));
      const std::vector<std::byte>& row = made[lead + i].bytes;
      std::copy(row.begin(), row.end(),
                results[i].bytes.begin() + iteration * static_cast<std::ptrdiff_t>(row.size()));
    }
  }
  for (size_t i = 0; i < carried; ++i) {
    if (given[i].bytes.size() > results[i].bytes.size())
      TW_TRY(check_made(given[i], results[i].shape, "carried value", i, iteration));
    std::copy(given[i].bytes.begin(), given[i].bytes.end(), results[i].bytes.begin());
  }
  if (op.conditional) results.back().set_int(0, iteration);
  return results;
}

}  // namespace tw
