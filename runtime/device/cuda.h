/* The part of NVIDIA's driver API that the runtime uses, and the state of a device. Signatures,
 * structures and numbers are those of CUDA 12. */
#ifndef TW_CUDA_H
#define TW_CUDA_H
#include "device.h"

typedef int32_t cu_code;
typedef void* cu_object; /* contexts, modules, functions, streams, graphs */
typedef uint64_t cu_address;
enum {
  kCuVersion = 12000,
  kCuMajor = 75,
  kCuMinor = 76,
  kCuNonBlocking = 1,
  kCuMostArguments = 512,
  kCuMostChains = 512,
  kCuMostWaiting = 1 << 13, /* words of one chain: some 600 launches */
  kCuChainWords = 1 << 18   /* words of all chains */
};

typedef struct cu_launch { /* CUDA_KERNEL_NODE_PARAMS_v2 */
  cu_object function;
  uint32_t grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  cu_object kernel, context;
} cu_launch;

typedef struct cu_functions {
  cu_code (*init)(uint32_t flags);
  cu_code (*device)(int32_t* device, int32_t ordinal);
  cu_code (*attribute)(int32_t* value, int32_t which, int32_t device);
  cu_code (*retain)(cu_object* context, int32_t device);
  cu_code (*release)(int32_t device);
  cu_code (*push)(cu_object context);
  cu_code (*pop)(cu_object* context);
  cu_code (*load)(cu_object* module, const void* image);
  cu_code (*unload)(cu_object module);
  cu_code (*function)(cu_object* function, cu_object module, const char* name);
  cu_code (*allocate)(cu_address* at, size_t bytes);
  cu_code (*free)(cu_address at);
  cu_code (*write)(cu_address to, const void* from, size_t bytes, cu_object stream);
  cu_code (*read)(void* to, cu_address from, size_t bytes, cu_object stream);
  cu_code (*copy)(cu_address to, cu_address from, size_t bytes, cu_object stream);
  cu_code (*stream)(cu_object* stream, uint32_t flags);
  cu_code (*close_stream)(cu_object stream);
  cu_code (*stream_context)(cu_object stream, cu_object* context);
  cu_code (*wait)(cu_object stream);
  cu_code (*launch)(cu_object function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                    uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                    cu_object stream, void** parameters, void** extra);
  cu_code (*graph)(cu_object* graph, uint32_t flags);
  cu_code (*add_launch)(cu_object* node, cu_object graph, const cu_object* after, size_t count,
                        const cu_launch* launch);
  cu_code (*close_graph)(cu_object graph);
  cu_code (*executable)(cu_object* executable, cu_object graph, uint64_t flags);
  cu_code (*close_executable)(cu_object executable);
  cu_code (*replay)(cu_object executable, cu_object stream);
  cu_code (*words)(cu_code code, const char** text);
} cu_functions;

/* Names in the order of cu_functions, which contains nothing but pointers. */
static const char* const kCuNames[] = {"cuInit",
                                       "cuDeviceGet",
                                       "cuDeviceGetAttribute",
                                       "cuDevicePrimaryCtxRetain",
                                       "cuDevicePrimaryCtxRelease",
                                       "cuCtxPushCurrent",
                                       "cuCtxPopCurrent",
                                       "cuModuleLoadData",
                                       "cuModuleUnload",
                                       "cuModuleGetFunction",
                                       "cuMemAlloc",
                                       "cuMemFree",
                                       "cuMemcpyHtoDAsync",
                                       "cuMemcpyDtoHAsync",
                                       "cuMemcpyDtoDAsync",
                                       "cuStreamCreate",
                                       "cuStreamDestroy",
                                       "cuStreamGetCtx",
                                       "cuStreamSynchronize",
                                       "cuLaunchKernel",
                                       "cuGraphCreate",
                                       "cuGraphAddKernelNode",
                                       "cuGraphDestroy",
                                       "cuGraphInstantiateWithFlags",
                                       "cuGraphExecDestroy",
                                       "cuGraphLaunch",
                                       "cuGetErrorString"};
_Static_assert(sizeof(cu_functions) == sizeof kCuNames, "a name for every function");

/* Successive launches with nothing else between them. While they are recorded they form a graph;
 * from the next run on the executable made from it runs. */
typedef struct cu_segment {
  cu_object graph, last, executable; /* last: the last node of the graph */
} cu_segment;

/* A launch of a region, with its arguments behind it; a chain is a row of these (cuda_chains.c).
 * first and words count in chain_memory. Only a chain that was launched twice has an executable. */
typedef struct cu_chain_launch {
  uint32_t index, reserved, grid[3], block[3];
  uint64_t count, values[];
} cu_chain_launch;
typedef struct cu_chain {
  uint64_t hash;
  cu_object executable;
  uint32_t first, words, launches;
} cu_chain;

enum { kCuPlain, kCuRecord, kCuReplay };

typedef struct cu_state {
  cu_functions f;
  int32_t device, retained, entered; /* entered: the stream exists */
  int32_t stream_is_ours;
  cu_object context, stream;
  cu_address arena, weights;
  cu_object *functions, *modules; /* for each of desc->launches; a module is at its first launch */
  cu_segment* segments;           /* room for one a call */
  int64_t* symbols;               /* symbols of the recorded run */
  int32_t mode, recorded; /* mode of this run; recorded: the segments are those of a whole run */
  int32_t inside;         /* the last operation was a launch */
  uint64_t segment_count, next; /* next: the segment to replay */
  cu_chain* chains;
  uint64_t *chain_memory, *waiting; /* waiting: launches of a region that are not made yet */
  uint32_t chain_count, chain_words, chain_next;
  uint32_t chains_full, chains_useful; /* this run: no room for a chain; a chain kept or replayed */
  uint32_t waiting_launches, waiting_words;
  uint64_t waiting_hash;
} cu_state;

static tw_status cuda_failed(tw_device* d, const char* what, const char* which, cu_code code) {
  cu_state* s = d->state;
  const char* words = 0;
  const int first = d->status == TW_OK;
  tw_device_failed(d, what, which, code);
  s->recorded = 0;
  if (first && s->f.words && !s->f.words(code, &words) && words) {
    text_add(d->error, " (");
    text_add(d->error, words);
    text_add(d->error, ")");
  }
  return d->status;
}

/* The device's context is current between cuda_enter and cuda_leave, which brings the caller's
 * context back. */
static tw_status cuda_enter(tw_device* d) {
  cu_state* s = d->state;
  cu_code code = s->f.push(s->context);
  return code ? cuda_failed(d, "the GPU's context is not taken", "", code) : TW_OK;
}
static void cuda_leave(tw_device* d) {
  cu_state* s = d->state;
  cu_object popped;
  s->f.pop(&popped);
}

/* For cuda_open.c and cuda.c: drop the recorded graphs, begin a run, and record a launch of this
 * run with the context current. */
static void cuda_forget(cu_state* s);
static tw_status cuda_begin(tw_device* d, const int64_t* symbols, int32_t plain);
static tw_status cuda_record(tw_device* d, const cu_launch* launch);
/* Chains of regions: drop all chains, drop the waiting launches, or launch these with the context
 * current. */
static void cuda_forget_chains(cu_state* s);
static void cuda_drop_waiting(cu_state* s);
static tw_status cuda_launch_waiting(tw_device* d);

/* Enters for an operation that keeps the order of the run: makes the context current and launches
 * what a region left waiting. */
static tw_status cuda_enter_in_order(tw_device* d) {
  tw_status status = cuda_enter(d);
  if (status != TW_OK) return status;
  status = cuda_launch_waiting(d);
  if (status != TW_OK) cuda_leave(d);
  return status;
}
#endif
