/* Memory for the strings that a run makes: a list of mappings, of which the next run keeps the
 * newest */
#include "context.h"

typedef struct tw_string_block {
  struct tw_string_block* before;
  uint64_t mapped;
} tw_string_block;

static void use(tw_strings* s, tw_string_block* block) {
  s->block = block;
  s->at = block ? (char*)(block + 1) : 0;
  s->left = block ? block->mapped - sizeof *block : 0;
}

static int32_t more(tw_strings* s, uint64_t bytes) {
  const tw_string_block* last = s->block;
  uint64_t mapped = last ? last->mapped * 2 : (uint64_t)1 << 16;
  if (bytes > (uint64_t)1 << 47) return 0;
  if (mapped < bytes + sizeof *last) mapped = bytes + sizeof *last;
  tw_string_block* block = tw_map(mapped);
  if (!block) return 0;
  block->before = s->block;
  block->mapped = mapped;
  use(s, block);
  return 1;
}

void tw_strings_free(tw_strings* s, int32_t all) {
  tw_string_block* kept = all ? 0 : s->block;
  for (tw_string_block* block = s->block; block;) {
    tw_string_block* before = block->before;
    if (block != kept) munmap(block, (size_t)block->mapped);
    block = before;
  }
  if (kept) kept->before = 0;
  use(s, kept);
  s->more = more;
}
