/* The runner's commands */
#include "compare.h"
#include "inputs.h"
#include "print.h"
#include "session.h"
#include "system.h"

extern uint64_t tw_clock_ns(void);

/* The path of the library beside the runner: MODEL.so for MODEL.run. */
static void library_beside(tw_text* path) {
  const long got = syscall(SYS_readlinkat, -100L, "/proc/self/exe", path->data,
                           (long)path->capacity - 8);
  if (got <= 0)
    fail(kUser, "/proc/self/exe does not say where this file is: name the library", 0, 0);
  path->data[path->length = (int32_t)got] = 0;
  if (ends_with(path->data, ".run")) path->data[path->length -= 4] = 0;
  text_add(path, ".so");
}

/* Writes DIR/NAME.npy, with '_' for each '/'. */
static void save_output(const char* dir, const char* name, const tw_array* array) {
  char data[4096];
  tw_text path = {data, 0, sizeof data};
  text_clear(&path);
  text_add(&path, dir);
  text_add(&path, "/");
  const int32_t start = path.length;
  text_add(&path, name);
  for (int32_t i = start; i < path.length; ++i)
    if (data[i] == '/') data[i] = '_';
  text_add(&path, ".npy");
  write_npy(path.data, array);
  print("  -> ");
  print(path.data);
}

static int run_command(tw_session* s, const tw_arguments* a) {
  char data[64 * 24];
  tw_text shape = {data, 0, sizeof data};
  run_once(s);
  take_outputs(s);
  if (a->output_dir) syscall(SYS_mkdirat, -100L, a->output_dir, 0755L); /* it may exist already */
  for (int32_t i = 0; i < s->api->output_count; ++i) {
    const tw_array* array = &s->outputs[i];
    text_clear(&shape);
    add_shape(&shape, array->dims, array->rank);
    print(s->api->outputs[i].name);
    print(": ");
    print(type_of(array->dtype)->name);
    print(shape.data);
    print("  ");
    print_summary(array);
    if (a->output_dir) save_output(a->output_dir, s->api->outputs[i].name, array);
    print("\n");
  }
  return kOk;
}

static void sift(uint64_t* heap, int64_t at, int64_t count) {
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
    if (heap[at] >= heap[child]) return;
    const uint64_t swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
  }
}

static void sort(uint64_t* values, int64_t count) {
  for (int64_t i = count / 2; i-- > 0;) sift(values, i, count);
  for (int64_t i = count; i-- > 1;) {
    const uint64_t last = values[i];
    values[i] = values[0];
    values[0] = last;
    sift(values, 0, i);
  }
}

static int bench_command(tw_session* s, const tw_arguments* a) {
  enum { kMostRuns = 1000000 };
  uint64_t* ns = take_memory(kMostRuns * sizeof *ns);
  int64_t count = 0;
  for (int64_t i = 0; i < a->warmup; ++i) run_once(s);
  const uint64_t start = tw_clock_ns();
  while (count < (a->runs ? a->runs : kMostRuns)) {
    const uint64_t before = tw_clock_ns();
    if (!a->runs && count && (double)(before - start) * 1e-9 >= a->seconds) break;
    run_once(s);
    ns[count++] = tw_clock_ns() - before;
  }
  sort(ns, count);
  const uint64_t median = (ns[count / 2] + ns[(count - 1) / 2]) / 2;
  print(s->api->name);
  print(": min ");
  print_milliseconds(ns[0]);
  print(" ms, median ");
  print_milliseconds(median);
  print(" ms in ");
  print_integer(count);
  print(" runs\n");
  return kOk;
}

static int verify_command(tw_session* s, const tw_arguments* a) {
  char data[4096];
  tw_text path = {data, 0, sizeof data};
  int32_t same = 1;
  run_once(s);
  take_outputs(s);
  for (int32_t i = 0; i < s->api->output_count; ++i) {
    if (!stored_path(a->data, "output", i, &path))
      fail(kIo, "there is no ", path.data, " and no .pb of that name to compare with");
    tw_array want = read_array(path.data);
    if (want.dtype == TW_U8 && !type_of(s->outputs[i].dtype)->npy) want.dtype = s->outputs[i].dtype;
    same &= compare_arrays(s->api->outputs[i].name, &s->outputs[i], &want, a->tolerance);
  }
  return same ? kOk : kMismatch;
}

int run_program(int count, char** words) {
  char data[4096];
  tw_text beside = {data, 0, sizeof data};
  const tw_arguments a = read_arguments(count, words);
  if (!a.library) library_beside(&beside);
  tw_session session = open_session(a.library ? a.library : beside.data, &a);
  switch (a.command) {
    case kRun: return run_command(&session, &a);
    case kBench: return bench_command(&session, &a);
    case kVerify: return verify_command(&session, &a);
  }
  return kUsage;
}
