#include "program/region_calls.h"

#include <algorithm>
#include <set>

#include "passes/storage.h"
#include "program/sizes.h"

namespace tw {
namespace {

Expr aligned(const Expr& bytes) {
  return simplify_dim(floor_div(bytes + Expr(63), Expr(64)) * Expr(64));
}

// Only symbols of the graph around the region.
Error check_outside(const Expr& bytes, const Graph& graph, const Node& node,
                    const std::string& what) {
  std::string inner;
  const std::vector<std::string> known = graph.all_symbols();
  visit(bytes, [&](const Expr& e) {
    if (e->kind == ExprKind::var && !std::ranges::count(known, e->name)) inner = e->name;
  });
  if (inner.empty()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "{0} '{1}': {2} has a size that changes from iteration to iteration ({3})",
                    op_info(node.attrs).name, node.name, what, to_string(bytes));
}

// What it is at most in any iteration of the loop; as it is, where that cannot be said.
Expr in_all_iterations(const Expr& bytes, const op::Loop* loop) {
  if (!loop || loop->trip.empty() || !uses_var(bytes, loop->iteration)) return bytes;
  Ranges ranges = symbol_ranges(bytes);
  for (const auto& [symbol, range] : symbol_ranges(loop->trip[0])) ranges.emplace(symbol, range);
  ranges[loop->iteration] = {Expr(1), loop->trip[0]};
  const Expr most = largest(bytes, {loop->iteration}, ranges);
  return most.defined() ? most : bytes;
}

}  // namespace

Expected<RegionLayout> lay_out_regions(const Graph& graph, const Node& node,
                                       const std::vector<int>& numbers,
                                       const std::vector<Program>& regions) {
  RegionLayout out;
  out.call.regions = numbers;
  Expr end = 0;
  for (int number : numbers) {
    const Expr bytes = in_all_iterations(regions[static_cast<size_t>(number)].arena_bytes,
                                         std::get_if<op::Loop>(&node.attrs));
    TW_TRY(check_outside(bytes, graph, node, "a value inside of it"));
    end = simplify_dim(max(end, aligned(bytes)));
  }
  if (const auto* loop = std::get_if<op::Loop>(&node.attrs)) {
    RegionCall& call = out.call;
    const Graph& body = *loop->body.graph;
    call.loop = true;
    call.conditional = loop->conditional;
    if (!loop->trip.empty()) call.trip = loop->trip[0];
    call.iteration = loop->iteration;
    call.carried = static_cast<int>(loop->carried);
    call.sliced = static_cast<int>(loop->sliced);
    const auto before = [&](size_t i, const Expr& iteration) {
      return simplify_dim(
          substitute(byte_count(body.value(body.inputs()[i]).type), loop->iteration, iteration));
    };
    for (size_t i = 0; i < static_cast<size_t>(loop->carried); ++i) {
      call.bytes.push_back(before(i, 1));
      call.growth.push_back(simplify_dim(before(i, 2) - before(i, 1)));
      if (!is_const(simplify_dim(before(i, 3) - before(i, 2) - call.growth[i]), 0))
        return make_error(DiagCode::unsupported,
                          "loop '{0}': carried value {1} grows along more than one axis", node.name,
                          i);
    }
    for (size_t i = static_cast<size_t>(loop->carried);
         i < static_cast<size_t>(loop->carried + loop->sliced); ++i)
      call.bytes.push_back(before(i, 1));
    for (size_t i = static_cast<size_t>(loop->carried) + (loop->conditional ? 1 : 0);
         i < body.outputs().size(); ++i)
      call.bytes.push_back(byte_count(body.value(body.outputs()[i].value).type));
    for (const Expr& bytes : call.bytes)
      TW_TRY(check_outside(bytes, graph, node, "what goes from iteration to iteration"));
    for (int i = 0; i < call.carried; ++i) {
      call.spare.push_back(end);
      const Expr grown = is_const(call.growth[static_cast<size_t>(i)], 0)
                             ? Expr(0)
                             : call.growth[static_cast<size_t>(i)] * call.trip;
      end = simplify_dim(end + aligned(call.bytes[static_cast<size_t>(i)] + grown));
    }
    call.condition = end;
    if (call.conditional) end = simplify_dim(end + Expr(64));
  }
  out.workspace = end;
  return out;
}

}  // namespace tw
