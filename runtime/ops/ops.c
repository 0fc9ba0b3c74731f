/* All operators in one unit: one object for each triple, from which an artifact takes the functions
 * that it calls. */
// clang-format off: each file needs those before it.
#include "fail.c"
#include "bit_cast.c"
#include "class_probabilities.c"
#include "compress.c"
#include "det.c"
#include "non_max_suppression.c"
#include "nonzero.c"
#include "random_bits.c"
#include "refuse.c"
#include "scatter_elements.c"
#include "scatter_nd.c"
#include "string_match.c"
#include "string_text.c"
#include "string_tokens.c"
#include "strings.c"
#include "tensor_scatter.c"
#include "topk.c"
#include "tree_ensemble.c"
#include "unique.c"
// clang-format on
