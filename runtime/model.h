/* What generated code and the runtime know of each other. The backend builds the
 * list tw_models, the descriptions in it, the functions that they name and the exported query
 * function, and calls tw_parallel_for; the packager adds tw_manifest and tw_weights_offset; everything else is
 * the runtime's. */
#ifndef TW_MODEL_H
#define TW_MODEL_H
#include "tilewright.h"

/* Whether a context runs; of a cancelled run the program ends in front of its next call. */
enum tw_run_state { TW_RUN_NONE = 0, TW_RUN_GOING = 1, TW_RUN_CANCELLED = 2 };

typedef struct tw_env {
  void* const* inputs; /* one pointer an input, verified */
  void* const* outputs;
  uint8_t* arena;
  const uint8_t* weights;
  const int64_t* symbols;
  void* pool; /* of tw_parallel_for */
  int32_t threads;
  int32_t asynchronous;      /* nothing waits for a device */
  uint64_t* call_ns;         /* with a clock, else NULL: of each kernel call (tw_called) */
  struct tw_device* devices; /* of tw_model.devices */
  const uint8_t* places;     /* asynchronous: TW_HOST or TW_DEVICE, of the inputs, then the outputs;
                                NULL: all TW_DEVICE */
  struct tw_text* error;     /* of the context: why the program ends the run */
  uint64_t run;              /* how many runs the context has begun before this one */
  const uint32_t* state;     /* tw_run_state of the context; another thread may change it */
  struct tw_context* context;
  struct tw_strings* strings; /* that the run makes */
  const int64_t* workspaces;  /* of a region: where what it has of each device's arena begins; NULL:
                                 the model's own program, which has all of it */
} tw_env;

/* A device beside the processor: its driver, its code in the form that the driver reads, what can
 * be launched. */
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
  uint64_t weights_offset, weight_bytes; /* of its stretch of the weights */
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
      cpu_features; /* "avx2,fma,...": what check_cpu asks for, LLVM's names; "" for the baseline */
  int32_t (*program)(const tw_env* env); /* the whole model; TW_OK, or the status that ended it */
  uint64_t (*arena_bytes)(const int64_t* symbols); /* UINT64_MAX: more than can be counted */
  void (*output_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  void (*input_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  const tw_device_desc* devices;
  uint64_t device_count;
  uint64_t host_calls; /* that need the processor between what devices do: its kernels, and copies
                          by way of its arena */
  int32_t data_symbol_count;    /* read while the model runs; their values are behind the others */
  int32_t growable_count;       /* memory that grows from run to run */
  const int64_t* symbol_limits; /* smallest and largest value of each symbol of the inputs */
  void (*output_dims_of_run)(
      int32_t i, const int64_t* symbols,
      int64_t* dims); /* of all symbols; output_dims gives -1 for what the data decide */
  const char* (*misfit)(const int64_t* symbols); /* what these sizes break, NULL for nothing; itself
                                                    NULL: all sizes within the limits fit */
  const char* weights_file; /* its name beside the library (weights.h); NULL: they are inside */
} tw_model_desc;

/* The programs of the library, the one for the most general processor last, then NULL; and the one
 * that runs here: the first whose instructions the processor has, else the last. tw_serve chooses
 * before anything else can be called. */
extern const tw_model_desc* const tw_models[] __attribute__((visibility("hidden")));
extern const tw_model_desc* tw_model __attribute__((visibility("hidden")));
/* From the packager's own object (packager/link.h), which spares generated code any relocation to
 * the weights. */
extern const int64_t tw_weights_offset
    __attribute__((visibility("hidden"))); /* &weights - &tw_weights_offset */
enum {
  TW_HASHES_BYTES = 64
}; /* of the mapped read-only segments, then of the whole file: packager/integrity.h */
extern const uint8_t tw_hashes[TW_HASHES_BYTES] __attribute__((visibility("hidden")));
extern const char tw_manifest[]
    __attribute__((visibility("hidden"))); /* what tw_model.manifest should point to */

/* Called by generated code, from the program's thread only. fn(arg, i) for i in 0..count-1; count
 * <= 1 or one thread: a plain loop. A call from inside fn runs as a plain loop too. fn may use 64
 * KiB of stack (musl's threads have 128). */
void tw_parallel_for(const tw_env* env, void (*fn)(void* arg, int32_t index), void* arg,
                     int32_t count);
uint64_t tw_clock_ns(void); /* CLOCK_MONOTONIC, by syscall */
/* Called by generated code behind each call of a run with env->call_ns: stores its nanoseconds
 * there, and tells the context's profiler. */
void tw_called(const tw_env* env, int32_t call, uint64_t begin_ns, uint64_t end_ns);

/* Called by generated code, in the order of the calls; a failure ends the device's part of the run
 * and is the run's result. Arguments of a launch: groups in x, y, z; work-items of a group in x, y,
 * z; for each buffer its place (0: the device's arena, 1: its weights) and byte offset there; the
 * symbols. */
void tw_device_launch(const tw_env* env, int32_t device, int32_t launch, const int64_t* arguments);
/* Copies into its arena and out of it. `tensor`: 0, or 1 + the number of the input or output
 * (counted behind the inputs) in whose data the other side lies. */
void tw_device_write(const tw_env* env, int32_t device, int64_t at, const void* from, int64_t bytes,
                     int32_t tensor);
void tw_device_read(const tw_env* env, int32_t device, int64_t at, void* to, int64_t bytes,
                    int32_t tensor);
void tw_device_wait(const tw_env* env,
                    int32_t device); /* a profile's calls end where they are timed */
/* A copy within its memory; `weights`: from its weights, else from its arena. */
void tw_device_move(const tw_env* env, int32_t device, int64_t to, int64_t from, int64_t bytes,
                    int32_t weights);
/* In front of what decides about regions: what was launched before and what is launched behind them
 * are not of one piece. At a region's end; `sent`: the device may still read what it was sent, which
 * the next iteration overwrites. Both return the device's failure: nothing may be decided by what it
 * should have sent. */
int32_t tw_device_regions(const tw_env* env, int32_t device);
int32_t tw_device_region_ends(const tw_env* env, int32_t device, int32_t sent);

/* Called by generated code of models with sizes made from data; a status other than TW_OK ends the
 * run (runtime/sizes.c, runtime/indices.c). Numbers of bytes are -1 where they cannot be counted.
 * tw_symbol: the symbol kept in *place is `value`, to be in [0, most] and, unless that is -1, `exact`. tw_grow: so
 * many bytes in growable buffer `index`, or, behind those, in output index - growable_count, of which
 * the caller's memory is taken where there is some. tw_require: the message says left and right where they differ. */
int32_t tw_symbol(const tw_env* env, int64_t* place, int64_t value, int64_t most, int64_t exact,
                  const char* what);
int32_t tw_require(const tw_env* env, int32_t holds, int64_t left, int64_t right, const char* what);
int32_t tw_grow(const tw_env* env, int32_t index, int64_t bytes, void** memory);
/* Signed integers of `width` bytes (4 or 8) must lie in [least, most], bools (1) be true. */
int32_t tw_look(const tw_env* env, const void* elements, int32_t width, int64_t bytes,
                int64_t least, int64_t most, const char* what);

/* The body of the exported functions, which generated code defines: tw_<name>_query and tw_query
 * (TW_QUERY_SYMBOL). */
const tw_api* tw_serve(uint32_t version);
#endif
