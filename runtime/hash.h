/* BLAKE3, the unkeyed hash of 32 bytes, as its specification defines it. The data may come in
 * pieces. */
#ifndef TW_HASH_H
#define TW_HASH_H
#include <stddef.h>
#include <stdint.h>

enum { TW_HASH_BYTES = 32, TW_HASH_CHUNK = 1024, TW_HASH_LANES = 4, TW_HASH_DEPTH = 54 };

typedef struct tw_hasher {
  uint32_t stack[TW_HASH_DEPTH][8]; /* chains of whole subtrees, the largest first */
  int32_t depth;
  uint32_t filled; /* bytes in the buffer; at least one once there are data */
  uint64_t chunks; /* chunks before the buffer */
  uint8_t buffer[TW_HASH_LANES * TW_HASH_CHUNK];
} tw_hasher;

void tw_hash_begin(tw_hasher* h);
void tw_hash_add(tw_hasher* h, const uint8_t* data, size_t bytes);
void tw_hash_end(tw_hasher* h, uint8_t out[TW_HASH_BYTES]);
#endif
