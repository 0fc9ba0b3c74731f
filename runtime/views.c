/* Packs views, which strides describe, into dense memory that grows from run to run. */
#include "views.h"

typedef struct tw_strided {
  uint8_t* data; /* the caller's memory; NULL: the tensor is dense */
  const int64_t* strides;
  uint64_t packed; /* offset of the packed elements in the dense memory */
} tw_strided;

struct tw_views {
  uint64_t mapped_bytes; /* bytes of this struct with its arrays */
  tw_strided* views;     /* one for each input, then each output */
  tw_tensor* tensors;    /* dense tensors in their place */
  int64_t* dims; /* shapes of the outputs as the model computes them, one behind the other */
  uint8_t* memory;
  uint64_t memory_bytes;
};

static tw_views* map_views(void) {
  const uint64_t count = (uint64_t)tw_model->input_count + (uint64_t)tw_model->output_count;
  uint64_t dims = 0;
  for (int32_t i = 0; i < tw_model->output_count; ++i) dims += (uint64_t)tw_model->outputs[i].rank;
  const uint64_t views = (sizeof(tw_views) + 63) & ~(uint64_t)63;
  const uint64_t tensors = views + count * sizeof(tw_strided);
  const uint64_t bytes = tensors + count * sizeof(tw_tensor) + dims * sizeof(int64_t) + 64;
  uint8_t* memory = tw_map(bytes);
  if (!memory) return 0;
  tw_views* v = (tw_views*)(void*)memory;
  v->mapped_bytes = bytes;
  v->views = (tw_strided*)(void*)(memory + views);
  v->dims = (int64_t*)(void*)(memory + tensors);
  v->tensors = (tw_tensor*)(void*)(v->dims + dims);
  return v;
}

void tw_views_free(tw_views* v) {
  if (!v) return;
  if (v->memory) munmap(v->memory, (size_t)v->memory_bytes);
  munmap(v, (size_t)v->mapped_bytes);
}

/* 1: the view's elements lie as a dense tensor's do. Strides of single elements do not matter. */
static int is_dense(const int64_t* dims, const int64_t* strides, int32_t rank, int64_t element) {
  int64_t expected = element;
  for (int32_t d = rank; d-- > 0;) {
    if (dims[d] != 1 && strides[d] != expected) return 0;
    if (__builtin_mul_overflow(expected, dims[d], &expected)) return 0;
  }
  return 1;
}

/* Describes the view of a tensor with the extents `dims` and takes its place in the dense memory,
 * behind the *used bytes of other views. */
static tw_status describe(const tw_item* item, tw_strided* view, tw_tensor* tensor,
                          const int64_t* dims, const int64_t* strides, uint64_t* used) {
  const int64_t element = (int64_t)dtype_bytes(item->info->dtype);
  const int output = item->kind[0] == 'o';
  int64_t dense = element, last = 0, step;
  int32_t empty = 0, sound = 1;
  for (int32_t d = 0; d < item->info->rank; ++d) {
    if (dims[d] < 0) {
      text_add(begin_error(item), "its size is decided by the data: it cannot be a view");
      return TW_E_UNSUPPORTED;
    }
    empty |= dims[d] == 0;
    if (strides[d] < 0 || strides[d] % element || (output && dims[d] > 1 && strides[d] == 0)) {
      text_clear(&item->c->error);
      wrong_number(item, output ? "a stride of the output in bytes" : "a stride in bytes",
                   strides[d], element, TW_E_ARGUMENT);
      text_add(&item->c->error, " or a larger multiple of it");
      return TW_E_ARGUMENT;
    }
    if (dims[d] == 0) continue;
    sound = sound && !__builtin_mul_overflow(dense, dims[d], &dense) &&
            !__builtin_mul_overflow(dims[d] - 1, strides[d], &step) &&
            !__builtin_add_overflow(last, step, &last);
  }
  if (empty) return TW_OK;
  if (!sound || last > INT64_MAX - element) {
    text_add(begin_error(item), "the view has more bytes than can be counted");
    return TW_E_SHAPE;
  }
  if (tensor->bytes < (uint64_t)(last + element))
    return wrong_number(item, "buffer size in bytes", (int64_t)tensor->bytes, last + element,
                        TW_E_SIZE);
  if (!tensor->data || (uintptr_t)tensor->data & (uintptr_t)(element - 1))
    return TW_OK; /* tw_verify refuses it */
  if (is_dense(dims, strides, item->info->rank, element)) return TW_OK;
  *view = (tw_strided){tensor->data, strides, *used};
  tensor->bytes = (uint64_t)dense;
  tensor->dims = dims;
  *used += ((uint64_t)dense + 63) & ~(uint64_t)63;
  return TW_OK;
}

static void copy_elements(uint8_t* to, uint64_t to_step, const uint8_t* from, uint64_t from_step,
                          int64_t count, uint32_t bytes) {
  switch (bytes) {
#define TW_COPY_ELEMENTS(type)                                          \
  for (int64_t i = 0; i < count; ++i, to += to_step, from += from_step) \
    *(type*)(void*)to = *(const type*)(const void*)from;                \
  return;
    case 1: TW_COPY_ELEMENTS(uint8_t)
    case 2: TW_COPY_ELEMENTS(uint16_t)
    case 4: TW_COPY_ELEMENTS(uint32_t)
    default: TW_COPY_ELEMENTS(uint64_t)
#undef TW_COPY_ELEMENTS
  }
}

/* Copies the elements of a dimension and all inner ones; pack: into the dense memory, else out of
 * it. The result is the next address in the dense memory. */
static uint8_t* copy_view(uint8_t* dense, uint8_t* view, const int64_t* dims,
                          const int64_t* strides, int32_t rank, uint32_t element, int pack) {
  if (is_dense(dims, strides, rank, element)) {
    uint64_t bytes = element;
    for (int32_t d = 0; d < rank; ++d) bytes *= (uint64_t)dims[d];
    memcpy(pack ? dense : view, pack ? view : dense, (size_t)bytes);
    return dense + bytes;
  }
  if (rank == 1) {
    const uint64_t step = (uint64_t)strides[0];
    if (pack) copy_elements(dense, element, view, step, dims[0], element);
    else copy_elements(view, step, dense, element, dims[0], element);
    return dense + (uint64_t)dims[0] * element;
  }
  for (int64_t i = 0; i < dims[0]; ++i, view += strides[0])
    dense = copy_view(dense, view, dims + 1, strides + 1, rank - 1, element, pack);
  return dense;
}

static void copy_tensor(const tw_views* v, int32_t i, const tw_tensor_info* info, int pack) {
  const tw_strided* view = &v->views[i];
  const tw_tensor* tensor = &v->tensors[i];
  if (view->data)
    copy_view(tensor->data, view->data, tensor->dims, view->strides, info->rank,
              dtype_bytes(info->dtype), pack);
}

/* Describes the views among the inputs. The inputs' sizes bind the symbols, which decide the
 * outputs' extents. */
static tw_status describe_inputs(tw_context* c, tw_views* v, const int64_t* const* strides,
                                 uint64_t* used) {
  for (int32_t s = 0; s < tw_model->symbol_count; ++s) c->symbols[s] = -1;
  for (int32_t i = 0; i < tw_model->input_count; ++i) {
    const tw_item item = {c, "input", i, &tw_model->inputs[i]};
    tw_tensor* tensor = &v->tensors[i];
    tw_status status = verify_kind(&item, tensor, 1);
    if (status == TW_OK) status = bind_dims(&item, tensor);
    if (status == TW_OK && strides[i])
      status = describe(&item, &v->views[i], tensor, tensor->dims, strides[i], used);
    if (status != TW_OK) return status;
  }
  return TW_OK;
}

static tw_status describe_outputs(tw_context* c, tw_views* v, const int64_t* const* strides,
                                  uint64_t* used) {
  int64_t* dims = v->dims;
  for (int32_t s = 0; s < tw_model->symbol_count; ++s)
    if (c->symbols[s] < 0) return TW_OK; /* tw_verify_inputs refuses it: no input has s */
  for (int32_t i = 0; i < tw_model->output_count; ++i) {
    const tw_item item = {c, "output", i, &tw_model->outputs[i]};
    const int32_t at = tw_model->input_count + i;
    tw_tensor* tensor = &v->tensors[at];
    if (!strides[at]) continue;
    tw_status status = verify_kind(&item, tensor, 0);
    tw_model->output_dims(i, c->symbols, dims);
    for (int32_t d = 0; status == TW_OK && tensor->dims && d < item.info->rank; ++d)
      if (dims[d] >= 0 && tensor->dims[d] != dims[d])
        status = wrong_dim(&item, d, tensor->dims[d], dims[d]);
    if (status == TW_OK) status = describe(&item, &v->views[at], tensor, dims, strides[at], used);
    if (status != TW_OK) return status;
    dims += item.info->rank;
  }
  return TW_OK;
}

static tw_status need_memory(tw_context* c, tw_views* v, uint64_t bytes) {
  if (bytes <= v->memory_bytes) return TW_OK;
  uint8_t* memory = tw_map(bytes);
  if (!memory) {
    text_clear(&c->error);
    text_add(&c->error, "no memory for copies of views");
    return TW_E_MEMORY;
  }
  if (v->memory) munmap(v->memory, (size_t)v->memory_bytes);
  v->memory = memory;
  v->memory_bytes = bytes;
  return TW_OK;
}

tw_status tw_views_begin(tw_context* c, const tw_tensor** inputs, const tw_tensor** outputs,
                         const int64_t* const* strides) {
  const int32_t in = tw_model->input_count, count = in + tw_model->output_count;
  uint64_t used = 0;
  if (!c->views && !(c->views = map_views())) return TW_E_MEMORY;
  tw_views* v = c->views;
  for (int32_t i = 0; i < count; ++i) {
    v->tensors[i] = i < in ? (*inputs)[i] : (*outputs)[i - in];
    v->views[i].data = 0;
  }
  tw_status status = describe_inputs(c, v, strides, &used);
  if (status == TW_OK) status = describe_outputs(c, v, strides, &used);
  if (status == TW_OK) status = need_memory(c, v, used);
  if (status != TW_OK) return status;
  for (int32_t i = 0; i < count; ++i) {
    if (v->views[i].data) v->tensors[i].data = v->memory + v->views[i].packed;
    if (i < in) copy_tensor(v, i, &tw_model->inputs[i], 1);
  }
  *inputs = v->tensors;
  *outputs = v->tensors + in;
  return TW_OK;
}

void tw_views_end(tw_views* v) {
  for (int32_t i = 0; i < tw_model->output_count; ++i)
    copy_tensor(v, tw_model->input_count + i, &tw_model->outputs[i], 0);
}
