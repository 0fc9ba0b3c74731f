/* Random words by Philox4x32 with ten rounds (Salmon et al., SC'11, section 3.3). They depend on
 * the seed, the context's run and the place only. So equal runs of two contexts agree, and the runs
 * of one context differ. */
#include "ops.h"

static void philox(uint32_t word[4], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = (uint64_t)0xd2511f53u * word[0], q = (uint64_t)0xcd9e8d57u * word[2];
    const uint32_t w1 = word[1], w3 = word[3];
    word[0] = (uint32_t)(q >> 32) ^ w1 ^ key0;
    word[1] = (uint32_t)q;
    word[2] = (uint32_t)(p >> 32) ^ w3 ^ key1;
    word[3] = (uint32_t)p;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

int32_t tw_op_random_bits(const tw_op_args* a) {
  const uint64_t seed = (uint64_t)a->ints[0];
  uint32_t *out = a->out[0].data, word[4];
  int64_t count = 1;
  for (int32_t d = 0; d < a->out[0].rank; ++d) count *= a->out[0].dims[d];
  for (int64_t i = 0; i < count; ++i) {
    if ((i & 3) == 0) {
      const uint64_t block = (uint64_t)i >> 2;
      word[0] = (uint32_t)block;
      word[1] = (uint32_t)(block >> 32);
      word[2] = (uint32_t)a->run;
      word[3] = (uint32_t)(a->run >> 32);
      philox(word, (uint32_t)seed, (uint32_t)(seed >> 32));
    }
    out[i] = word[i & 3];
  }
  return TW_OK;
}
