// before: %s = add(dequantize(%a, %as, %az), dequantize(%b, %bs, %bz))  %y = quantize(%s, %ys, %yz)
// after:  %t = cast(%b) * const [bs / ys] + const [yz - (as * az + bs * bz) / ys]
//         %y = quantize(cast(%a) * const [as / ys] + %t, const [1])
// Sums and products get an odd zero point before they are rounded; with an even one the order makes
// no difference. No default pipeline has this pass; `--quantized-rounding onnxruntime` asks for it.
#include "ir/storage_types.h"
#include "passes/passes.h"
#include "passes/quantization/integer_form.h"
#include "passes/quantized_rounding.h"
#include "support/names_text.h"

namespace tw {
namespace {

constexpr QuantizedRounding kRoundings[] = {QuantizedRounding::standard,
                                            QuantizedRounding::onnxruntime};

bool has_odd_zero(const Quantization& to) {
  return to.axis < 0 && is_byte(to.type) && to.zero[0] % 2 != 0;
}

}  // namespace

Expected<bool> zero_points_first(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  int results = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.erased || !get_if<op::Quantize>(&node) || !all_plain(graph, node)) continue;
    const std::optional<Quantization> to = quantization(graph, node);
    if (!to || !has_odd_zero(*to)) continue;
    drop_clamps(rewriter, id, *to);
    results += fuse_arithmetic(rewriter, id, *to, ZeroPoint::before_rounding) ? 1 : 0;
  }
  context.report = llvm::formatv("{0} results rounded with their zero points", results).str();
  return rewriter.changed();
}

const char* quantized_rounding_name(QuantizedRounding rounding) {
  switch (rounding) {
    case QuantizedRounding::standard: return "standard";
    case QuantizedRounding::onnxruntime: return "onnxruntime";
  }
  TW_UNREACHABLE("bad rounding");
}

std::optional<QuantizedRounding> quantized_rounding_from_name(std::string_view name) {
  for (const QuantizedRounding rounding : kRoundings)
    if (name == quantized_rounding_name(rounding)) return rounding;
  return std::nullopt;
}

std::string quantized_rounding_names() { return names_text(kRoundings, quantized_rounding_name); }

Error round_by(QuantizedRounding rounding, Graph& graph) {
  switch (rounding) {
    case QuantizedRounding::standard: return Error::success();
    case QuantizedRounding::onnxruntime: {
      const Target any;
      PassContext context{any};
      return run_passes(graph, context, {"zero-points-first"});
    }
  }
  TW_UNREACHABLE("bad rounding");
}

}  // namespace tw
