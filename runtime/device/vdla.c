/* The VDLA, through a library that simulates or drives one (vdla_device.h), found when a context is
 * created. Streams, weights and arena lie in one memory. The address of the device is
 * TILEWRIGHT_DEVICE in the environment, or else the target's: NAME:[FILE][?KEY=NUMBER&...]. */
#include "device.h"
#include "vdla_device.h"

typedef struct vdla_state {
  const tw_vdla_device* table;
  tw_vdla_options options;
  tw_vdla_code code;
  uint8_t* dram;
  uint64_t dram_bytes, weights_at, arena_at;
} vdla_state;

static const char* vdla_address(const vdla_state* s) {
  const char* given = getenv ? getenv("TILEWRIGHT_DEVICE") : 0;
  return given && *given ? given : s->code.address;
}

static uint64_t vdla_aligned(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

/* Opens the library `folder` + `more` + `name`; NULL: there is none. */
static void* vdla_open_in(const char* folder, const char* more, const char* name) {
  char path[512];
  tw_text t = {path, 0, sizeof path};
  text_clear(&t);
  text_add(&t, folder);
  text_add(&t, more);
  text_add(&t, name);
  return dlopen(path, 2 /* RTLD_NOW */);
}

/* The folder of the running program, with its last slash; "" where the system does not tell. */
static void vdla_program_folder(char* folder, size_t capacity) {
  long n = syscall(SYS_readlinkat, -100L, "/proc/self/exe", folder, capacity - 1);
  if (n < 0) n = 0;
  while (n > 0 && folder[n - 1] != '/') --n;
  folder[n] = 0;
}

static tw_status vdla_find(tw_device* d, vdla_state* s, const char* address) {
  char name[128], file[256], folder[400];
  tw_text n = {name, 0, sizeof name}, f = {file, 0, sizeof file};
  text_clear(&n);
  text_clear(&f);
  text_add(&n, "libtilewright_vdla_");
  const char* p = address;
  for (; *p && *p != ':' && *p != '?'; ++p) text_add(&n, (char[2]){*p, 0});
  text_add(&n, ".so");
  if (*p == ':') ++p;
  for (; *p && *p != '?'; ++p) text_add(&f, (char[2]){*p, 0});
  void* library = 0;
  if (file[0]) {
    library = dlopen(file, 2);
    if (!library) return tw_device_failed(d, "cannot open ", file, 0);
  }
  const char* devices = getenv ? getenv("TILEWRIGHT_DEVICE_PATH") : 0;
  if (!library && devices && *devices) library = vdla_open_in(devices, "/", name);
  vdla_program_folder(folder, sizeof folder);
  if (!library) library = vdla_open_in(folder, "", name);
  if (!library) library = vdla_open_in(folder, "../lib/", name);
  if (!library) library = dlopen(name, 2);
  if (!library)
    return tw_device_failed(d,
                            "neither beside the program, nor in the folder "
                            "$TILEWRIGHT_DEVICE_PATH, nor in the system is there a ",
                            name, 0);
  tw_vdla_device_table_fn table = (tw_vdla_device_table_fn)dlsym(library, "tw_vdla_device_table");
  if (!table) return tw_device_failed(d, "this is no VDLA: ", file[0] ? file : name, 0);
  s->table = table();
  if (s->table->abi != TW_VDLA_DEVICE_ABI)
    return tw_device_failed(d, "another version's interface has ", file[0] ? file : name,
                            (int64_t)s->table->abi);
  return TW_OK; /* the library is never closed */
}

/* Reads the part of an address behind its '?'. */
static tw_status vdla_options(tw_device* d, vdla_state* s, const char* address) {
  tw_vdla_options* o = &s->options;
  const struct {
    const char* key;
    uint32_t* value;
  } known[] = {{"latency", &o->latency},
               {"bytes", &o->bytes_per_cycle},
               {"jitter", &o->jitter},
               {"seed", &o->seed},
               {"races", &o->check_races}};
  *o = (tw_vdla_options){s->code.latency,  s->code.bytes_per_cycle, 0, 1, 20000, 0,
                         (uint64_t)1 << 40};
  const char* p = address;
  while (*p && *p != '?') ++p;
  while (*p) {
    char key[32];
    tw_text k = {key, 0, sizeof key};
    text_clear(&k);
    for (++p; *p && *p != '='; ++p) text_add(&k, (char[2]){*p, 0});
    uint32_t value = 0;
    if (*p) ++p;
    for (; *p >= '0' && *p <= '9'; ++p) value = value * 10 + (uint32_t)(*p - '0');
    int found = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
      if (text_same(known[i].key, key)) *known[i].value = value, found = 1;
    if (!found || (*p && *p != '&'))
      return tw_device_failed(
          d, "its address takes latency, bytes, jitter, seed, races as numbers, not ", address, 0);
  }
  return TW_OK;
}

static void vdla_add_config(tw_text* t, const tw_vdla_config* c) {
  static const char* const kNames[] = {"x",     " bus ", " inp ",   " wgt ",
                                       " acc ", " prm ", " queue ", " lanes "};
  const uint32_t* values = &c->block_in;
  for (size_t i = 0; i < 9; ++i) {
    if (i) text_add(t, kNames[i - 1]);
    text_add_number(t, values[i]);
  }
}

static tw_status vdla_same_config(tw_device* d, vdla_state* s) {
  tw_vdla_config there;
  s->table->configure(&s->code.config, &there);
  const uint32_t *a = &there.block_in, *b = &s->code.config.block_in;
  int same = 1;
  for (size_t i = 0; i < 9; ++i) same &= a[i] == b[i];
  if (same) return TW_OK;
  char text[200];
  tw_text t = {text, 0, sizeof text};
  text_clear(&t);
  vdla_add_config(&t, &there);
  text_add(&t, ", the model is for ");
  vdla_add_config(&t, &s->code.config);
  return tw_device_failed(d, "its core is ", text, 0);
}

static tw_status vdla_grow(tw_device* d, vdla_state* s, uint64_t arena_bytes) {
  const uint64_t bytes = s->arena_at + vdla_aligned(arena_bytes) + 64;
  uint8_t* dram = tw_map(bytes);
  if (!dram) return tw_device_failed(d, "no memory", "", 0);
  if (s->dram) {
    memcpy(dram, s->dram, (size_t)s->arena_at);
    munmap(s->dram, (size_t)s->dram_bytes);
  }
  s->dram = dram;
  s->dram_bytes = bytes;
  return TW_OK;
}

static tw_status vdla_open(tw_device* d, const uint8_t* weights, const tw_queue* queue) {
  (void)queue; /* without `copy` in the table no caller can bring a queue */
  vdla_state* s = tw_device_state(d, sizeof *s);
  if (!s) return TW_E_DEVICE;
  if (!d->desc->launch_count) return TW_OK; /* nothing runs on this device */
  if (!dlopen || !dlsym)
    return tw_device_failed(d, "the program that loads this library has no dlopen", "", 0);
  memcpy(&s->code, d->desc->code, sizeof s->code);
  const char* address = vdla_address(s);
  tw_status status = vdla_find(d, s, address);
  if (status == TW_OK) status = vdla_options(d, s, address);
  if (status == TW_OK) status = vdla_same_config(d, s);
  if (status != TW_OK) return status;
  s->weights_at = vdla_aligned(d->desc->code_bytes);
  s->arena_at = s->weights_at + vdla_aligned(d->desc->weight_bytes);
  status = vdla_grow(d, s, 0);
  if (status != TW_OK) return status;
  memcpy(s->dram, d->desc->code, (size_t)d->desc->code_bytes);
  if (d->desc->weight_bytes)
    memcpy(s->dram + s->weights_at, weights, (size_t)d->desc->weight_bytes);
  return TW_OK;
}

static void vdla_close(tw_device* d) {
  vdla_state* s = d->state;
  if (s->dram) munmap(s->dram, (size_t)s->dram_bytes);
}

static tw_status vdla_reserve(tw_device* d, uint64_t bytes) {
  return vdla_grow(d, d->state, bytes);
}

static tw_status vdla_write(tw_device* d, int64_t at, const void* from, int64_t bytes) {
  vdla_state* s = d->state;
  memcpy(s->dram + s->arena_at + at, from, (size_t)bytes);
  return TW_OK;
}

static tw_status vdla_read(tw_device* d, int64_t at, void* to, int64_t bytes) {
  vdla_state* s = d->state;
  memcpy(to, s->dram + s->arena_at + at, (size_t)bytes);
  return TW_OK;
}

static tw_status vdla_move(tw_device* d, int64_t to, int64_t from, int64_t bytes, int32_t weights) {
  vdla_state* s = d->state;
  memcpy(s->dram + s->arena_at + to, s->dram + (weights ? s->weights_at : s->arena_at) + from,
         (size_t)bytes);
  return TW_OK;
}

static tw_status vdla_launch(tw_device* d, int32_t index, const int64_t* arguments) {
  vdla_state* s = d->state;
  tw_vdla_stream stream;
  memcpy(&stream, d->desc->code + sizeof s->code + (uint64_t)index * sizeof stream, sizeof stream);
  tw_vdla_launch launch;
  memset(&launch, 0, sizeof launch);
  launch.instructions = stream.offset;
  launch.count = stream.count;
  const int64_t* next = arguments + 6;
  for (int32_t b = 0; b < d->desc->launches[index].buffer_count; ++b, next += 2)
    launch.bases[b] = (next[0] ? s->weights_at : s->arena_at) + (uint64_t)next[1];
  tw_vdla_result result;
  memset(&result, 0, sizeof result);
  if (s->table->run(&s->code.config, s->dram, s->dram_bytes, &launch, &s->options, &result) != 0)
    return tw_device_failed(d, "cannot launch ", d->desc->launches[index].function, 0);
  if (result.fault)
    return tw_device_failed(d, result.message[0] ? result.message : "the stream failed: ",
                            result.message[0] ? "" : d->desc->launches[index].function,
                            (int64_t)result.fault);
  ++d->stats.launches;
  d->stats.cycles += result.cycles;
  d->stats.busy_cycles += result.gemm + result.alu;
  d->stats.read_bytes += result.read_beats * s->code.config.bus_bytes;
  d->stats.written_bytes += result.write_beats * s->code.config.bus_bytes;
  return TW_OK;
}

static tw_status vdla_wait(tw_device* d) {
  (void)d;
  return TW_OK; /* a launch has ended when it returns */
}

const tw_driver tw_vdla_driver = {.name = "vdla",
                                  .open = vdla_open,
                                  .close = vdla_close,
                                  .reserve = vdla_reserve,
                                  .write = vdla_write,
                                  .read = vdla_read,
                                  .launch = vdla_launch,
                                  .wait = vdla_wait,
                                  .move = vdla_move};
