// The entry points of the passes in the table of all_passes.cpp. The file of each pass describes
// it.
#pragma once
#include "passes/pass.h"

namespace tw {
Expected<bool> canonicalize(Graph& graph, PassContext& context);
Expected<bool> eliminate_common_subexpressions(Graph& graph, PassContext& context);
Expected<bool> eliminate_dead_code(Graph& graph, PassContext& context);
Expected<bool> fold_batch_norm(Graph& graph, PassContext& context);
Expected<bool> fold_constants(Graph& graph, PassContext& context);
Expected<bool> fold_empty(Graph& graph, PassContext& context);
Expected<bool> fold_shapes(Graph& graph, PassContext& context);
Expected<bool> fuse_quantization(Graph& graph, PassContext& context);
Expected<bool> join_products(Graph& graph, PassContext& context);
Expected<bool> keep_bytes(Graph& graph, PassContext& context);
Expected<bool> narrow_products(Graph& graph, PassContext& context);
Expected<bool> rank_topk(Graph& graph, PassContext& context);
Expected<bool> round_products(Graph& graph, PassContext& context);
Expected<bool> sign_quantization(Graph& graph, PassContext& context);
Expected<bool> tabulate_bytes(Graph& graph, PassContext& context);
Expected<bool> widen_floats(Graph& graph, PassContext& context);
Expected<bool> zero_points_first(Graph& graph, PassContext& context);
Tensor widened(const Tensor& tensor);  // floats as f64, other tensors unchanged
}  // namespace tw
