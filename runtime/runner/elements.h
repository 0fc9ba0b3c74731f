/* Reads and writes elements of tensors as numbers. */
#ifndef TW_RUNNER_ELEMENTS_H
#define TW_RUNNER_ELEMENTS_H
#include "../tilewright.h"

typedef struct tw_type {
  const char* name; /* "f32" */
  const char* npy;  /* "<f4"; NULL: NumPy has no such type, and the bytes are written as "|u1" */
  int32_t dtype, bytes;
  int32_t is_float;
} tw_type;
/* Ends the program for strings and unknown types. */
const tw_type* type_of(int32_t dtype);
const tw_type* type_of_npy(const char* descr, uint64_t length); /* NULL: none */

double element_at(const void* data, int32_t dtype, int64_t i);
/* Rounds floats to nearest. */
void set_element(void* data, int32_t dtype, int64_t i, double value);

typedef struct tw_array { /* a tensor with its memory */
  void* data;
  int64_t dims[64];
  int64_t count; /* number of elements */
  int32_t dtype, rank;
} tw_array;
/* The number of elements. Ends the program where their bytes cannot be counted. */
int64_t count_of(const int64_t* dims, int32_t rank, int32_t dtype);
#endif
