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

// Errors if `bytes` uses symbols other than those of the graph around the region.
Error check_outside(const Expr& bytes, const Graph& graph, const Node& node,
                    const std::string& what) {
  std::string inner;
  const std::vector<std::string> known = graph.all_symbols();
  visit(bytes, [&](const Expr& e) {
    const std::string* name = var_name(e);
    if (name && !std::ranges::count(known, *name)) inner = *name;
  });
  if (inner.empty()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "{0} '{1}': {2} has a size that changes from iteration to iteration ({3})",
                    op_info(node.attrs).name, node.name, what, to_string(bytes));
}

// The most bytes in any iteration of the loop; `bytes` itself if the most is unknown.
Expr in_all_iterations(const Expr& bytes, const op::Loop* loop) {
  if (!loop || loop->trip.empty() || !uses_var(bytes, loop->iteration)) return bytes;
  Ranges ranges = symbol_ranges(bytes);
  for (const auto& [symbol, range] : symbol_ranges(loop->trip[0])) ranges.emplace(symbol, range);
  ranges[loop->iteration] = {Expr(1), loop->trip[0]};
  const Expr most = largest(bytes, {loop->iteration}, ranges);
  return most.defined() ? most : bytes;
}

// The memory of values that pass from iteration to iteration.
class LoopLayout {
 public:
  LoopLayout(const op::Loop& loop, const std::vector<RegionInput>& inputs, RegionCall& call)
      : loop_(loop), inputs_(inputs), call_(call) {}

  Error describe(const Node& node) {
    call_.loop = true;
    call_.conditional = loop_.conditional;
    if (!loop_.trip.empty()) call_.trip = loop_.trip[0];
    call_.iteration = loop_.iteration;
    call_.carried = static_cast<int>(loop_.carried);
    for (size_t i = 0; i < carried(); ++i) {
      call_.bytes.push_back(before(i, 1));
      call_.growth.push_back(simplify_dim(before(i, 2) - before(i, 1)));
      if (!is_const(simplify_dim(before(i, 3) - before(i, 2) - call_.growth[i]), 0))
        return make_error(DiagCode::unsupported,
                          "loop '{0}': carried value {1} grows along more than one axis", node.name,
                          i);
    }
    const size_t rest = carried() + static_cast<size_t>(loop_.sliced);
    for (const RegionInput& input : inputs_)
      if (input.input >= carried() && input.input < rest) {
        call_.bytes.push_back(before(input.input, 1));
        ++call_.sliced;
      }
    const Graph& body = *loop_.body.graph;
    for (size_t i = carried() + (loop_.conditional ? 1 : 0); i < body.outputs().size(); ++i)
      call_.bytes.push_back(byte_count(body.value(body.outputs()[i].value).type));
    return Error::success();
  }

  // `ends` has the bytes of the workspaces so far, by place; it grows.
  void place(const ExternCall& function, std::vector<Expr>& ends) {
    for (size_t i = 0; i < carried(); ++i) {
      Expr& end = ends[static_cast<size_t>(function.outputs[i].device)];
      call_.spare.push_back(end);
      const Expr grown = is_const(call_.growth[i], 0) ? Expr(0) : call_.growth[i] * call_.trip;
      end = simplify_dim(end + aligned(call_.bytes[i] + grown));
    }
    call_.condition = ends[0];
    if (call_.conditional) ends[0] = simplify_dim(ends[0] + Expr(64));
  }

 private:
  size_t carried() const { return static_cast<size_t>(loop_.carried); }
  // The bytes of an input of the body before an iteration.
  Expr before(size_t input, const Expr& iteration) const {
    const Graph& body = *loop_.body.graph;
    return simplify_dim(
        substitute(byte_count(body.value(body.inputs()[input]).type), loop_.iteration, iteration));
  }

  const op::Loop& loop_;
  const std::vector<RegionInput>& inputs_;
  RegionCall& call_;
};

}  // namespace

Expected<RegionLayout> lay_out_regions(const Graph& graph, const LoweredRegions& lowered,
                                       const ExternCall& function,
                                       const std::vector<Program>& regions, size_t devices) {
  const Node& node = *lowered.node;
  const auto* loop = std::get_if<op::Loop>(&node.attrs);
  RegionLayout out;
  out.call.regions = lowered.regions;
  out.workspaces.assign(1 + devices, 0);
  for (int number : lowered.regions) {
    const Program& region = regions[static_cast<size_t>(number)];
    for (size_t place = 0; place <= devices; ++place) {
      const Expr bytes = in_all_iterations(
          place == 0 ? region.arena_bytes : region.devices[place - 1].arena_bytes, loop);
      TW_TRY(check_outside(bytes, graph, node, "a value inside of it"));
      out.workspaces[place] = simplify_dim(max(out.workspaces[place], aligned(bytes)));
    }
  }
  if (!loop) return out;
  LoopLayout layout(*loop, lowered.inputs.front(), out.call);
  TW_TRY(layout.describe(node));
  for (const Expr& bytes : out.call.bytes)
    TW_TRY(check_outside(bytes, graph, node, "what goes from iteration to iteration"));
  layout.place(function, out.workspaces);
  return out;
}

}  // namespace tw
