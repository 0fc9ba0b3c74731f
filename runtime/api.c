/* The functions behind tw_api: contexts, runs, and the table itself. */
#include "context.h"
#include "cpu/cpu.h"
#include "integrity.h"
#include "views.h"
#include "weights.h"

const tw_model_desc* tw_model;

static tw_status check_cpu(void) {
  return tw_cpu_has_all(tw_model->cpu_features) ? TW_OK : TW_E_CPU;
}

static int32_t longest_shape(void) {
  int32_t rank = 1;
  for (int32_t i = 0; i < tw_model->input_count; ++i)
    if (tw_model->inputs[i].rank > rank) rank = tw_model->inputs[i].rank;
  for (int32_t i = 0; i < tw_model->output_count; ++i)
    if (tw_model->outputs[i].rank > rank) rank = tw_model->outputs[i].rank;
  return rank;
}

static uint64_t growable_count(void) {
  return (uint64_t)tw_model->growable_count +
         (uint64_t)(tw_model->data_symbol_count ? tw_model->output_count : 0);
}

static tw_context* map_context(void) {
  uint64_t symbols = (uint64_t)tw_model->symbol_count + (uint64_t)tw_model->data_symbol_count;
  uint64_t numbers = symbols + (uint64_t)longest_shape();
  uint64_t growable = growable_count();
  uint64_t pointers = (uint64_t)tw_model->input_count + (uint64_t)tw_model->output_count;
  uint64_t head = (sizeof(tw_context) + 63) & ~(uint64_t)63;
  uint64_t devices = head + numbers * sizeof(int64_t) + pointers * sizeof(void*);
  uint64_t bytes = devices + tw_model->device_count * sizeof(tw_device) +
                   growable * sizeof(tw_growable);
  tw_context* c = tw_map(bytes);
  if (!c) return 0;
  c->mapped_bytes = bytes;
  c->symbols = (int64_t*)((char*)c + head);
  c->dims = c->symbols + symbols;
  c->inputs = (void**)(c->symbols + numbers);
  c->outputs = c->inputs + tw_model->input_count;
  c->devices = (tw_device*)((char*)c + devices);
  c->growable = (tw_growable*)((char*)c + bytes - growable * sizeof(tw_growable));
  c->error = (tw_text){c->error_data, 0, sizeof c->error_data};
  return c;
}

static void add_bytes(tw_text* t, uint64_t bytes) {
  if (bytes > INT64_MAX) {
    text_add(t, "more bytes than can be counted");
    return;
  }
  text_add_number(t, (int64_t)bytes);
  text_add(t, " bytes");
}

/* Makes sure that the arena has at least `bytes`. An arena of the caller's cannot grow. */
static tw_status need_arena(tw_context* c, uint64_t bytes) {
  if (bytes <= c->arena_bytes) return TW_OK;
  text_clear(&c->error);
  if (c->arena && !c->arena_owned) {
    text_add(&c->error, "the arena has ");
    add_bytes(&c->error, c->arena_bytes);
    text_add(&c->error, ", this run needs ");
    add_bytes(&c->error, bytes);
    return TW_E_SIZE;
  }
  uint8_t* arena = tw_map(bytes);
  if (!arena) {
    text_add(&c->error, "no memory for an arena of ");
    add_bytes(&c->error, bytes);
    return TW_E_MEMORY;
  }
  if (c->arena) munmap(c->arena, (size_t)c->arena_bytes);
  c->arena = arena;
  c->arena_bytes = bytes;
  c->arena_owned = 1;
  return TW_OK;
}

static uint64_t call_ns_bytes(void) { return (uint64_t)tw_model->call_count * sizeof(uint64_t); }

static void destroy(tw_context* c) {
  if (!c) return;
  if (c->call_ns) munmap(c->call_ns, (size_t)call_ns_bytes());
  tw_views_free(c->views);
  tw_devices_close(c->devices);
  if (c->weights) tw_weights_leave();
  tw_team_leave(&c->team);
  tw_strings_free(&c->strings, 1);
  if (c->arena_owned) munmap(c->arena, (size_t)c->arena_bytes);
  for (uint64_t r = 0; r < growable_count(); ++r)
    if (c->growable[r].mapped) munmap(c->growable[r].data, (size_t)c->growable[r].mapped);
  munmap(c, (size_t)c->mapped_bytes);
}

/* 0: the options are unsound, and `error` says why where there is more to say. */
static int options_are_sound(const tw_options* o, tw_text* error) {
  if (o->threads < 0 || (uintptr_t)o->arena & 63 || (!o->arena && o->arena_bytes)) return 0;
  if (o->profiler && !o->profiler->on_call) return 0;
  if (o->parallel && (!o->parallel->parallel_for || o->parallel->threads < 1)) return 0;
  for (int32_t s = 0; o->symbols && s < tw_model->symbol_count; ++s) {
    if (tw_symbol_fits(s, o->symbols[s])) continue;
    text_add(error, "a dimension of ");
    text_add_number(error, o->symbols[s]);
    text_add(error, ", expected ");
    tw_add_limits(error, s, o->symbols[s]);
    return 0;
  }
  return 1;
}

static tw_status seat_context(tw_context* c, const tw_options* o) {
  if (o->parallel) {
    c->team.user = *o->parallel;
    c->team.threads = o->parallel->threads;
    if (o->threads > 0 && o->threads < c->team.threads) c->team.threads = o->threads;
    return TW_OK;
  }
  tw_team_join(&c->team, o->threads ? o->threads : tw_usable_cpus());
  return o->threads > 1 && c->team.threads == 1 ? TW_E_MEMORY : TW_OK;
}

static tw_status seat_profiler(tw_context* c, const tw_profiler* profiler) {
  if (!profiler || tw_model->call_count == 0) return TW_OK;
  c->profiler = *profiler;
  c->call_ns = tw_map(call_ns_bytes());
  return c->call_ns ? TW_OK : TW_E_MEMORY;
}

static tw_status make_context(const tw_options* given, tw_context** context, tw_text* error) {
  tw_options o;
  memset(&o, 0, sizeof o);
  if (given) { /* callers with an older header know fewer fields, with a newer one more */
    if (given->size < sizeof o.size + sizeof o.threads) return TW_E_ARGUMENT;
    memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  }
  if (!options_are_sound(&o, error)) return TW_E_ARGUMENT;
  if (check_cpu() != TW_OK) return TW_E_CPU;
  tw_context* c = map_context();
  if (!c) return TW_E_MEMORY;
  c->arena = o.arena;
  c->arena_bytes = o.arena_bytes;
  tw_status status = TW_OK;
  if (o.symbols || tw_model->symbol_count == 0) {
    status = o.symbols ? tw_verify_sizes(&c->error, o.symbols) : TW_OK;
    if (status == TW_OK) status = need_arena(c, tw_model->arena_bytes(o.symbols));
  }
  if (status == TW_OK) status = seat_context(c, &o);
  if (status == TW_OK) status = seat_profiler(c, o.profiler);
  if (status == TW_OK) status = tw_weights_enter(o.weights, &c->weights, &c->error);
  if (status == TW_OK) status = tw_devices_open(c->devices, c->weights, o.queue, &c->error);
  if (status == TW_OK) {
    *context = c;
    return status;
  }
  text_add(error, c->error_data);
  destroy(c);
  return status;
}

static tw_status create(const tw_options* given, tw_context** context) {
  char data[256] = "";
  tw_text error = {data, 0, sizeof data};
  if (!context) return TW_E_ARGUMENT;
  *context = 0;
  const tw_status status = make_context(given, context, &error);
  if (status != TW_OK) set_create_error(data);
  return status;
}

/* A context makes one call at a time; `running` is a tw_run_state. */
static int begin_call(tw_context* c) {
  uint32_t none = TW_RUN_NONE;
  return __c11_atomic_compare_exchange_strong(&c->running, &none, TW_RUN_GOING, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED);
}
static void end_call(tw_context* c) { TW_STORE(&c->running, TW_RUN_NONE, RELEASE); }

static tw_status cancel(tw_context* c) {
  uint32_t going = TW_RUN_GOING;
  if (!c) return TW_E_ARGUMENT;
  __c11_atomic_compare_exchange_strong(&c->running, &going, TW_RUN_CANCELLED, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
  return TW_OK;
}

/* The way in which a run is asked for */
typedef struct tw_manner {
  uint64_t* ns; /* nanoseconds of each call; NULL: no clock */
  int32_t asynchronous;
  const uint8_t* places;
  const int64_t* const* strides; /* strides of views; NULL: all tensors are dense */
} tw_manner;

static tw_status run_verified(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs,
                              tw_manner manner) {
  tw_status status = manner.asynchronous ? tw_devices_whole(&c->error) : TW_OK;
  c->has_run = 0;
  if (status == TW_OK) status = tw_verify_inputs(c, inputs);
  if (status == TW_OK) status = tw_verify_outputs(c, outputs);
  if (status == TW_OK) status = need_arena(c, tw_model->arena_bytes(c->symbols));
  if (status == TW_OK) status = tw_devices_begin(c->devices, c->symbols, manner.ns != 0);
  if (status != TW_OK) return status;
  tw_env env = {c->inputs,
                c->outputs,
                c->arena,
                c->weights,
                c->symbols,
                &c->team,
                c->team.threads,
                manner.asynchronous,
                manner.ns,
                c->devices,
                manner.places,
                &c->error,
                c->runs++,
                (const uint32_t*)&c->running,
                c,
                &c->strings,
                0};
  tw_strings_free(&c->strings, 0);
  c->given = outputs;
  if (manner.asynchronous) {
    status = tw_model->program(&env);
    return status == TW_OK ? tw_devices_status(c->devices) : status;
  }
  tw_team_begin(&c->team);
  status = tw_model->program(&env);
  tw_team_end(&c->team);
  tw_status devices = tw_devices_finish(c->devices);
  if (status == TW_OK) status = devices;
  c->has_run = status == TW_OK;
  return status;
}

static tw_status run_with(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs,
                          tw_manner manner) {
  if (!c) return TW_E_ARGUMENT;
  if (!begin_call(c)) return TW_E_BUSY;
  tw_status status;
  if ((!inputs && tw_model->input_count) || (!outputs && tw_model->output_count)) {
    text_clear(&c->error);
    text_add(&c->error, inputs || !tw_model->input_count ? "outputs is null" : "inputs is null");
    status = TW_E_ARGUMENT;
  } else {
    status = manner.strides ? tw_views_begin(c, &inputs, &outputs, manner.strides) : TW_OK;
    if (status == TW_OK) status = run_verified(c, inputs, outputs, manner);
    if (status == TW_OK && manner.strides) tw_views_end(c->views);
  }
  if (status == TW_E_CANCELLED) {
    text_clear(&c->error);
    text_add(&c->error, "cancel ended the run");
  }
  end_call(c);
  return status;
}

void tw_called(const tw_env* env, int32_t call, uint64_t begin_ns, uint64_t end_ns) {
  const tw_profiler* profiler = &env->context->profiler;
  env->call_ns[call] = end_ns - begin_ns;
  if (profiler->on_call) profiler->on_call(profiler->arg, call, begin_ns, end_ns);
}

static tw_status run(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs) {
  return run_with(c, inputs, outputs, (tw_manner){c ? c->call_ns : 0, 0, 0, 0});
}

static tw_status run_views(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs,
                           const int64_t* const* strides) {
  return run_with(c, inputs, outputs, (tw_manner){c ? c->call_ns : 0, 0, 0, strides});
}

static tw_status profile(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs,
                         uint64_t* ns) {
  if (!ns) return TW_E_ARGUMENT;
  return run_with(c, inputs, outputs, (tw_manner){ns, 0, 0, 0});
}

static tw_status run_async(tw_context* c, const tw_tensor* inputs, const tw_tensor* outputs,
                           const uint8_t* places) {
  return run_with(c, inputs, outputs, (tw_manner){0, 1, places, 0});
}

static tw_status wait(tw_context* c) {
  if (!c) return TW_E_ARGUMENT;
  if (!begin_call(c)) return TW_E_BUSY;
  tw_status status = tw_devices_finish(c->devices);
  end_call(c);
  return status;
}

static const char* status_text(tw_status status) {
  switch ((int)status) {
    case TW_OK: return "success";
    case TW_E_VERSION: return "the library does not serve this ABI version";
    case TW_E_CPU:
      return "the processor lacks an instruction set that the library was compiled for";
    case TW_E_ARGUMENT: return "a null pointer, a wrong option or a misaligned buffer";
    case TW_E_DTYPE: return "a tensor has the wrong element type";
    case TW_E_SHAPE: return "a tensor has the wrong shape";
    case TW_E_SIZE: return "a buffer is too small";
    case TW_E_MEMORY: return "memory or threads could not be had";
    case TW_E_BUSY: return "the context is running already";
    case TW_E_DEVICE: return "a device or its driver is missing or failed";
    case TW_E_DAMAGED:
      return "the library's bytes, or those of its weights, are not those that were written";
    case TW_E_UNSUPPORTED: return "the model cannot do that";
    case TW_E_CANCELLED: return "the run was cancelled";
    default: return "unknown status";
  }
}

static const char* last_error(const tw_context* c) {
  return c ? c->error_data : last_create_error();
}

static tw_status device_stats(const tw_context* c, int32_t device, tw_device_stats* stats) {
  if (!c || !stats || device < 0 || (uint64_t)device >= tw_model->device_count)
    return TW_E_ARGUMENT;
  *stats = c->devices[device].stats;
  return TW_OK;
}

static tw_status output_of_run(tw_context* c, int32_t i, int64_t* dims, void** data) {
  if (!c || !dims || i < 0 || i >= tw_model->output_count) return TW_E_ARGUMENT;
  if (!begin_call(c)) return TW_E_BUSY;
  tw_status status = TW_E_ARGUMENT;
  if (c->has_run) {
    tw_model->output_dims_of_run(i, c->symbols, dims);
    if (data) *data = c->outputs[i];
    status = TW_OK;
  } else {
    text_clear(&c->error);
    text_add(&c->error, "no run of this context has made outputs");
  }
  end_call(c);
  return status;
}

static tw_api g_api;
static _Atomic uint32_t g_api_lock, g_api_filled;

static void choose_model(void) {
  const tw_model_desc* const* model = tw_models;
  while (model[1] && !tw_cpu_has_all((*model)->cpu_features)) ++model;
  tw_model = *model;
}

static void fill_api(void) {
  choose_model();
  g_api.version = TW_ABI_VERSION;
  g_api.size = sizeof g_api;
  g_api.name = tw_model->name;
  g_api.target = tw_model->target;
  g_api.manifest = tw_model->manifest;
  g_api.input_count = tw_model->input_count;
  g_api.output_count = tw_model->output_count;
  g_api.symbol_count = tw_model->symbol_count;
  g_api.inputs = tw_model->inputs;
  g_api.outputs = tw_model->outputs;
  g_api.symbols = tw_model->symbols;
  g_api.weight_bytes = tw_model->weight_bytes;
  g_api.check_cpu = check_cpu;
  g_api.arena_bytes = tw_model->arena_bytes;
  g_api.input_dims = tw_model->input_dims;
  g_api.output_dims = tw_model->output_dims;
  g_api.create = create;
  g_api.destroy = destroy;
  g_api.run = run;
  g_api.status_text = status_text;
  g_api.last_error = last_error;
  g_api.call_count = tw_model->call_count;
  g_api.profile = profile;
  g_api.run_async = run_async;
  g_api.wait = wait;
  g_api.device_count = (int32_t)tw_model->device_count;
  g_api.device_stats = device_stats;
  g_api.output_of_run = output_of_run;
  g_api.check_integrity = tw_check_integrity;
  g_api.cancel = cancel;
  g_api.run_views = run_views;
}

const tw_api* tw_serve(uint32_t version) {
  if (version != TW_ABI_VERSION) return 0;
  if (!TW_LOAD(&g_api_filled, ACQUIRE)) {
    tw_lock(&g_api_lock);
    if (!TW_LOAD(&g_api_filled, RELAXED)) fill_api();
    TW_STORE(&g_api_filled, 1, RELEASE);
    tw_unlock(&g_api_lock);
  }
  return &g_api;
}
