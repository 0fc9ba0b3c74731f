/* Chains of launches in regions. Every run may run a region another number of times, and its values
 * may lie elsewhere, so nothing can be replayed by its place in the run. Instead the launches of a
 * region wait until the device is asked for something else: a copy, a wait, or a launch outside of
 * regions. The launches that waited together are a chain. A chain that was launched before, with
 * the same arguments, is replayed as a graph, which the second launch makes. So the body of a loop
 * is one graph for each pair of memories that its carried values alternate between, over all
 * iterations and runs. A loop in which the processor asks for nothing is one graph as a whole, or
 * several where it is long. */
#include "cuda.h"

static cu_chain_launch* cuda_next_launch(cu_chain_launch* launch) {
  return (cu_chain_launch*)(launch->values + launch->count);
}

static void cuda_forget_chains(cu_state* s) {
  for (uint32_t i = 0; i < s->chain_count; ++i)
    if (s->chains[i].executable) s->f.close_executable(s->chains[i].executable);
  s->chain_count = 0;
  s->chain_words = 0;
  s->chains_full = s->chains_useful = 0;
}

static tw_status cuda_launch_one(tw_device* d, cu_chain_launch* l) {
  cu_state* s = d->state;
  void* parameters[kCuMostArguments + 1];
  for (uint64_t i = 0; i < l->count; ++i) parameters[i] = &l->values[i];
  parameters[l->count] = 0;
  cu_code code = s->f.launch(s->functions[l->index], l->grid[0], l->grid[1], l->grid[2],
                             l->block[0], l->block[1], l->block[2], 0, s->stream, parameters, 0);
  return code ? cuda_failed(d, "cannot launch ", d->desc->launches[l->index].function, code)
              : TW_OK;
}

static tw_status cuda_add_launches(tw_device* d, cu_object graph, const cu_chain* chain) {
  cu_state* s = d->state;
  cu_chain_launch* l = (cu_chain_launch*)(s->chain_memory + chain->first);
  cu_object last = 0;
  for (uint32_t n = 0; n < chain->launches; ++n, l = cuda_next_launch(l)) {
    void* parameters[kCuMostArguments + 1];
    cu_launch launch = {.function = s->functions[l->index], .parameters = parameters};
    for (int i = 0; i < 3; ++i) launch.grid[i] = l->grid[i], launch.block[i] = l->block[i];
    for (uint64_t i = 0; i < l->count; ++i) parameters[i] = &l->values[i];
    parameters[l->count] = 0;
    cu_code code = s->f.add_launch(&last, graph, n ? &last : 0, n ? 1 : 0, &launch);
    if (code) return cuda_failed(d, "a launch is not taken into a graph", "", code);
  }
  return TW_OK;
}

static tw_status cuda_make_chain(tw_device* d, cu_chain* chain) {
  cu_state* s = d->state;
  cu_object graph = 0;
  cu_code code = s->f.graph(&graph, 0);
  if (code) return cuda_failed(d, "no graph", "", code);
  tw_status status = cuda_add_launches(d, graph, chain);
  code = status == TW_OK ? s->f.executable(&chain->executable, graph, 0) : 0;
  if (code) status = cuda_failed(d, "the launches make no graph", "", code);
  s->f.close_graph(graph);
  return status;
}

static int cuda_waits_again(const cu_state* s, const cu_chain* chain) {
  const uint64_t* known = s->chain_memory + chain->first;
  if (chain->hash != s->waiting_hash || chain->words != s->waiting_words) return 0;
  for (uint32_t i = 0; i < chain->words; ++i)
    if (known[i] != s->waiting[i]) return 0;
  return 1;
}

/* The known chain that equals the waiting launches; NULL: there is none. Chains mostly come in the
 * order in which they first came. */
static cu_chain* cuda_find_chain(cu_state* s) {
  for (uint32_t n = 0; n < s->chain_count; ++n) {
    const uint32_t at = (s->chain_next + n) % s->chain_count;
    if (!cuda_waits_again(s, &s->chains[at])) continue;
    s->chain_next = at + 1;
    return &s->chains[at];
  }
  return 0;
}

static void cuda_keep_chain(cu_state* s) {
  if (s->chain_count == kCuMostChains || s->chain_words + s->waiting_words > kCuChainWords) {
    s->chains_full = 1;
    return;
  }
  memcpy(s->chain_memory + s->chain_words, s->waiting, s->waiting_words * sizeof *s->waiting);
  s->chains[s->chain_count++] = (cu_chain){s->waiting_hash, 0, s->chain_words, s->waiting_words,
                                           s->waiting_launches};
  s->chain_words += s->waiting_words;
  s->chain_next = s->chain_count;
  s->chains_useful = 1;
}

static void cuda_drop_waiting(cu_state* s) {
  s->waiting_launches = s->waiting_words = 0;
  s->waiting_hash = 0;
}

/* Launches the waiting chain, with the context current. */
static tw_status cuda_launch_waiting(tw_device* d) {
  cu_state* s = d->state;
  tw_status status = TW_OK;
  if (d->status != TW_OK) cuda_drop_waiting(s);
  if (!s->waiting_launches) return TW_OK;
  cu_chain* chain = s->waiting_launches > 1 ? cuda_find_chain(s) : 0;
  if (chain) {
    if (!chain->executable) status = cuda_make_chain(d, chain);
    cu_code code = status == TW_OK ? s->f.replay(chain->executable, s->stream) : 0;
    if (code) status = cuda_failed(d, "cannot replay what a region launches", "", code);
    s->chains_useful = 1;
  } else {
    cu_chain_launch* l = (cu_chain_launch*)s->waiting;
    for (uint32_t n = 0; n < s->waiting_launches && status == TW_OK; ++n, l = cuda_next_launch(l))
      status = cuda_launch_one(d, l);
    if (status == TW_OK && s->waiting_launches > 1) cuda_keep_chain(s);
  }
  cuda_drop_waiting(s);
  return status;
}

/* Adds a launch of the region to the waiting chain. */
static tw_status cuda_add_waiting(tw_device* d, int32_t index, const cu_launch* launch,
                                  const uint64_t* values, uint64_t count) {
  cu_state* s = d->state;
  const uint64_t words = sizeof(cu_chain_launch) / sizeof *s->waiting + count;
  if (s->waiting_words + words > kCuMostWaiting) {
    tw_status status = cuda_enter(d);
    if (status != TW_OK) return status;
    status = cuda_launch_waiting(d);
    cuda_leave(d);
    if (status != TW_OK) return status;
  }
  cu_chain_launch* l = (cu_chain_launch*)(s->waiting + s->waiting_words);
  l->index = (uint32_t)index;
  l->reserved = 0;
  for (int i = 0; i < 3; ++i) l->grid[i] = launch->grid[i], l->block[i] = launch->block[i];
  l->count = count;
  memcpy(l->values, values, count * sizeof *values);
  const uint64_t* added = s->waiting + s->waiting_words;
  for (uint64_t i = 0; i < words; ++i)
    s->waiting_hash = (s->waiting_hash ^ added[i]) * 0x9E3779B97F4A7C15u;
  s->waiting_words += (uint32_t)words;
  ++s->waiting_launches;
  return TW_OK;
}
