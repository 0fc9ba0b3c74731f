// The table of all graph passes, by name.
#include "passes/choose/assign_layouts.h"
#include "passes/passes.h"

namespace tw {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> table = {
      {"assign-layouts",
       "run convolutions in channel blocks, with casts where plain tensors are wanted",
       assign_layouts},
      {"canonicalize",
       "drop identities, merge data movement, fold pads and transposes into their users",
       canonicalize},
      {"eliminate-common-subexpressions", "compute equal nodes and store equal constants once",
       eliminate_common_subexpressions},
      {"eliminate-dead-code", "erase nodes that no output needs", eliminate_dead_code},
      {"fold-batch-norm", "fold batch norms, scales and shifts into weights and biases",
       fold_batch_norm},
      {"fold-constants", "compute nodes whose inputs are constants", fold_constants},
      {"fold-empty", "make constants of what has no elements, and of sums of nothing", fold_empty},
      {"fold-shapes", "turn arithmetic on shapes into dimension expressions", fold_shapes},
      {"fuse-quantization",
       "compute products of dequantized values in integers, with one rounding to the quantized "
       "result",
       fuse_quantization},
      {"join-products",
       "compute products of one operand with several weights, for attention, as one",
       join_products},
      {"keep-bytes", "let products read constant bytes, and scale what they make", keep_bytes},
      {"narrow-products",
       "give layers with constant weights bf16 or f16, where the target's precision says so",
       narrow_products},
      {"rank-topk", "find the largest elements by ranks, where a device has threads for that",
       rank_topk},
      {"round-products",
       "let products multiply tf32, where the target's precision and its device say so",
       round_products},
      {"sign-quantization",
       "store bytes between quantized operators as i8, or as u8 where the target multiplies those",
       sign_quantization},
      {"tabulate-bytes", "look up bytes that are computed from one byte", tabulate_bytes},
      {"widen-floats", "make every float tensor f64, the model's inputs and outputs too",
       widen_floats},
      {"zero-points-first",
       "round sums and products of dequantized values with their zero point, as onnxruntime's "
       "optimized kernels do",
       zero_points_first},
  };
  return table;
}

}  // namespace tw
