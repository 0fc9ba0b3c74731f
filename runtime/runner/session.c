#include "session.h"
#include "inputs.h"
#include "loader.h"
#include "print.h"
#include "system.h"

static _Noreturn void fail_with(const tw_session* s, tw_status status) {
  const char* why = s->api->last_error(s->context);
  const int code = status == TW_E_UNSUPPORTED ? kUnsupported : kUser;
  if (why && *why) fail(code, "the model does not run: ", why, 0);
  fail(code, s->api->status_text(status), 0, 0);
}

static void make_outputs(tw_session* s) {
  for (int32_t i = 0; i < s->api->output_count; ++i) {
    const tw_tensor_info* info = &s->api->outputs[i];
    tw_array* array = &s->outputs[i];
    int32_t known = 1;
    array->dtype = info->dtype;
    array->rank = info->rank;
    s->api->output_dims(i, s->symbols, array->dims);
    for (int32_t d = 0; d < info->rank; ++d) known = known && array->dims[d] >= 0;
    s->made[i] = (tw_tensor){.dtype = info->dtype, .rank = info->rank};
    if (!known) continue; /* data decide the size: the library's own memory is taken */
    array->count = count_of(array->dims, array->rank, array->dtype);
    s->made[i].bytes = (uint64_t)array->count * (uint64_t)type_of(array->dtype)->bytes;
    s->made[i].data = array->data = take_memory(s->made[i].bytes);
    s->made[i].dims = array->dims;
  }
}

tw_session open_session(const char* library, const tw_arguments* arguments) {
  tw_session s = {.api = load_library(library)};
  const uint64_t in = (uint64_t)s.api->input_count, out = (uint64_t)s.api->output_count;
  s.inputs = take_memory(in * sizeof *s.inputs);
  s.given = take_memory(in * sizeof *s.given);
  s.outputs = take_memory(out * sizeof *s.outputs);
  s.made = take_memory(out * sizeof *s.made);
  s.symbols = take_memory((uint64_t)s.api->symbol_count * sizeof *s.symbols);
  read_inputs(s.api, arguments, s.inputs, s.symbols);
  for (int32_t i = 0; i < s.api->input_count; ++i) {
    const tw_array* array = &s.inputs[i];
    s.given[i] = (tw_tensor){array->data,
                             (uint64_t)array->count * (uint64_t)type_of(array->dtype)->bytes,
                             array->dtype, array->rank, array->dims};
  }
  const tw_options options = {.size = sizeof options, .threads = (int32_t)arguments->threads};
  const tw_status status = s.api->create(&options, &s.context);
  if (status != TW_OK) fail_with(&s, status);
  make_outputs(&s);
  return s;
}

void run_once(tw_session* s) {
  const tw_status status = s->api->run(s->context, s->given, s->made);
  if (status != TW_OK) fail_with(s, status);
}

void take_outputs(tw_session* s) {
  for (int32_t i = 0; i < s->api->output_count; ++i) {
    tw_array* array = &s->outputs[i];
    const tw_status status = s->api->output_of_run(s->context, i, array->dims, &array->data);
    if (status != TW_OK) fail_with(s, status);
    array->count = count_of(array->dims, array->rank, array->dtype);
  }
}
