/* The few names that the runtime takes from the C library, system call numbers, and atomics. There
 * is no libc header, so the same source compiles for every triple without a sysroot. pthread_* are
 * weak: with an old glibc without libpthread there is one thread. */
#ifndef TW_SYS_H
#define TW_SYS_H
#include <stddef.h>
#include <stdint.h>

extern long syscall(long number, ...);
extern void* mmap(void* at, size_t bytes, int protection, int flags, int file, long offset);
extern int munmap(void* at, size_t bytes);
extern void* memcpy(void* restrict to, const void* restrict from, size_t bytes);
extern void* memset(void* to, int value, size_t bytes);
typedef uintptr_t tw_thread; /* pthread_t is one word in glibc, musl and bionic */
extern int pthread_create(tw_thread* thread, const void* attributes, void* (*body)(void*),
                          void* arg) __attribute__((weak));
extern void* dlopen(const char* file, int mode)
    __attribute__((weak)); /* for libraries of devices only */
extern char* getenv(const char* name) __attribute__((weak));
extern void* dlsym(void* library, const char* name) __attribute__((weak));
extern int pthread_join(tw_thread thread, void** result) __attribute__((weak));

#if defined(__x86_64__)
enum {
  SYS_sched_yield = 24,
  SYS_madvise = 28,
  SYS_read = 0,
  SYS_write = 1,
  SYS_close = 3,
  SYS_lseek = 8,
  SYS_rt_sigprocmask = 14,
  SYS_getpid = 39,
  SYS_gettid = 186,
  SYS_futex = 202,
  SYS_sched_getaffinity = 204,
  SYS_clock_gettime = 228,
  SYS_openat = 257,
  SYS_readlinkat = 267,
  SYS_pipe2 = 293
};
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
enum {
  SYS_madvise = 233,
  SYS_openat = 56,
  SYS_close = 57,
  SYS_pipe2 = 59,
  SYS_lseek = 62,
  SYS_read = 63,
  SYS_write = 64,
  SYS_futex = 98,
  SYS_clock_gettime = 113,
  SYS_sched_getaffinity = 123,
  SYS_sched_yield = 124,
  SYS_rt_sigprocmask = 135,
  SYS_getpid = 172,
  SYS_gettid = 178,
  SYS_readlinkat = 78
};
#elif defined(__arm__)
enum {
  SYS_madvise = 220,
  SYS_read = 3,
  SYS_write = 4,
  SYS_close = 6,
  SYS_lseek = 19,
  SYS_getpid = 20,
  SYS_sched_yield = 158,
  SYS_gettid = 224,
  SYS_rt_sigprocmask = 175,
  SYS_futex = 240,
  SYS_sched_getaffinity = 242,
  SYS_clock_gettime = 263,
  SYS_openat = 322,
  SYS_readlinkat = 332,
  SYS_pipe2 = 359
};
#else
#error "no system call numbers for this architecture"
#endif

#define TW_LOAD(p, order) __c11_atomic_load(p, __ATOMIC_##order)
#define TW_STORE(p, value, order) __c11_atomic_store(p, value, __ATOMIC_##order)
#define TW_SWAP(p, value, order) __c11_atomic_exchange(p, value, __ATOMIC_##order)
#define TW_ADD(p, value, order) __c11_atomic_fetch_add(p, value, __ATOMIC_##order)
#define TW_SUB(p, value, order) __c11_atomic_fetch_sub(p, value, __ATOMIC_##order)
#define TW_AND(p, value, order) __c11_atomic_fetch_and(p, value, __ATOMIC_##order)

/* One step of a spin loop: tells the core that there is nothing to do yet. */
static inline void tw_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile(
      "isb" ::
          : "memory"); /* yield is a no-op on most cores; isb waits some tens of cycles */
#elif defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#else
  __asm__ volatile("" ::: "memory");
#endif
}

/* Sleeps while *word == seen; may return early. */
static inline void tw_futex_wait(_Atomic uint32_t* word, uint32_t seen) {
  syscall(SYS_futex, word, 128L /* FUTEX_WAIT_PRIVATE */, (long)seen, (void*)0, (void*)0, 0L);
}
static inline void tw_futex_wake(_Atomic uint32_t* word, int32_t count) {
  syscall(SYS_futex, word, 129L /* FUTEX_WAKE_PRIVATE */, (long)count, (void*)0, (void*)0, 0L);
}

/* A lock for code that is never on the run path. 0 means free. Otherwise the value is twice the
 * number of the process that holds it, plus 1 when somebody sleeps. A forked child has the memory
 * but not the threads, and takes a lock that one of them held. So every single step of a writer
 * must leave the data under a lock readable. */
static inline void tw_lock(_Atomic uint32_t* lock) {
  const uint32_t own = (uint32_t)syscall(SYS_getpid) << 1;
  uint32_t seen = 0, mark = own;
  for (;;) {
    if (seen >> 1 != own >> 1) {
      if (__c11_atomic_compare_exchange_strong(lock, &seen, mark, __ATOMIC_ACQUIRE,
                                               __ATOMIC_RELAXED))
        return;
      continue;
    }
    if (seen == own && !__c11_atomic_compare_exchange_strong(lock, &seen, own | 1, __ATOMIC_RELAXED,
                                                             __ATOMIC_RELAXED))
      continue;
    tw_futex_wait(lock, own | 1);
    mark = own | 1; /* others may still sleep */
    seen = TW_LOAD(lock, RELAXED);
  }
}
static inline void tw_unlock(_Atomic uint32_t* lock) {
  if (TW_SWAP(lock, 0, RELEASE) & 1) tw_futex_wake(lock, 1);
}

/* Zeroed pages, or NULL. Large memory is asked for in huge pages: the system then hands it out in
 * few pieces, and its addresses stay in the processor's tables. A system without huge pages
 * refuses, which changes nothing. */
enum { TW_HUGE_PAGE = 2 << 20 };
static inline void* tw_map(uint64_t bytes) {
  if (bytes == 0 || bytes > (uint64_t)PTRDIFF_MAX) return 0;
  void* p = mmap(0, (size_t)bytes, 3 /* read, write */, 0x22 /* private, anonymous */, -1, 0);
  if (p == (void*)-1) return 0;
  if (bytes >= TW_HUGE_PAGE) syscall(SYS_madvise, p, (size_t)bytes, 14L /* MADV_HUGEPAGE */);
  return p;
}

/* Reads the beginning of a file as text that ends with a NUL. The result is its length, or -1.
 * capacity includes the NUL. */
int32_t tw_read_file(const char* path, char* buffer, int32_t capacity);
#endif
