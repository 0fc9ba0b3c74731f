// Chooses the family of a group by its anchor and lowers the group.
#include "kernels/lower.h"

#include <algorithm>

#include "ir/graph/externs.h"
#include "kernels/arranged.h"
#include "kernels/common/group_builder.h"
#include "kernels/common/short_operands.h"
#include "kernels/device/attention.h"
#include "kernels/device/tensor_form.h"
#include "kernels/device/tiles.h"
#include "support/hash.h"
#include "support/repro.h"

namespace tw {

std::string definition_hash(const Kernel& kernel, const std::vector<Layout>& layouts) {
  if (std::ranges::all_of(layouts, &Layout::plain)) return kernel_hash(kernel);
  std::string text = kernel_hash(kernel);
  for (const Layout& layout : layouts)
    text += llvm::formatv(" {0}:{1}", layout.axis, layout.block).str();
  return short_hash(text);
}

std::string definition_hash(const GroupKernel& lowered) {
  std::vector<Layout> layouts;
  for (const LoweredArgument& argument : lowered.arguments) layouts.push_back(argument.layout);
  return definition_hash(lowered.kernel, layouts);
}

const char* family_name(const KernelStages& stages) {
  return std::visit([](const auto& m) { return m.family(); }, stages);
}

// Resizing needs tables of source positions, which are made at compile time.
static Error check_resizes(const Graph& graph, const Group& group) {
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    auto* resize = std::get_if<op::Resize>(&node.attrs);
    if (!resize) continue;
    const Shape& in = graph.value(node.inputs[0]).type.shape;
    for (size_t i = 0; i < in.size(); ++i)
      if (!is_const(simplify(in[i] - resize->shape[i]), 0) &&
          (!as_const(in[i]) || !as_const(resize->shape[i])))
        return make_error(
            DiagCode::unsupported,
            "resize (node {0}): axis {1} is resized from {2} to {3}; bind the symbols with --dim",
            node.name, i, to_string(in[i]), to_string(resize->shape[i]));
  }
  return Error::success();
}

// A softmax is fused behind a matrix product only in attention.
static bool holds_softmax(const Graph& graph, const Group& group) {
  for (NodeId id : group.nodes)
    if (std::holds_alternative<op::Softmax>(graph.node(id).attrs)) return true;
  return false;
}

namespace {

// Lowers a group by its anchor. A new operator needs an overload here, otherwise this does not
// compile.
struct AnchorLowering {
  GroupBuilder& b;
  const Node& anchor;
  const Target& target;  // for the choice of attention's algorithm

  using Result = Expected<LoweredGroup>;
  Result operator()(const op::Conv&) { return define_conv(b, with_short_operands(b, anchor)); }
  Result operator()(const op::ConvTranspose&) { return define_conv_transpose(b, anchor); }
  Result operator()(const op::MatMul&) {
    if (holds_softmax(b.graph, b.group)) {
      if (auto blocks = attention_in_blocks(b, anchor, target)) return std::move(*blocks);
      return define_attention(b, anchor);
    }
    return define_matmul(b, with_short_operands(b, anchor));
  }
  Result operator()(const op::MatMulNBits&) { return define_matmul_nbits(b, anchor); }
  Result operator()(const op::Pool&) { return define_pool(b, anchor); }
  Result operator()(const op::Reduce&) { return define_reduce(b, anchor); }
  Result operator()(const op::ArgReduce&) { return define_arg_reduce(b, anchor); }
  Result operator()(const op::Softmax&) { return define_softmax(b, anchor); }
  Result operator()(const op::LayerNorm&) { return define_layer_norm(b, anchor); }
  Result operator()(const op::Cumulate&) { return define_cumulate(b, anchor); }
  Result operator()(const op::Recurrent&) { return define_recurrent(b, anchor); }
  template <InjectiveOp Op>
  Result operator()(const Op&) {
    const Node& last = b.graph.node(b.group.nodes.back());
    if (std::holds_alternative<op::Concat>(last.attrs)) return define_concat(b, last);
    return define_elementwise(b);
  }
  Result operator()(const op::Extern& call) {
    return make_error(DiagCode::unsupported, "{0} is a function of the processor's runtime library",
                      extern_info(call.function).name);
  }
  Result operator()(const op::If&) { return runs_graphs(); }
  Result operator()(const op::Loop&) { return runs_graphs(); }

 private:
  Result runs_graphs() const {
    return make_error(DiagCode::unsupported, "{0} runs graphs of its own, on the processor",
                      op_info(anchor.attrs).name);
  }
};

}  // namespace

static Error check_winograd_tiles(const Graph& graph, const Node& node, const Target& device,
                                  int tile) {
  const std::optional<TileProblem> problem = winograd_tile_problem(graph, node, tile);
  if (problem && block_tile(device, *problem)) return Error::success();
  return make_error(DiagCode::unsupported,
                    "conv (node {0}): device '{1}' has no tiles for winograd_f{2}", node.name,
                    device.name, tile);
}

static Expected<LoweredGroup> lower_anchor(GroupBuilder& b, const Target& target) {
  const Algorithm algorithm = b.group.algorithm;
  const Node& anchor = b.graph.node(b.group.anchor);
  if (const int tile = winograd_tile(algorithm)) {
    if (!target.axes.empty()) TW_TRY(check_winograd_tiles(b.graph, anchor, target, tile));
    return define_winograd(b, with_short_operands(b, anchor), tile);
  }
  if (algorithm == Algorithm::strassen) return define_strassen(b, anchor);
  return std::visit(AnchorLowering{b, anchor, target}, anchor.attrs);
}

// Illegal kernels must not reach code generation: their code would silently compute something else.
static void check_legal(const Kernel& kernel, const Graph& graph, const Group& group) {
  CheckContext context("lower " + kernel.name, [&] { return print(kernel); });
  if (Error error = verify(kernel))
    TW_UNREACHABLE("the kernel of {0} is not legal: {1}", group_name(graph, group),
                   error_text(std::move(error)));
}

Expected<LoweredGroup> lower_group(const Graph& graph, const Group& group, const Target& target) {
  if (Error error = check_resizes(graph, group)) return error;
  GroupBuilder builder(graph, group);
  TW_ASSIGN(LoweredGroup lowered, lower_anchor(builder, target));
  if (!builder.problem.empty())
    return make_error(DiagCode::unsupported, "{0}: {1}", group_name(graph, group), builder.problem);
  if (tensor_instruction(target, true) || tensor_instruction(target, false)) {
    TW_ASSIGN(lowered, arranged_group(lowered, target));
    to_tensor_form(lowered, target);
  }
  check_legal(lowered.kernel, graph, group);
  return lowered;
}

}  // namespace tw
