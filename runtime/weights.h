/* Weights in a file of their own. It begins with a tw_weights_header, behind which zeros reach to
 * `offset`; the library has the same header where its weights would be, so that the two know each
 * other. */
#ifndef TW_WEIGHTS_H
#define TW_WEIGHTS_H
#include <stdint.h>

#define TW_WEIGHTS_MAGIC "TWWEIGHT"

typedef struct tw_weights_header {
  char magic[8];
  uint32_t version; /* 1 */
  uint32_t offset;  /* of the weights, a multiple of any machine's page */
  uint64_t bytes;
  uint8_t hash[32]; /* BLAKE3 of the weights */
  uint64_t nothing;
} tw_weights_header;
#endif
