// The machine's limits as plain C reaches them: fp32 multiply-add rate and read bandwidth of L1, L2
// and memory, summed over the given number of threads. Prints one JSON object.
//
//   cc -O3 -march=native -ffp-contract=fast -pthread machine_peak.c
//
// With -march=x86-64-v3 or x86-64-v2 the multiply-add rate is that of the narrower instruction set.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
enum { kBytes = 64, kAccumulators = 24 };
#elif defined(__AVX__)
enum { kBytes = 32, kAccumulators = 12 };
#else
enum { kBytes = 16, kAccumulators = 12 };
#endif
enum {
  kLanes = kBytes / sizeof(float),
  kStreams = 8,
  kMaxThreads = 64,
  kRounds = 5,
  kHugePage = 2 << 20
};
typedef float Vec __attribute__((vector_size(kBytes)));
typedef unsigned Bits __attribute__((vector_size(kBytes)));

typedef struct {
  double (*work)(void*, long);  // returns operations or bytes
  void* data;
  long repeats;
  pthread_barrier_t* start;
  double amount, begin, end;
} Job;

static volatile float sink, one = 1.0f, tiny = 1e-6f;
static size_t array_bytes;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__aarch64__)
#define IN_REGISTER(value) "+w"(value)
#elif defined(__AVX512F__)
#define IN_REGISTER(value) "+v"(value)
#else
#define IN_REGISTER(value) "+x"(value)
#endif

// Sums products as a matrix product does. Without a fused instruction, each addition still waits
// for the one before it, but no product does.
static double multiply_add(void* unused, long repeats) {
  (void)unused;
  Vec sum[kAccumulators], a, b;
  for (int i = 0; i < kLanes; ++i) a[i] = one, b[i] = tiny;
#pragma GCC unroll 32
  for (int i = 0; i < kAccumulators; ++i) sum[i] = b * (float)i;
  for (long r = 0; r < repeats; ++r) {
#pragma GCC unroll 32
    for (int i = 0; i < kAccumulators; ++i) {
      sum[i] = a * b + sum[i];
      __asm__ volatile("" : IN_REGISTER(a));  // keeps the product inside the loop
    }
  }
  Vec total = sum[0];
#pragma GCC unroll 32
  for (int i = 1; i < kAccumulators; ++i) total += sum[i];
  sink = total[0];
  return 2.0 * kAccumulators * kLanes * (double)repeats;
}

static double read_array(void* data, long repeats) {
  const Bits* p = data;
  const size_t count = array_bytes / kBytes;
  // With an initializer, some compilers would keep the sums in memory.
  Bits sum[kStreams];
#pragma GCC unroll 8
  for (int k = 0; k < kStreams; ++k) sum[k] = (Bits){0};
  for (long r = 0; r < repeats; ++r) {
    for (size_t i = 0; i < count; i += kStreams) {
#pragma GCC unroll 8
      for (int k = 0; k < kStreams; ++k) sum[k] ^= p[i + (size_t)k];
      __asm__ volatile("" ::: "memory");  // keeps the blocks in the order that prefetchers expect
    }
  }
#pragma GCC unroll 8
  for (int k = 1; k < kStreams; ++k) sum[0] ^= sum[k];
  sink = (float)sum[0][0];
  return (double)array_bytes * (double)repeats;
}

static void* run_job(void* argument) {
  Job* job = argument;
  job->work(job->data, job->repeats / 10 + 1);
  pthread_barrier_wait(job->start);
  job->begin = now();
  job->amount = job->work(job->data, job->repeats);
  job->end = now();
  return NULL;
}

// Returns the best of kRounds rates, in 1e9 operations or bytes a second.
static double best_rate(int threads, double (*work)(void*, long), void** data, long repeats) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t thread[kMaxThreads];
    Job job[kMaxThreads];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; ++t) {
      job[t] = (Job){work, data ? data[t] : NULL, repeats, &start, 0, 0, 0};
      if (pthread_create(&thread[t], NULL, run_job, &job[t])) exit(1);
    }
    double amount = 0, begin = 1e300, end = 0;
    for (int t = 0; t < threads; ++t) {
      pthread_join(thread[t], NULL);
      amount += job[t].amount;
      if (job[t].begin < begin) begin = job[t].begin;
      if (job[t].end > end) end = job[t].end;
    }
    pthread_barrier_destroy(&start);
    const double rate = amount / (end - begin) * 1e-9;
    if (rate > best) best = rate;
  }
  return best;
}

static double read_rate(int threads, size_t bytes) {
  void* data[kMaxThreads];
  array_bytes = bytes / (kBytes * kStreams) * (kBytes * kStreams);
  for (int t = 0; t < threads; ++t) {
    if (posix_memalign(&data[t], kHugePage, array_bytes)) exit(1);
    madvise(data[t], array_bytes, MADV_HUGEPAGE);  // with small pages, page walks would be measured
    for (size_t i = 0; i < array_bytes / sizeof(unsigned); ++i)
      ((unsigned*)data[t])[i] = (unsigned)i;
  }
  const long repeats = (long)(4e8 / (double)array_bytes) + 1;
  const double rate = best_rate(threads, read_array, data, repeats);
  for (int t = 0; t < threads; ++t) free(data[t]);
  return rate;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > kMaxThreads) return 2;
  const double flops = best_rate(threads, multiply_add, NULL, 1000000);
  const double l1 = read_rate(threads, 16 << 10), l2 = read_rate(threads, 256 << 10),
               memory = read_rate(threads, 256 << 20);
  printf(
      "{\"fma_gflops\": %.1f, \"l1_read_gbs\": %.1f, \"l2_read_gbs\": %.1f, \"memory_read_gbs\": "
      "%.1f}\n",
      flops, l1, l2, memory);
  return 0;
}
