// The default pipeline: the order of the passes, with the reason for each place.
#include "passes/pass.h"

namespace tw {

std::vector<std::string> default_pipeline() {
  return {
      // First: leftovers of the import must neither be folded nor count as users.
      "eliminate-dead-code",
      // Before constants are folded: a value that depends only on a static shape then becomes a
      // constant.
      "fold-shapes",
      // Once shapes are known, and before the choice of patterns and kernels, which rely on
      // elements.
      "fold-empty",
      // Before constants are folded, which would turn dequantized weights into floats. First, all
      // 8-bit values get one type.
      "sign-quantization",
      "fuse-quantization",
      // Before canonicalize rewrites computations on bytes.
      "tabulate-bytes",
      // Before constants are folded: a transposed or expanded weight becomes a flag or a broadcast,
      // not a copy.
      "canonicalize",
      "fold-constants",
      // Once k is a constant; the nodes that it makes have movement to merge.
      "rank-topk",
      // Again: folding has made new neutral elements, constant conditions and pads.
      "canonicalize",
      // Before batch norms are folded, which needs producers with one user: duplicates would be two
      // users.
      "eliminate-common-subexpressions",
      // After pads are in the convolutions: a shift in front folds only without padding.
      "fold-batch-norm",
      // The last tidying before fusion: nodes without users and movement without effect must go.
      "canonicalize",
      "eliminate-dead-code",
      // After duplicates are merged, which would be casts of the same bytes; before products are
      // joined, which takes constants.
      "keep-bytes",
      // After duplicates are merged and biases folded; before layouts, which see one product, not
      // several.
      "join-products",
      // After constants are folded, which would widen the weights again; before layouts, which see
      // the casts. Does nothing in f32.
      "narrow-products",
      // Here for the same reasons; for tf32.
      "round-products",
      // Last: casts between layouts would hide the patterns of the other passes.
      "assign-layouts",
  };
}

}  // namespace tw
