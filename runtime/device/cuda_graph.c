/* Records a run's launches as CUDA graphs, which the next runs with the same symbols replay. Graphs
 * are built node by node, in the order of the launches, and not captured: the caller's stream may
 * itself be capturing. Copies between the arena and other memory stay outside, so that each run may
 * have other tensors; they cut the launches into segments. Work of the processor in between and
 * launches of regions (cuda_chains.c) cut them, too. A run with other symbols, or another arena,
 * records anew. */
#include "cuda.h"

static void cuda_forget(cu_state* s) {
  for (uint64_t i = 0; i < s->segment_count; ++i) {
    if (s->segments[i].executable) s->f.close_executable(s->segments[i].executable);
    if (s->segments[i].graph) s->f.close_graph(s->segments[i].graph);
    s->segments[i] = (cu_segment){0, 0, 0};
  }
  s->segment_count = 0;
  s->recorded = 0;
}

/* The second run with these symbols pays for this, as many runs never come a second time. */
static tw_status cuda_make_executables(tw_device* d) {
  cu_state* s = d->state;
  for (uint64_t i = 0; i < s->segment_count; ++i) {
    cu_segment* segment = &s->segments[i];
    if (segment->executable) continue;
    cu_code code = s->f.executable(&segment->executable, segment->graph, 0);
    if (code) return cuda_failed(d, "the launches make no graph", "", code);
    s->f.close_graph(segment->graph);
    segment->graph = segment->last = 0;
  }
  return TW_OK;
}

static tw_status cuda_begin(tw_device* d, const int64_t* symbols, int32_t plain) {
  cu_state* s = d->state;
  int same = s->recorded;
  s->inside = 0;
  s->next = 0;
  s->mode = kCuPlain;
  cuda_drop_waiting(s);
  if (plain) return TW_OK;
  for (int32_t i = 0; i < tw_model->symbol_count; ++i) same &= s->symbols[i] == symbols[i];
  tw_status status = cuda_enter(d);
  if (status != TW_OK) return status;
  if (s->chains_full && !s->chains_useful) cuda_forget_chains(s); /* chains of other runs */
  s->chains_full = s->chains_useful = 0;
  if (same) {
    status = cuda_make_executables(d);
    s->mode = kCuReplay;
  } else {
    cuda_forget(s);
    memcpy(s->symbols, symbols, (size_t)tw_model->symbol_count * sizeof *symbols);
    s->mode = kCuRecord;
    s->recorded = 1;
  }
  cuda_leave(d);
  return status;
}

static tw_status cuda_record(tw_device* d, const cu_launch* launch) {
  cu_state* s = d->state;
  cu_code code = 0;
  cu_segment* segment = &s->segments[s->segment_count - (uint64_t)s->inside];
  if (!s->inside) {
    code = s->f.graph(&segment->graph, 0);
    if (code) return cuda_failed(d, "no graph", "", code);
    ++s->segment_count;
  }
  code = s->f.add_launch(&segment->last, segment->graph, s->inside ? &segment->last : 0,
                         (size_t)s->inside, launch);
  return code ? cuda_failed(d, "a launch is not taken into a graph", "", code) : TW_OK;
}
