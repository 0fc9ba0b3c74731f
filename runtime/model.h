/* The interface between generated code and the runtime. The backend builds the list tw_models, the
 * descriptions in it, the functions that they name and the exported query function, and it calls
 * the functions below. The packager adds tw_hashes, tw_manifest and tw_weights_offset. Everything
 * else is the runtime's. */
#ifndef TW_MODEL_H
#define TW_MODEL_H
#include "tilewright.h"

/* The state of a context. The program of a cancelled run ends before its next call. */
enum tw_run_state { TW_RUN_NONE = 0, TW_RUN_GOING = 1, TW_RUN_CANCELLED = 2 };

typedef struct tw_env {
  void* const* inputs; /* one pointer for each input, verified */
  void* const* outputs;
  uint8_t* arena;
  const uint8_t* weights;
  const int64_t* symbols;
  void* pool; /* pool for tw_parallel_for */
  int32_t threads;
  int32_t asynchronous; /* 1: nothing waits for a device */
  uint64_t* call_ns;    /* nanoseconds of each kernel call (tw_called); NULL: no clock is read */
  struct tw_device* devices; /* one for each of tw_model.devices */
  const uint8_t* places;     /* asynchronous: TW_HOST or TW_DEVICE for each input, then each output;
                                NULL: all TW_DEVICE */
  struct tw_text* error;     /* text of the context: why the program ends the run */
  uint64_t run;              /* runs of the context before this one */
  const uint32_t* state;     /* the context's tw_run_state; another thread may change it */
  struct tw_context* context;
  struct tw_strings* strings; /* memory of the strings that the run makes */
  const int64_t* workspaces;  /* in a region: where its part of each device's arena begins; NULL:
                                 the model's own program, which has the whole arena */
} tw_env;

/* A device beside the processor: its driver, its code in the form that the driver reads, and its
 * launches. */
typedef struct tw_launch_desc {
  const char* function;
  int32_t buffer_count, symbol_count;
} tw_launch_desc;
typedef struct tw_device_desc {
  const struct tw_driver* driver;
  const char* name;
  const char* code;
  uint64_t code_bytes;
  const tw_launch_desc* launches;
  uint64_t launch_count;
  uint64_t weights_offset, weight_bytes; /* the device's stretch of the weights */
  uint64_t (*arena_bytes)(const int64_t* symbols);
} tw_device_desc;

typedef struct tw_model_desc {
  const char* name;
  const char* target;
  const char* manifest;
  int32_t input_count, output_count, symbol_count, call_count;
  const tw_tensor_info* inputs;
  const tw_tensor_info* outputs;
  const char* const* symbols;
  uint64_t weight_bytes;
  const char*
      cpu_features; /* the features that check_cpu asks for, by LLVM's names; "" for the baseline */
  int32_t (*program)(const tw_env* env); /* runs the model; TW_OK, or the status that ended it */
  uint64_t (*arena_bytes)(const int64_t* symbols); /* UINT64_MAX: more than can be counted */
  void (*output_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  void (*input_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  const tw_device_desc* devices;
  uint64_t device_count;
  uint64_t host_calls;       /* kernels and copies by way of the processor's arena, which need the
                          processor between the devices' work */
  int32_t data_symbol_count; /* symbols read in a run; their values follow the others */
  int32_t growable_count;    /* buffers that grow from run to run */
  const int64_t* symbol_limits; /* smallest and largest value of each symbol of the inputs */
  void (*output_dims_of_run)(
      int32_t i, const int64_t* symbols,
      int64_t* dims); /* takes all symbols; output_dims gives -1 where data decide */
  const char* (*misfit)(const int64_t* symbols); /* the condition that these sizes break, NULL for
                                                    none; the pointer itself is NULL where all sizes
                                                    within the limits fit */
  const char* weights_file; /* file beside the library (weights.h); NULL: the weights are inside */
} tw_model_desc;

/* The programs of the library, ending with NULL; the one for the most general processor is the
 * last. tw_model is the program that runs here: the first whose instructions the processor has, or
 * else the last. tw_serve chooses it before anything else can be called. */
extern const tw_model_desc* const tw_models[] __attribute__((visibility("hidden")));
extern const tw_model_desc* tw_model __attribute__((visibility("hidden")));
/* The packager's own object defines these (packager/data_object.h), which spares generated code any
 * relocation to the weights. */
extern const int64_t tw_weights_offset
    __attribute__((visibility("hidden"))); /* &weights - &tw_weights_offset */
enum {
  TW_HASHES_BYTES = 64
}; /* hashes of the mapped read-only segments and of the whole file: packager/integrity.h */
extern const uint8_t tw_hashes[TW_HASHES_BYTES] __attribute__((visibility("hidden")));
extern const char tw_manifest[]
    __attribute__((visibility("hidden"))); /* tw_model.manifest should point to it */

/* Generated code calls this, from the program's thread only. It runs fn(arg, part, chunk) for chunk
 * in 0..chunks-1, on as many threads as there are parts. `part`, below parts, is the thread's own:
 * no two run as the same part at once. A part has chunks / parts neighbours, of which other threads
 * take what it has left when they have no more of their own. With parts <= 1, with one thread, and
 * inside fn it is a plain loop. fn may use 64 KiB of stack (musl's threads have 128). */
void tw_parallel_for(const tw_env* env, void (*fn)(void* arg, int32_t part, int32_t chunk),
                     void* arg, int32_t parts, int32_t chunks);
uint64_t tw_clock_ns(void); /* CLOCK_MONOTONIC, by syscall */
/* Generated code calls this behind each call of a run with env->call_ns. It stores the call's
 * nanoseconds there and tells the context's profiler. */
void tw_called(const tw_env* env, int32_t call, uint64_t begin_ns, uint64_t end_ns);

/* Generated code calls these, in the order of the calls. A failure ends the device's part of the
 * run and is the run's result. The arguments of a launch are: groups in x, y, z; work-items of a
 * group in x, y, z; for each buffer its place (0: the device's arena, 1: its weights) and the byte
 * offset there; the symbols. */
void tw_device_launch(const tw_env* env, int32_t device, int32_t launch, const int64_t* arguments);
/* Copies into the device's arena and out of it. The other side lies in the data of a tensor:
 * `tensor` is 1 + the number of the input or output (outputs are counted behind the inputs), or 0
 * for neither. */
void tw_device_write(const tw_env* env, int32_t device, int64_t at, const void* from, int64_t bytes,
                     int32_t tensor);
void tw_device_read(const tw_env* env, int32_t device, int64_t at, void* to, int64_t bytes,
                    int32_t tensor);
void tw_device_wait(const tw_env* env,
                    int32_t device); /* so that a profile's calls end where they are timed */
/* Copies within the device to its arena; `weights`: from its weights, else from its arena. */
void tw_device_move(const tw_env* env, int32_t device, int64_t to, int64_t from, int64_t bytes,
                    int32_t weights);
/* Generated code calls tw_device_regions before a decision about regions: launches before it and
 * behind the regions do not belong together. It calls tw_device_region_ends at a region's end;
 * `sent`: the device may still read memory that the next iteration overwrites. Both return the
 * device's failure, as no decision may rest on data that the device failed to send. */
int32_t tw_device_regions(const tw_env* env, int32_t device);
int32_t tw_device_region_ends(const tw_env* env, int32_t device, int32_t sent);

/* Generated code of models with sizes made from data calls these. A status other than TW_OK ends
 * the run (runtime/sizes.c, runtime/indices.c). Numbers of bytes are -1 where they cannot be
 * counted. tw_symbol stores `value` in *place and checks that it is in [0, most] and, unless
 * `exact` is -1, equal to it. tw_grow gives memory of `bytes` for growable buffer `index`. Indices
 * behind the growable buffers are those of the outputs, which take the caller's memory where there
 * is some. tw_require fails unless `holds`; its message has `left` and `right` where they
 * differ. */
int32_t tw_symbol(const tw_env* env, int64_t* place, int64_t value, int64_t most, int64_t exact,
                  const char* what);
int32_t tw_require(const tw_env* env, int32_t holds, int64_t left, int64_t right, const char* what);
int32_t tw_grow(const tw_env* env, int32_t index, int64_t bytes, void** memory);
/* Checks that signed integers of `width` bytes (4 or 8) lie in [least, most], or that bools (1) are
 * true. */
int32_t tw_look(const tw_env* env, const void* elements, int32_t width, int64_t bytes,
                int64_t least, int64_t most, const char* what);

/* The body of the exported functions tw_<name>_query and tw_query (TW_QUERY_SYMBOL), which
 * generated code defines. */
const tw_api* tw_serve(uint32_t version);
#endif
