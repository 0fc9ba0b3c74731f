/* Verifies inputs and outputs. Nothing that a caller passes is trusted beyond the sizes that it
 * states. */
#include "context.h"

static uint32_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case TW_U8:
    case TW_I8:
    case TW_BOOL: return 1;
    case TW_F8E4M3FN:
    case TW_F8E4M3FNUZ:
    case TW_F8E5M2:
    case TW_F8E5M2FNUZ:
    case TW_F8E8M0: return 1;
    case TW_U4:
    case TW_I4:
    case TW_F4E2M1:
    case TW_U2:
    case TW_I2: return 1;
    case TW_U16:
    case TW_I16:
    case TW_F16:
    case TW_BF16: return 2;
    case TW_F32:
    case TW_I32:
    case TW_U32: return 4;
    default: return 8;
  }
}

static const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case TW_F32: return "f32";
    case TW_U8: return "u8";
    case TW_I8: return "i8";
    case TW_U16: return "u16";
    case TW_I16: return "i16";
    case TW_I32: return "i32";
    case TW_I64: return "i64";
    case TW_STRING: return "string";
    case TW_BOOL: return "bool";
    case TW_F16: return "f16";
    case TW_F64: return "f64";
    case TW_U32: return "u32";
    case TW_U64: return "u64";
    case TW_BF16: return "bf16";
    case TW_F8E4M3FN: return "f8e4m3fn";
    case TW_F8E4M3FNUZ: return "f8e4m3fnuz";
    case TW_F8E5M2: return "f8e5m2";
    case TW_F8E5M2FNUZ: return "f8e5m2fnuz";
    case TW_F8E8M0: return "f8e8m0";
    case TW_F4E2M1: return "f4e2m1";
    case TW_U4: return "u4";
    case TW_I4: return "i4";
    case TW_U2: return "u2";
    case TW_I2: return "i2";
    default: return 0;
  }
}

static void add_dtype(tw_text* t, int32_t dtype) {
  const char* name = dtype_name(dtype);
  if (name) {
    text_add(t, name);
  } else {
    text_add(t, "number ");
    text_add_number(t, dtype);
  }
}

typedef struct tw_item { /* the tensor being verified, for error texts */
  tw_context* c;
  const char* kind; /* "input" or "output" */
  int32_t index;
  const tw_tensor_info* info;
} tw_item;

static tw_text* begin_error(const tw_item* item) { /* "input 0 (image): " */
  tw_text* t = &item->c->error;
  text_clear(t);
  text_add(t, item->kind);
  text_add(t, " ");
  text_add_number(t, item->index);
  text_add(t, " (");
  text_add(t, item->info->name);
  text_add(t, "): ");
  return t;
}

static tw_status wrong_number(const tw_item* item, const char* what, int64_t got, int64_t expected,
                              tw_status status) {
  tw_text* t = begin_error(item);
  text_add(t, what);
  text_add(t, " is ");
  text_add_number(t, got);
  text_add(t, ", expected ");
  text_add_number(t, expected);
  return status;
}

static tw_text* begin_dim_error(const tw_item* item, int32_t dim,
                                int64_t got) { /* "...: dim 2 is 3, expected " */
  tw_text* t = begin_error(item);
  text_add(t, "dim ");
  text_add_number(t, dim);
  text_add(t, " is ");
  text_add_number(t, got);
  text_add(t, ", expected ");
  return t;
}

static tw_status wrong_dim(const tw_item* item, int32_t dim, int64_t got, int64_t expected) {
  text_add_number(begin_dim_error(item, dim, got), expected);
  return TW_E_SHAPE;
}

/* Verifies element type, rank and the presence of dims, but not the extents. */
static tw_status verify_kind(const tw_item* item, const tw_tensor* tensor, int dims_needed) {
  if (tensor->dtype != item->info->dtype) {
    tw_text* t = begin_error(item);
    text_add(t, "element type is ");
    add_dtype(t, tensor->dtype);
    text_add(t, ", expected ");
    add_dtype(t, item->info->dtype);
    return TW_E_DTYPE;
  }
  if (!tensor->dims && !dims_needed) return TW_OK;
  if (tensor->rank != item->info->rank)
    return wrong_number(item, "rank", tensor->rank, item->info->rank, TW_E_SHAPE);
  if (!tensor->dims && tensor->rank > 0) {
    text_add(begin_error(item), "dims is null");
    return TW_E_ARGUMENT;
  }
  return TW_OK;
}

static tw_status misaligned(const tw_item* item) {
  tw_text* t = begin_error(item);
  text_add(t, "data is not aligned to the element size of ");
  text_add_number(t, dtype_bytes(item->info->dtype));
  return TW_E_ARGUMENT;
}

/* Verifies the buffer of a tensor with the known extents `dims`. */
static tw_status verify_buffer(const tw_item* item, const tw_tensor* tensor, const int64_t* dims) {
  uint64_t element = dtype_bytes(item->info->dtype), bytes = element;
  for (int32_t i = 0; i < item->info->rank; ++i) {
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, (uint64_t)dims[i], &bytes)) {
      text_add(begin_error(item), "the shape has more bytes than can be counted");
      return TW_E_SHAPE;
    }
  }
  if (tensor->bytes < bytes)
    return wrong_number(item, "buffer size in bytes", (int64_t)tensor->bytes, (int64_t)bytes,
                        TW_E_SIZE);
  if (bytes == 0) return TW_OK;
  if (!tensor->data) {
    text_add(begin_error(item), "data is null");
    return TW_E_ARGUMENT;
  }
  return (uintptr_t)tensor->data & (element - 1) ? misaligned(item) : TW_OK;
}

int tw_symbol_fits(int32_t symbol, int64_t value) {
  const int64_t* limits = &tw_model->symbol_limits[2 * symbol];
  return value >= limits[0] && value <= limits[1];
}

void tw_add_limits(tw_text* t, int32_t symbol, int64_t got) {
  const int64_t* limits = &tw_model->symbol_limits[2 * symbol];
  text_add(t, limits[1] == INT64_MAX ? "at least " : "");
  text_add_number(t, limits[0]);
  if (limits[1] != INT64_MAX) {
    text_add(t, " to ");
    text_add_number(t, limits[1]);
  }
  text_add(t, " (");
  text_add(t, tw_model->symbols[symbol]);
  text_add(t, ")");
  if (got != 0) return;
  text_add(t, ": one compiled with --dim ");
  text_add(t, tw_model->symbols[symbol]);
  text_add(t, "=0..MOST takes 0");
}

/* Checks the limits of the symbol that dim i is. */
static int within_limits(const tw_item* item, int32_t i, int64_t got) {
  const int32_t symbol = (int32_t)(-1 - item->info->dims[i]);
  if (tw_symbol_fits(symbol, got)) return 1;
  tw_add_limits(begin_dim_error(item, i, got), symbol, got);
  return 0;
}

static tw_status bind_dims(const tw_item* item, const tw_tensor* tensor) {
  int64_t* symbols = item->c->symbols;
  for (int32_t i = 0; i < item->info->rank; ++i) {
    int64_t want = item->info->dims[i], got = tensor->dims[i];
    if (want == TW_DIM_COMPUTED) continue;
    if (want < 0) {
      int64_t* symbol = &symbols[-1 - want];
      if (*symbol < 0 && !within_limits(item, i, got)) return TW_E_SHAPE;
      if (*symbol < 0) *symbol = got;
      want = *symbol;
      if (got != want) {
        tw_text* t = begin_dim_error(item, i, got);
        text_add(t, tw_model->symbols[-1 - item->info->dims[i]]);
        text_add(t, " = ");
        text_add_number(t, want);
        return TW_E_SHAPE;
      }
    } else if (got != want) {
      return wrong_dim(item, i, got, want);
    }
  }
  return TW_OK;
}

/* Verifies an output. Where data decide its size, -1 stands for an extent that is not known yet,
 * and sizes.c verifies the memory once it is. */
static tw_status verify_bound(const tw_item* item, const tw_tensor* tensor, const int64_t* dims) {
  int32_t unknown = 0;
  for (int32_t i = 0; i < item->info->rank; ++i) {
    if (dims[i] == -1) unknown = 1;
    else if (tensor->dims && tensor->dims[i] != dims[i])
      return wrong_dim(item, i, tensor->dims[i], dims[i]);
  }
  if (!unknown) return verify_buffer(item, tensor, dims);
  if (!tensor->data || !((uintptr_t)tensor->data & (dtype_bytes(item->info->dtype) - 1)))
    return TW_OK;
  return misaligned(item);
}

tw_status tw_verify_sizes(tw_text* error, const int64_t* symbols) {
  const char* broken = tw_model->misfit ? tw_model->misfit(symbols) : 0;
  if (!broken) return TW_OK;
  text_clear(error);
  text_add(error, "the sizes do not fit: ");
  text_add(error, broken);
  for (int32_t s = 0; s < tw_model->symbol_count; ++s) {
    text_add(error, s ? ", " : "; here ");
    text_add(error, tw_model->symbols[s]);
    text_add(error, " = ");
    text_add_number(error, symbols[s]);
  }
  return TW_E_SHAPE;
}

tw_status tw_verify_inputs(tw_context* c, const tw_tensor* inputs) {
  for (int32_t s = 0; s < tw_model->symbol_count; ++s) c->symbols[s] = -1;
  for (int32_t i = 0; i < tw_model->input_count; ++i) {
    tw_item item = {c, "input", i, &tw_model->inputs[i]};
    tw_status status = verify_kind(&item, &inputs[i], 1);
    if (status == TW_OK) status = bind_dims(&item, &inputs[i]);
    if (status != TW_OK) return status;
    c->inputs[i] = inputs[i].data;
  }
  for (int32_t s = 0; s < tw_model->symbol_count; ++s) {
    if (c->symbols[s] >= 0) continue;
    text_clear(&c->error);
    text_add(&c->error, "no input has the dim ");
    text_add(&c->error, tw_model->symbols[s]);
    return TW_E_SHAPE;
  }
  for (int32_t i = 0; i < tw_model->input_count; ++i) {
    tw_item item = {c, "input", i, &tw_model->inputs[i]};
    const int64_t* dims = inputs[i].dims;
    for (int32_t d = 0; d < item.info->rank; ++d) {
      if (item.info->dims[d] != TW_DIM_COMPUTED) continue;
      tw_model->input_dims(i, c->symbols, c->dims);
      dims = c->dims;
      break;
    }
    tw_status status = verify_bound(&item, &inputs[i], dims);
    if (status != TW_OK) return status;
  }
  return tw_verify_sizes(&c->error, c->symbols);
}

tw_status tw_verify_outputs(tw_context* c, const tw_tensor* outputs) {
  for (int32_t i = 0; i < tw_model->output_count; ++i) {
    tw_item item = {c, "output", i, &tw_model->outputs[i]};
    tw_status status = verify_kind(&item, &outputs[i], 0);
    if (status != TW_OK) return status;
    tw_model->output_dims(i, c->symbols, c->dims);
    status = verify_bound(&item, &outputs[i], c->dims);
    if (status != TW_OK) return status;
    c->outputs[i] = outputs[i].data;
  }
  return TW_OK;
}
