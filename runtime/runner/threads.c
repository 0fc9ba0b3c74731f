/* pthread_create and pthread_join, as far as the libraries of models need them. A thread is a stack
 * that knows the function to run. */
#include "system.h"

enum {
  kStackBytes = 1 << 20,
  /* CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, PARENT_SETTID, CHILD_CLEARTID */
  kCloneFlags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x100000 | 0x200000
};

/* The record of a thread, at the end of its stack */
typedef struct tw_own_thread {
  _Alignas(16) void* (*body)(void*);
  void* arg;
  void* stack;
  void* result;
  _Atomic uint32_t alive; /* the thread's number; the kernel writes 0 at its end */
} tw_own_thread;

/* Calls clone() for a thread whose stack pointer, and first argument of tw_thread_start, is
 * `thread`. The result is its number, or negative. */
long tw_clone(long flags, tw_own_thread* thread, _Atomic uint32_t* number,
              _Atomic uint32_t* cleared);

#if defined(__x86_64__)
__asm__(
    "tw_clone:\n\tmov %rcx, %r10\n\txor %r8, %r8\n\tmov $56, %eax\n\tsyscall\n\ttest %rax, "
    "%rax\n\tjz 1f\n\tret\n1:\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tcall tw_thread_start\n");
#elif defined(__aarch64__)
__asm__(
    "tw_clone:\n\tmov x4, x3\n\tmov x3, #0\n\tmov x8, #220\n\tsvc #0\n\tcbz x0, "
    "1f\n\tret\n1:\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tb tw_thread_start\n");
#elif defined(__riscv)
__asm__(
    "tw_clone:\n\tmv a4, a3\n\tli a3, 0\n\tli a7, 220\n\tecall\n\tbeqz a0, 1f\n\tret\n1:\tmv a0, "
    "sp\n\ttail tw_thread_start\n");
#else
__asm__(
    "tw_clone:\n\tpush {r4, r7}\n\tmov r4, r3\n\tmov r3, #0\n\tmov r7, #120\n\tsvc #0\n\tcmp r0, "
    "#0\n\tbeq 1f\n\tpop {r4, r7}\n\tbx lr\n1:\tmov r11, #0\n\tmov r0, sp\n\tb "
    "tw_thread_start\n");
#endif

TW_HELPER _Noreturn void tw_thread_start(tw_own_thread* thread) {
  thread->result = thread->body(thread->arg);
  for (;;) syscall(SYS_exit, 0L);
}

TW_HELPER int pthread_create(tw_thread* out, const void* attributes, void* (*body)(void*),
                             void* arg) {
  (void)attributes;
  uint8_t* stack = tw_map(kStackBytes);
  if (!stack) return 11; /* EAGAIN */
  tw_own_thread* thread = (tw_own_thread*)(void*)(stack + kStackBytes - sizeof(tw_own_thread));
  thread->body = body;
  thread->arg = arg;
  thread->stack = stack;
  if (tw_clone(kCloneFlags, thread, &thread->alive, &thread->alive) < 0) {
    munmap(stack, kStackBytes);
    return 11;
  }
  *out = (tw_thread)thread;
  return 0;
}

TW_HELPER int pthread_join(tw_thread number, void** result) {
  tw_own_thread* thread = (tw_own_thread*)number;
  uint32_t alive;
  while ((alive = TW_LOAD(&thread->alive, ACQUIRE)) != 0) /* the kernel wakes shared waiters */
    syscall(SYS_futex, &thread->alive, 0L /* FUTEX_WAIT */, (long)alive, (void*)0, (void*)0, 0L);
  if (result) *result = thread->result;
  munmap(thread->stack, kStackBytes);
  return 0;
}
