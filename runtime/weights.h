/* The format of weights in a file of their own. The file begins with a tw_weights_header, and zeros
 * follow up to `offset`. The library has the same header in the place of its weights, so the two
 * recognize each other. */
#ifndef TW_WEIGHTS_H
#define TW_WEIGHTS_H
#include <stdint.h>

#define TW_WEIGHTS_MAGIC "TWWEIGHT"

typedef struct tw_weights_header {
  char magic[8];
  uint32_t version; /* always 1 */
  uint32_t offset;  /* offset of the weights, a multiple of any machine's page */
  uint64_t bytes;
  uint8_t hash[32]; /* BLAKE3 of the weights */
  uint64_t nothing;
} tw_weights_header;
#endif
