// Pipelines are data: the order of passes, and why each stands where it does.
#include "passes/pass.h"

namespace tw {

std::vector<std::string> default_pipeline() {
  return {
      // First, so that leftovers of the import are neither folded nor counted as users.
      "eliminate-dead-code",
      // Before constants are folded: what depends on a static shape only is a constant afterwards.
      "fold-shapes",
      // Once shapes are known, and before a pattern or a kernel is chosen, which count on elements.
      "fold-empty",
      // Before constants are folded: dequantized weights would become floats. First all 8-bit
      // values of one type.
      "sign-quantization",
      "fuse-quantization",
      // Before canonicalize rewrites what is computed of a byte.
      "tabulate-bytes",
      // Before constants are folded: a transposed or expanded weight becomes a flag or a broadcast,
      // not a copy.
      "canonicalize",
      "fold-constants",
      // Once k is a constant; what it makes has movement to merge.
      "rank-topk",
      // Again: folding has shown new neutral elements, constant conditions and pads.
      "canonicalize",
      // Before batch norms are folded, which needs producers with one user: duplicates would be
      // two.
      "eliminate-common-subexpressions",
      // After pads are in the convolutions (a shift in front may be folded only without padding).
      "fold-batch-norm",
      // Last tidying before fusion, which wants no node without users and no movement that does
      // nothing.
      "canonicalize",
      "eliminate-dead-code",
      // After duplicates are merged, which would be casts of the same bytes; before products are
      // joined, which takes constants.
      "keep-bytes",
      // After duplicates and biases are folded; before layouts, which see one product for several.
      "join-products",
      // After constants are folded, which would widen the weights again; before layouts, which see
      // the casts. Nothing in f32.
      "narrow-products",
      // The same of roundings to tf32.
      "round-products",
      // Last: casts between layouts would hide the patterns that the others look for.
      "assign-layouts",
  };
}

}  // namespace tw
