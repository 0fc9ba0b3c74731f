/* Sums over decision trees. A node is six numbers of a table: feature; mode; the next node where
 * the test is true, and where it is false; then a range: a leaf's weights, or a set test's members.
 * The import checks the table. Here it is checked only as far as needed so that no table reads
 * elsewhere or runs for ever. */
#include "elements.h"

enum {
  kLessEqual,
  kLess,
  kGreaterEqual,
  kGreater,
  kEqual,
  kNotEqual,
  kMember,
  kLeaf,
  kMissingIsTrue = 8
}; /* modes; + 8: NaN tests true, as it always does for "not equal" */
enum { kAverage, kSum, kLeast, kMost }; /* ints[0] */

static inline double tree_number(const tw_view* v, int64_t i) {
  return v->dtype == TW_F64 ? ((const double*)v->data)[i] : (double)((const float*)v->data)[i];
}

static int tree_test(const tw_op_args* a, const int32_t* node, double x, double split) {
  const tw_view* members = &a->in[6];
  if (x != x) return (node[1] & kMissingIsTrue) || (node[1] & 7) == kNotEqual;
  switch (node[1] & 7) {
    case kLessEqual: return x <= split;
    case kLess: return x < split;
    case kGreaterEqual: return x >= split;
    case kGreater: return x > split;
    case kEqual: return x == split;
    case kNotEqual: return x != split;
    default: break;
  }
  for (int32_t m = node[4]; m < node[5] && m < members->dims[0]; ++m)
    if (tree_number(members, m) == x) return 1;
  return 0;
}

/* Adds a leaf's weights to the sums of one row. */
static int tree_leaf(const tw_op_args* a, const int32_t* node, double* sums, int64_t targets) {
  const tw_view* weights = &a->in[5];
  const int32_t* ids = a->in[4].data;
  for (int32_t w = node[4]; w < node[5]; ++w) {
    if (w < 0 || w >= weights->dims[0] || ids[w] < 0 || ids[w] >= targets) return 0;
    const double weight = tree_number(weights, w);
    double* sum = &sums[ids[w]];
    if (a->ints[0] == kLeast) *sum = weight >= *sum ? *sum : weight;
    else if (a->ints[0] == kMost) *sum = weight <= *sum ? *sum : weight;
    else *sum += weight;
  }
  return 1;
}

/* The leaf that a row reaches; NULL: the table is broken. */
static const int32_t* tree_walk(const tw_op_args* a, int64_t row, int32_t root) {
  const tw_view *x = &a->in[0], *nodes = &a->in[1];
  const int64_t count = nodes->dims[0], features = x->dims[1];
  int64_t at = root;
  for (int64_t steps = 0; steps <= count; ++steps) {
    if (at < 0 || at >= count) return 0;
    const int32_t* node = (const int32_t*)nodes->data + 6 * at;
    if ((node[1] & 7) == kLeaf) return node;
    if (node[0] < 0 || node[0] >= features || node[4] < 0) return 0;
    at = tree_test(a, node, tree_number(x, row * features + node[0]), tree_number(&a->in[2], at))
             ? node[2]
             : node[3];
  }
  return 0;
}

int32_t tw_op_tree_ensemble(const tw_op_args* a) {
  const tw_view *roots = &a->in[3], *y = &a->out[0];
  const int64_t rows = y->dims[0], targets = y->dims[1], trees = roots->dims[0];
  double* sums = a->out[1].data;
  /* The first weight replaces NaN; a target that no leaf names gets 0. */
  const int extreme = a->ints[0] == kLeast || a->ints[0] == kMost;
  const double start = extreme ? __builtin_nan("") : 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t t = 0; t < targets; ++t) sums[t] = start;
    for (int64_t t = 0; t < trees; ++t) {
      const int32_t* leaf = tree_walk(a, row, ((const int32_t*)roots->data)[t]);
      if (!leaf || !tree_leaf(a, leaf, sums, targets))
        return tw_op_fail(a, TW_E_ARGUMENT, "tree % is broken", t, 0);
    }
    for (int64_t t = 0; t < targets; ++t) {
      const double sum = a->ints[0] == kAverage          ? sums[t] / (double)(int32_t)trees
                         : extreme && sums[t] != sums[t] ? 0
                                                         : sums[t];
      if (y->dtype == TW_F64) ((double*)y->data)[row * targets + t] = sum;
      else ((float*)y->data)[row * targets + t] = (float)sum;
    }
  }
  return TW_OK;
}
