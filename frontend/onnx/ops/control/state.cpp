// Importers of operators that carry a state from one run to the next.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {

// Inputs: x [B, C, L], weights [C, 1, k], optional bias, optional past [B, C, k - 1] (default:
// zeros). Outputs: a depthwise convolution of the past and x, and the last k - 1 columns of both.
void import_causal_conv(NodeImport& n) {
  const Val x = n.in(0), w = n.in(1);
  const std::string activation = n.text("activation", "none");
  if (n.failed()) return;
  if (n.rank(x) != 3 || n.rank(w) != 3) return n.invalid("inputs and weights must have three axes");
  const int64_t channels = n.need_static_dim(w, 0, "CausalConvWithState"),
                kernel = n.need_static_dim(w, 2, "CausalConvWithState");
  if (n.failed()) return;
  n.check_number("the kernel's extent", kernel, 1, kMaxWindow);
  if (n.failed()) return;
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.invalid("attribute activation is '" + activation + "'");
  Val all = x;
  if (kernel > 1) {
    const Val past = n.has(3) ? n.in(3)
                              : n.expand(n.scalar(0, x), {n.dim(x, 0), n.dim(x, 1), kernel - 1});
    all = n.emit(op::Concat{2}, {past, x});
  }
  std::vector<Val> inputs = {all, w};
  if (n.has(2)) inputs.push_back(n.in(2));
  const Val y = n.emit(op::Conv{{1}, {1}, {0, 0}, channels}, inputs);
  n.set(activation == "none" ? y : n.mul(y, n.unary(UnaryOp::sigmoid, y)));
  if (n.wanted(1)) n.set(1, n.slice(all, 2, n.dim(x, 2), kernel - 1));
}

}  // namespace tw::onnx_import
