/* The address of the weights inside the library or object, or of the header for weights in a file
 * of their own */
#ifndef TW_OWN_WEIGHTS_H
#define TW_OWN_WEIGHTS_H
#include "model.h"

static inline const uint8_t* tw_own_weights(void) {
  return (const uint8_t*)((uintptr_t)&tw_weights_offset + (uintptr_t)tw_weights_offset);
}
#endif
