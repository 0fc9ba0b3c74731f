/* generate TEXT COUNT: continues a text, byte by byte, with decoder.so, compiled from the model
 * that model.py writes. All memory is taken before the first token: the program owns the arena, and
 * each cache has two buffers, which a step reads and writes in turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"

enum { MOST = 1024, WORDS = 256, CACHES = TW_DECODER_INPUTS - 2 };

static int64_t ids[MOST], mask[MOST];
static float logits[MOST * WORDS];
static char arena[TW_DECODER_MAX_ARENA_BYTES + TW_DECODER_ALIGNMENT];

/* The caches before and after a step: [1, heads, past, size]. */
static float* buffers[CACHES][2];

static int64_t likeliest(const float* row) {
  int64_t best = 0;
  for (int64_t i = 1; i < WORDS; i++)
    if (row[i] > row[best]) best = i;
  return best;
}

/* Runs one step on `fresh` ids that follow `past` earlier ones. */
static tw_status step(const tw_api* api, tw_context* context, int64_t past, int64_t fresh,
                      int from) {
  tw_tensor inputs[2 + CACHES], outputs[1 + CACHES];
  const int64_t ids_dims[2] = {1, fresh}, mask_dims[2] = {1, past + fresh};
  int64_t before[CACHES][4], behind[CACHES][4];
  inputs[0] = (tw_tensor){ids, (uint64_t)fresh * sizeof ids[0], TW_I64, 2, ids_dims};
  inputs[1] = (tw_tensor){mask, (uint64_t)(past + fresh) * sizeof mask[0], TW_I64, 2, mask_dims};
  outputs[0] = (tw_tensor){logits, sizeof logits, TW_F32, 3, NULL};
  for (int i = 0; i < CACHES; i++) {
    const int64_t heads = api->inputs[2 + i].dims[1], size = api->inputs[2 + i].dims[3];
    const int64_t dims[2][4] = {{1, heads, past, size}, {1, heads, past + fresh, size}};
    memcpy(before[i], dims[0], sizeof dims[0]);
    memcpy(behind[i], dims[1], sizeof dims[1]);
    const uint64_t row = (uint64_t)(heads * size) * sizeof(float);
    inputs[2 + i] = (tw_tensor){buffers[i][from], row * (uint64_t)past, TW_F32, 4, before[i]};
    outputs[1 + i] = (tw_tensor){buffers[i][!from], row * MOST, TW_F32, 4, behind[i]};
  }
  return api->run(context, inputs, outputs);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: generate TEXT COUNT\n"), 2;
  const int64_t prompt = (int64_t)strlen(argv[1]), count = strtol(argv[2], NULL, 10);
  if (prompt < 1 || count < 1 || prompt + count > MOST)
    return fprintf(stderr, "1 to %d bytes in all\n", MOST), 2;
  const tw_api* api = tw_decoder_query(TW_ABI_VERSION);
  if (!api) return 1;
  const size_t off = (size_t)((uintptr_t)arena % TW_DECODER_ALIGNMENT);
  const tw_options options = {.size = sizeof options,
                              .arena = arena + (TW_DECODER_ALIGNMENT - off),
                              .arena_bytes = TW_DECODER_MAX_ARENA_BYTES};
  tw_context* context = NULL;
  tw_status status = api->create(&options, &context);
  if (status != TW_OK)
    return fprintf(stderr, "%s: %s\n", api->status_text(status), api->last_error(NULL)), 1;
  for (int i = 0; i < CACHES; i++)
    for (int k = 0; k < 2; k++) {
      const int64_t* dims = api->inputs[2 + i].dims;
      buffers[i][k] = malloc((size_t)(dims[1] * dims[3]) * MOST * sizeof(float));
      if (!buffers[i][k]) return fprintf(stderr, "no memory for the caches\n"), 1;
    }
  for (int64_t i = 0; i < MOST; i++) mask[i] = 1;
  for (int64_t i = 0; i < prompt; i++) ids[i] = (unsigned char)argv[1][i];
  int64_t past = 0, fresh = prompt;
  for (int from = 0; past < prompt + count - 1; from = !from) {
    status = step(api, context, past, fresh, from);
    if (status != TW_OK) break;
    const int64_t next = likeliest(logits + (fresh - 1) * WORDS);
    printf("%lld\n", (long long)next);
    past += fresh, fresh = 1, ids[0] = next;
  }
  if (status != TW_OK)
    fprintf(stderr, "%s: %s\n", api->status_text(status), api->last_error(context));
  api->destroy(context);
  for (int i = 0; i < CACHES; i++) free(buffers[i][0]), free(buffers[i][1]);
  return status != TW_OK;
}
