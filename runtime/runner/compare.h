/* How far two tensors are apart; the same numbers as `tilewright verify` has. */
#ifndef TW_RUNNER_COMPARE_H
#define TW_RUNNER_COMPARE_H
#include "files.h"

/* Prints a line, "ok   NAME: max abs 1e-7, max rel 2e-8"; the result: whether they are the same,
 * floats within the tolerance of the range of `want`. */
int32_t compare_arrays(const char* name, const tw_array* got, const tw_array* want,
                       double tolerance);
/* "min -1  max 2  mean 0.5  argmax 3" */
void print_summary(const tw_array* array);
#endif
