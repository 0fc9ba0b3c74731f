/* Access to elements of any type: size, keys in the order of the numbers, integers. */
#ifndef TW_ELEMENTS_H
#define TW_ELEMENTS_H
#include "ops.h"

static inline int64_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case TW_F64:
    case TW_I64:
    case TW_U64: return 8;
    case TW_F32:
    case TW_I32:
    case TW_U32: return 4;
    case TW_F16:
    case TW_BF16:
    case TW_I16:
    case TW_U16: return 2;
    case TW_STRING: return sizeof(const char*);
    default: return 1;
  }
}

static inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  __builtin_memcpy(to, from, (size_t)bytes);
}

static inline void copy_element(void* to, int64_t at, const void* from, int64_t place,
                                int64_t bytes) {
  switch (bytes) {
    case 8: ((uint64_t*)to)[at] = ((const uint64_t*)from)[place]; break;
    case 4: ((uint32_t*)to)[at] = ((const uint32_t*)from)[place]; break;
    case 2: ((uint16_t*)to)[at] = ((const uint16_t*)from)[place]; break;
    default: ((uint8_t*)to)[at] = ((const uint8_t*)from)[place]; break;
  }
}

/* The product of dims[from .. to - 1] */
static inline int64_t extent_of(const tw_view* v, int32_t from, int32_t to) {
  int64_t count = 1;
  for (int32_t i = from; i < to; ++i) count *= v->dims[i];
  return count;
}
static inline int64_t elements_of(const tw_view* v) { return extent_of(v, 0, v->rank); }

/* A key that grows with the float. `bits` has `width` bits, `mantissa` of them of mantissa. Both
 * zeros have the same key; NaNs have the largest. */
static inline uint64_t float_key(uint64_t bits, int width, int mantissa) {
  uint64_t sign = (uint64_t)1 << (width - 1), magnitude = bits & (sign - 1);
  uint64_t infinity = (sign - 1) >> mantissa << mantissa;
  if (magnitude > infinity) return ~(uint64_t)0;
  if (magnitude == 0) return sign;
  return bits & sign ? sign - magnitude : sign + magnitude;
}

/* A key that grows with the element. */
static inline uint64_t element_key(const void* data, int64_t i, int32_t dtype) {
  const uint64_t top = (uint64_t)1 << 63;
  switch (dtype) {
    case TW_F64: return float_key(((const uint64_t*)data)[i], 64, 52);
    case TW_F32: return float_key(((const uint32_t*)data)[i], 32, 23);
    case TW_F16: return float_key(((const uint16_t*)data)[i], 16, 10);
    case TW_BF16: return float_key(((const uint16_t*)data)[i], 16, 7);
    case TW_I64: return (uint64_t)((const int64_t*)data)[i] ^ top;
    case TW_I32: return (uint64_t)(int64_t)((const int32_t*)data)[i] ^ top;
    case TW_I16: return (uint64_t)(int64_t)((const int16_t*)data)[i] ^ top;
    case TW_I8: return (uint64_t)(int64_t)((const int8_t*)data)[i] ^ top;
    case TW_U64: return ((const uint64_t*)data)[i];
    case TW_U32: return ((const uint32_t*)data)[i];
    case TW_U16: return ((const uint16_t*)data)[i];
    default: return ((const uint8_t*)data)[i];
  }
}

/* An element of an i32 or i64 tensor, as an index */
static inline int64_t index_at(const tw_view* v, int64_t i) {
  return v->dtype == TW_I32 ? ((const int32_t*)v->data)[i] : ((const int64_t*)v->data)[i];
}
#endif
