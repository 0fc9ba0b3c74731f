/* BLAKE3. Chunks of 1 KiB are the leaves of a binary tree. Four chunks are hashed side by side,
 * each in a lane of a vector. */
#include "hash.h"
#include "sys.h"

typedef uint32_t tw_lanes __attribute__((vector_size(4 * TW_HASH_LANES)));

enum { kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8, kBlock = 64 };

static const uint32_t kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint8_t kOrder[7][16] = {
    /* order of the message's words in each round */
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
    {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
    {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

static inline __attribute__((always_inline)) tw_lanes rotate(tw_lanes x, int by) {
  return x >> by | x << (32 - by);
}

static inline __attribute__((always_inline)) void mix(tw_lanes* v, int a, int b, int c, int d,
                                                      tw_lanes x, tw_lanes y) {
  v[a] += v[b] + x;
  v[d] = rotate(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = rotate(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 7);
}

/* Compresses one block of 64 bytes in every lane. `chain` goes in and comes out. */
static void compress(tw_lanes chain[8], const tw_lanes m[16], tw_lanes low, tw_lanes high,
                     uint32_t bytes, uint32_t flags) {
  const tw_lanes zero = {0};
  tw_lanes v[16];
  for (int i = 0; i < 8; ++i) v[i] = chain[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = zero + kStart[i];
  v[12] = low;
  v[13] = high;
  v[14] = zero + bytes;
  v[15] = zero + flags;
#pragma clang loop unroll(full)
  for (int r = 0; r < 7; ++r) {
    const uint8_t* o = kOrder[r];
    mix(v, 0, 4, 8, 12, m[o[0]], m[o[1]]);
    mix(v, 1, 5, 9, 13, m[o[2]], m[o[3]]);
    mix(v, 2, 6, 10, 14, m[o[4]], m[o[5]]);
    mix(v, 3, 7, 11, 15, m[o[6]], m[o[7]]);
    mix(v, 0, 5, 10, 15, m[o[8]], m[o[9]]);
    mix(v, 1, 6, 11, 12, m[o[10]], m[o[11]]);
    mix(v, 2, 7, 8, 13, m[o[12]], m[o[13]]);
    mix(v, 3, 4, 9, 14, m[o[14]], m[o[15]]);
  }
  for (int i = 0; i < 8; ++i) chain[i] = v[i] ^ v[8 + i];
}

static uint32_t word(const uint8_t* at) {
  uint32_t w;
  memcpy(&w, at, sizeof w); /* all supported machines are little-endian */
  return w;
}

static void begin_chain(tw_lanes chain[8]) {
  const tw_lanes zero = {0};
  for (int i = 0; i < 8; ++i) chain[i] = zero + kStart[i];
}

static void first_lane(const tw_lanes chain[8], uint32_t out[8]) {
  for (int i = 0; i < 8; ++i) out[i] = chain[i][0];
}

/* Hashes four successive whole chunks, of which the first has the number `index`. */
static void four_chunks(const uint8_t* data, uint64_t index, uint32_t out[TW_HASH_LANES][8]) {
  tw_lanes chain[8], m[16], low, high;
  for (int lane = 0; lane < TW_HASH_LANES; ++lane) {
    low[lane] = (uint32_t)(index + (uint64_t)lane);
    high[lane] = (uint32_t)((index + (uint64_t)lane) >> 32);
  }
  begin_chain(chain);
  for (int at = 0; at < TW_HASH_CHUNK; at += kBlock) {
    for (int w = 0; w < 16; ++w)
      for (int lane = 0; lane < TW_HASH_LANES; ++lane)
        m[w][lane] = word(data + lane * TW_HASH_CHUNK + at + 4 * w);
    compress(chain, m, low, high, kBlock,
             (at == 0 ? kChunkStart : 0u) | (at == TW_HASH_CHUNK - kBlock ? kChunkEnd : 0u));
  }
  for (int lane = 0; lane < TW_HASH_LANES; ++lane)
    for (int i = 0; i < 8; ++i) out[lane][i] = chain[i][lane];
}

/* Hashes one chunk of at most 1 KiB. */
static void one_chunk(const uint8_t* data, uint32_t bytes, uint64_t index, uint32_t flags,
                      uint32_t out[8]) {
  const tw_lanes zero = {0};
  tw_lanes chain[8], m[16];
  uint32_t at = 0, size;
  begin_chain(chain);
  do {
    uint8_t block[kBlock];
    size = bytes - at < kBlock ? bytes - at : kBlock;
    memset(block, 0, sizeof block);
    memcpy(block, data + at, size);
    for (int w = 0; w < 16; ++w) m[w] = zero + word(block + 4 * w);
    uint32_t last = at + size == bytes ? kChunkEnd | flags : 0u;
    compress(chain, m, zero + (uint32_t)index, zero + (uint32_t)(index >> 32), size,
             (at == 0 ? kChunkStart : 0u) | last);
    at += size;
  } while (at < bytes);
  first_lane(chain, out);
}

/* Makes `right` the node above `left` and `right`. */
static void join(const uint32_t left[8], uint32_t right[8], uint32_t flags) {
  const tw_lanes zero = {0};
  tw_lanes chain[8], m[16];
  begin_chain(chain);
  for (int i = 0; i < 8; ++i) {
    m[i] = zero + left[i];
    m[8 + i] = zero + right[i];
  }
  compress(chain, m, zero, zero, kBlock, kParent | flags);
  first_lane(chain, right);
}

/* Adds a chunk that is not the last one, and closes the subtrees that it completes. */
static void push(tw_hasher* h, uint32_t chain[8]) {
  ++h->chunks;
  for (uint64_t count = h->chunks; !(count & 1); count >>= 1) join(h->stack[--h->depth], chain, 0);
  memcpy(h->stack[h->depth++], chain, sizeof h->stack[0]);
}

static void push_four(tw_hasher* h, const uint8_t* data) {
  uint32_t chains[TW_HASH_LANES][8];
  four_chunks(data, h->chunks, chains);
  for (int lane = 0; lane < TW_HASH_LANES; ++lane) push(h, chains[lane]);
}

void tw_hash_begin(tw_hasher* h) {
  h->depth = 0;
  h->filled = 0;
  h->chunks = 0;
}

void tw_hash_add(tw_hasher* h, const uint8_t* data, size_t bytes) {
  while (bytes > 0) {
    if (h->filled == sizeof h->buffer) { /* more bytes follow, so no chunk here is the last */
      push_four(h, h->buffer);
      h->filled = 0;
    }
    if (h->filled == 0 && bytes > sizeof h->buffer) {
      push_four(h, data);
      data += sizeof h->buffer;
      bytes -= sizeof h->buffer;
      continue;
    }
    size_t space = sizeof h->buffer - h->filled, part = bytes < space ? bytes : space;
    memcpy(h->buffer + h->filled, data, part);
    h->filled += (uint32_t)part;
    data += part;
    bytes -= part;
  }
}

void tw_hash_end(tw_hasher* h, uint8_t out[TW_HASH_BYTES]) {
  uint32_t chain[8], at = 0;
  for (; h->filled - at > TW_HASH_CHUNK; at += TW_HASH_CHUNK) {
    one_chunk(h->buffer + at, TW_HASH_CHUNK, h->chunks, 0, chain);
    push(h, chain);
  }
  one_chunk(h->buffer + at, h->filled - at, h->chunks, h->depth == 0 ? kRoot : 0, chain);
  while (h->depth > 0) {
    const uint32_t* left = h->stack[--h->depth];
    join(left, chain, h->depth == 0 ? kRoot : 0);
  }
  memcpy(out, chain, TW_HASH_BYTES);
}
