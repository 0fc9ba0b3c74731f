/* BLAKE3, the unkeyed hash of 32 bytes, as its specification says; of data that comes in pieces. */
#ifndef TW_HASH_H
#define TW_HASH_H
#include <stddef.h>
#include <stdint.h>

enum { TW_HASH_BYTES = 32, TW_HASH_CHUNK = 1024, TW_HASH_LANES = 4, TW_HASH_DEPTH = 54 };

typedef struct tw_hasher {
  uint32_t stack[TW_HASH_DEPTH][8]; /* whole subtrees, the largest first */
  int32_t depth;
  uint32_t filled; /* bytes of the buffer: at least one as soon as there were any */
  uint64_t chunks; /* behind the buffer's beginning */
  uint8_t buffer[TW_HASH_LANES * TW_HASH_CHUNK];
} tw_hasher;

void tw_hash_begin(tw_hasher* h);
void tw_hash_add(tw_hasher* h, const uint8_t* data, size_t bytes);
void tw_hash_end(tw_hasher* h, uint8_t out[TW_HASH_BYTES]);
#endif
