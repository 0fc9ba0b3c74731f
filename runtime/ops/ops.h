/* Functions that the generated program calls as operators (op::Extern of the Graph IR). They are
 * plain C without headers of a C library. They are compiled to bitcode for artifacts, which carry
 * the functions that they call, and for this machine into the compiler, whose evaluator calls them.
 * They allocate nothing: scratch memory is an output. They run on the thread of the run. Shapes and
 * attributes are checked when a model is compiled (ir/graph/externs); conditions on data or symbols
 * are checked here. */
#ifndef TW_OPS_H
#define TW_OPS_H
#include "../text.h"
#include "../tilewright.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A dense row-major tensor, aligned to its elements. */
typedef struct tw_view {
  void* data; /* NULL: an absent optional input, of rank -1 */
  const int64_t* dims;
  int32_t rank;
  int32_t dtype; /* tw_dtype */
} tw_view;

/* Memory for the strings that a run makes */
typedef struct tw_strings {
  int32_t (*more)(struct tw_strings* s, uint64_t bytes); /* makes room at `at`; 0: no memory */
  char* at;
  uint64_t left;
  void* block; /* the owner's */
} tw_strings;

typedef struct tw_op_args {
  const tw_view* in;
  const tw_view* out;
  const int64_t* ints; /* the function's attributes */
  const double* reals;
  tw_text* error;
  tw_strings* strings;
  const char* what; /* name of the node, for messages; NULL: the caller names it */
  uint64_t run;     /* runs of the context before this one */
  int32_t in_count, out_count, int_count, real_count;
} tw_op_args;

/* Each returns TW_OK, or a status that ends the run; its text is the run's last_error. */
int32_t tw_op_bit_cast(const tw_op_args* a);
int32_t tw_op_class_probabilities(const tw_op_args* a);
int32_t tw_op_compress(const tw_op_args* a);
int32_t tw_op_det(const tw_op_args* a);
int32_t tw_op_non_max_suppression(const tw_op_args* a);
int32_t tw_op_nonzero(const tw_op_args* a);
int32_t tw_op_random_bits(const tw_op_args* a);
int32_t tw_op_refuse(const tw_op_args* a);
int32_t tw_op_scatter_elements(const tw_op_args* a);
int32_t tw_op_scatter_nd(const tw_op_args* a);
int32_t tw_op_string_concat(const tw_op_args* a);
int32_t tw_op_string_const(const tw_op_args* a);
int32_t tw_op_string_equal(const tw_op_args* a);
int32_t tw_op_string_find(const tw_op_args* a);
int32_t tw_op_string_match(const tw_op_args* a);
int32_t tw_op_string_normalize(const tw_op_args* a);
int32_t tw_op_string_parts(const tw_op_args* a);
int32_t tw_op_string_split(const tw_op_args* a);
int32_t tw_op_string_token_count(const tw_op_args* a);
int32_t tw_op_string_tokens(const tw_op_args* a);
int32_t tw_op_tensor_scatter(const tw_op_args* a);
int32_t tw_op_topk(const tw_op_args* a);
int32_t tw_op_tree_ensemble(const tw_op_args* a);
int32_t tw_op_unique(const tw_op_args* a);

/* Writes the node's name and a text in which the numbers replace the first two '%'. Returns the
 * status. */
int32_t tw_op_fail(const tw_op_args* a, int32_t status, const char* text, int64_t first,
                   int64_t second);

#ifdef __cplusplus
}
#endif
#endif
