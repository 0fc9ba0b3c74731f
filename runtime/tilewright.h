/* The C interface of every library that Tilewright writes (ABI 1). It is C99 and includes no other
 * header of the project.
 *
 *   const tw_api* api = tw_digits_query(TW_ABI_VERSION);  // one exported function a model
 *   tw_context* c;
 *   if (api->create(NULL, &c) != TW_OK) ...
 *   api->run(c, inputs, outputs);  // no allocation, no lock; one run at a time per context
 *   api->destroy(c);
 *
 * Licence: Apache-2.0 with the LLVM exception: code built from this header or linked from it
 * carries no notice. */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TW_ABI_VERSION 1u

#ifndef TILEWRIGHT_STATUS
#define TILEWRIGHT_STATUS
typedef enum tw_status {
  TW_OK = 0,
  TW_E_VERSION = 1,  /* the library does not serve the caller's ABI version */
  TW_E_CPU = 2,      /* the processor lacks an instruction set that the code was compiled for */
  TW_E_ARGUMENT = 3, /* a null pointer, a wrong count, a misaligned arena */
  TW_E_DTYPE = 4,    /* a tensor's element type is not the model's */
  TW_E_SHAPE = 5,    /* a tensor's rank or a dimension is not the model's */
  TW_E_SIZE = 6, /* a buffer is smaller than its shape needs, or the caller's arena than the run */
  TW_E_MEMORY = 7, /* no memory, or no thread, was to be had */
  TW_E_BUSY = 8,   /* a second run on a context that is running */
  TW_E_DEVICE = 9, /* a device or its driver is missing or failed; last_error says which and how */
  TW_E_UNSUPPORTED = 10, /* this model cannot do it; last_error says why */
  TW_E_DAMAGED = 11,     /* check_integrity: the library's bytes are not those that were written */
  TW_E_CANCELLED = 12    /* cancel ended the run; its outputs are undefined */
} tw_status;
#endif /* TILEWRIGHT_STATUS */

/* Element types; the numbers are ONNX's TensorProto.DataType. */
typedef enum tw_dtype {
  TW_F32 = 1,
  TW_U8 = 2,
  TW_I8 = 3,
  TW_U16 = 4,
  TW_I16 = 5,
  TW_I32 = 6,
  TW_I64 = 7,
  TW_STRING = 8, /* an element is a tw_string: UTF-8 that ends with a zero byte; NULL is the empty
                    string. Strings of outputs may be those of the inputs: they stay until the
                    context's next run, or as long as the inputs' strings do */
  TW_BOOL = 9,
  TW_F16 = 10,
  TW_F64 = 11,
  TW_U32 = 12,
  TW_U64 = 13,
  TW_BF16 = 16,
  /* An element of these types takes a byte, even where the type is narrower. Reading looks at the
     low bits only; writing zero- or sign-extends. */
  TW_F8E4M3FN = 17,
  TW_F8E4M3FNUZ = 18,
  TW_F8E5M2 = 19,
  TW_F8E5M2FNUZ = 20,
  TW_U4 = 21,
  TW_I4 = 22,
  TW_F4E2M1 = 23,
  TW_F8E8M0 = 24,
  TW_U2 = 25,
  TW_I2 = 26
} tw_dtype;

/* An element of TW_STRING, 8 bytes on every machine */
#if UINTPTR_MAX == UINT64_MAX
typedef const char* tw_string;
#else
typedef union tw_string {
  const char* text;
  uint64_t slot;
} tw_string;
#endif

/* A dense row-major tensor. data must be aligned to its element size; 64 bytes is fastest. */
typedef struct tw_tensor {
  void* data;
  uint64_t bytes; /* size of the buffer behind data */
  int32_t dtype;  /* tw_dtype */
  int32_t rank;
  const int64_t* dims; /* rank extents; NULL in an output: the model's shape is taken */
} tw_tensor;

/* Name, type and shape of an input or output. dims[i] >= 0 is an extent. dims[i] = -1 - k is symbol
 * k of the model, which the inputs of a run bind. TW_DIM_COMPUTED stands for an expression of
 * symbols, which input_dims and output_dims evaluate. */
#define TW_DIM_COMPUTED INT64_MIN
typedef struct tw_tensor_info {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
} tw_tensor_info;

/* Runs fn(arg, i) for i in 0..count-1, on any threads, and returns when all are done. */
typedef struct tw_parallel {
  void (*parallel_for)(void* pool, void (*fn)(void* arg, int32_t index), void* arg, int32_t count);
  void* pool;
  int32_t threads; /* threads at once: the code splits its work accordingly */
} tw_parallel;

/* A queue of the caller's on the device that the model runs on */
typedef struct tw_queue {
  const char*
      driver; /* the kind of `handle`: "cuda": a CUstream of the primary context of device 0 (NULL:
                 its default stream); "opencl": a cl_command_queue that runs in order */
  void* handle;
} tw_queue;

/* on_call is called after each kernel call of a run, on the thread that runs, with times of
 * CLOCK_MONOTONIC in nanoseconds. `call` is an index into the manifest's list of calls. */
typedef struct tw_profiler {
  void (*on_call)(void* arg, int32_t call, uint64_t begin_ns, uint64_t end_ns);
  void* arg;
} tw_profiler;

typedef struct tw_options {
  uint32_t size;   /* sizeof(tw_options): later versions may append fields */
  int32_t threads; /* 0: as many as the affinity mask and the cgroup quota allow; 1: the caller's
                      thread only */
  const tw_parallel* parallel; /* the caller's own pool; NULL: the library's */
  void* arena; /* working memory, 64-byte aligned, of arena_bytes(symbols); NULL: the context maps
                  its own */
  uint64_t arena_bytes;
  const int64_t* symbols; /* the largest sizes of the model's symbols that this context will see;
                             NULL: the first run decides. The context's own arena grows when a run
                             needs more; only then does a run allocate */
  const tw_queue*
      queue; /* the queue for this context's runs, in order with other work on it; for models with
                one device. The handle lives as long as the context. NULL: a queue of the context's
                own */
  const char* weights; /* path of the weights, for a library with weights in a file of their own;
                          NULL: the file beside the library */
  const tw_profiler* profiler; /* called for every kernel call of this context's runs; NULL: no
                                  clock is read */
} tw_options;

enum { TW_HOST = 0, TW_DEVICE = 1 }; /* places of a tensor of run_async */

typedef struct tw_context tw_context;

/* Counts of a device in a context's last run; 0 where the driver does not count */
typedef struct tw_device_stats {
  uint64_t launches;
  uint64_t cycles;                    /* clock cycles in launches */
  uint64_t busy_cycles;               /* cycles in which its arithmetic worked */
  uint64_t read_bytes, written_bytes; /* bytes moved from and to its memory */
} tw_device_stats;

typedef struct tw_api {
  uint32_t version, size; /* TW_ABI_VERSION, sizeof(tw_api) */
  const char* name;
  const char* target;   /* name of the target description */
  const char* manifest; /* JSON: hashes, options, schedules, kernels */
  int32_t input_count, output_count, symbol_count;
  const tw_tensor_info* inputs;
  const tw_tensor_info* outputs;
  const char* const* symbols;
  uint64_t weight_bytes;
  tw_status (*check_cpu)(void);
  /* The bytes of arena that a run with these symbol values needs. symbols may be NULL when
   * symbol_count is 0. */
  uint64_t (*arena_bytes)(const int64_t* symbols);
  /* Write the extents of input or output i, `rank` of them, for these symbol values. */
  void (*input_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  void (*output_dims)(int32_t i, const int64_t* symbols, int64_t* dims);
  tw_status (*create)(const tw_options* options, tw_context** context);
  void (*destroy)(tw_context* context);
  tw_status (*run)(tw_context* context, const tw_tensor* inputs, const tw_tensor* outputs);
  const char* (*status_text)(tw_status status);
  /* The text of the last failed call on this context: "input 0 (image): dim 2 is 3, expected 28".
   * With NULL: why this thread's last failed create found sizes or a device unfit. */
  const char* (*last_error)(const tw_context* context);
  /* Runs with a clock: ns[k] gets the nanoseconds of kernel call k. There are call_count calls, and
   * the manifest names them. */
  int32_t call_count;
  tw_status (*profile)(tw_context* context, const tw_tensor* inputs, const tw_tensor* outputs,
                       uint64_t* ns);
  /* All members from here on exist only when `size` covers them. run_async puts a run on the
   * context's queue and returns. It works for models that run whole on one device; for others it
   * returns TW_E_UNSUPPORTED and puts nothing there. places[i], inputs first, then outputs, says
   * where data lies. TW_HOST is the processor's memory. TW_DEVICE is the device's memory, as a
   * CUdeviceptr or a cl_mem. NULL: all are TW_DEVICE. All that memory must stay as it is until the
   * queue is past the run. Failures that show only then are the queue's; `wait` reports them,
   * too. */
  tw_status (*run_async)(tw_context* context, const tw_tensor* inputs, const tw_tensor* outputs,
                         const uint8_t* places);
  tw_status (*wait)(tw_context* context); /* returns when all work on the context's queue is done */
  /* Devices beside the processor, in the manifest's order */
  int32_t device_count;
  tw_status (*device_stats)(const tw_context* context, int32_t device, tw_device_stats* stats);
  /* When data decide the size of an output, output_dims gives -1 for its dims. `run` then takes a
   * tensor whose dims may be NULL. Its memory is the caller's, of `bytes` (TW_E_SIZE when they are
   * too few), or the library's own when data is NULL. After a run, output_of_run gives the extents
   * of output i and, with `data` not NULL, its address. The library's memory is valid until the
   * next run. */
  tw_status (*output_of_run)(tw_context* context, int32_t i, int64_t* dims, void** data);
  /* Tells if code, constants, manifest and weights, as they are mapped here, are the bytes that the
   * compiler wrote. TW_OK: they are. TW_E_DAMAGED: they are not. TW_E_MEMORY: there was no file
   * descriptor for the check. TW_E_UNSUPPORTED: the model is an object in a program, which has no
   * hash. It reads all of the bytes, and nothing else calls it. */
  tw_status (*check_integrity)(void);
  /* May be called from any thread while the context exists. The run in progress on it ends with
   * TW_E_CANCELLED before its next kernel call; a run with no call left is not stopped. Without a
   * run in progress nothing happens, and the next run is not affected. */
  tw_status (*cancel)(tw_context* context);
  /* Works as `run`, on tensors that may be views. strides[i], inputs first, then outputs, has the
   * distance of neighbours in each dimension of tensor i, in bytes; NULL: it is dense. The element
   * with all indices 0 is at data, and `bytes` reaches from there to the last element. Strides of
   * inputs may be 0, and none is negative; elements of an output do not overlap. A view that is
   * dense costs nothing. Other views are copied, inputs before the run and outputs after it,
   * through memory that the context keeps. Outputs whose size data decide must be dense. */
  tw_status (*run_views)(tw_context* context, const tw_tensor* inputs, const tw_tensor* outputs,
                         const int64_t* const* strides);
} tw_api;

typedef const tw_api* (*tw_query_fn)(uint32_t version); /* NULL when the version is not served */
/* Every library exports this name beside its tw_<name>_query, for dlsym in programs that do not
 * know the model's name. Both are the same function. */
#define TW_QUERY_SYMBOL "tw_query"

#ifdef __cplusplus
}
#endif
#endif
