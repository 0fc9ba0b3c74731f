/* Compares two tensors, with the same numbers as `tilewright verify`. */
#ifndef TW_RUNNER_COMPARE_H
#define TW_RUNNER_COMPARE_H
#include "files.h"

/* Prints a line like "ok   NAME: max abs 1e-7, max rel 2e-8". The result is 1 where the tensors are
 * equal; floats may differ by the tolerance times the range of `want`. */
int32_t compare_arrays(const char* name, const tw_array* got, const tw_array* want,
                       double tolerance);
/* Prints a line like "min -1  max 2  mean 0.5  argmax 3". */
void print_summary(const tw_array* array);
#endif
