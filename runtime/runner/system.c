/* The program's entry, system calls, memory and files */
#include "system.h"
#include "print.h"

uint64_t g_page_bytes = 4096;

/* The kernel starts a program with its arguments on the stack and nothing to return to. */
#if defined(__x86_64__)
__asm__(
    ".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall "
    "tw_start\n");
__attribute__((naked)) long syscall(long number, ...) {
  __asm__(
      "mov %rdi, %rax\n\tmov %rsi, %rdi\n\tmov %rdx, %rsi\n\tmov %rcx, %rdx\n\tmov %r8, %r10\n\t"
      "mov %r9, %r8\n\tmov 8(%rsp), %r9\n\tsyscall\n\tret");
}
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tand x1, x0, "
    "#-16\n\tmov sp, x1\n\tb tw_start\n");
__attribute__((naked)) long syscall(long number, ...) {
  __asm__(
      "mov x8, x0\n\tmov x0, x1\n\tmov x1, x2\n\tmov x2, x3\n\tmov x3, x4\n\tmov x4, x5\n\t"
      "mov x5, x6\n\tsvc #0\n\tret");
}
#elif defined(__riscv)
__asm__(
    ".globl _start\n_start:\n\t.option push\n\t.option norelax\n\tlla gp, "
    "__global_pointer$\n\t.option pop\n\tmv a0, sp\n\tandi sp, sp, -16\n\ttail tw_start\n");
__attribute__((naked)) long syscall(long number, ...) {
  __asm__(
      "mv a7, a0\n\tmv a0, a1\n\tmv a1, a2\n\tmv a2, a3\n\tmv a3, a4\n\tmv a4, a5\n\tmv a5, a6\n\t"
      "ecall\n\tret");
}
#else
__asm__(
    ".globl _start\n_start:\n\tmov r11, #0\n\tmov r0, sp\n\tbic r1, r0, #7\n\tmov sp, r1\n\tb "
    "tw_start\n");
__attribute__((naked)) long syscall(long number, ...) {
  __asm__(
      "push {r4, r5, r7, lr}\n\tmov r7, r0\n\tmov r0, r1\n\tmov r1, r2\n\tmov r2, r3\n\t"
      "ldr r3, [sp, #16]\n\tldr r4, [sp, #20]\n\tldr r5, [sp, #24]\n\tsvc #0\n\t"
      "pop {r4, r5, r7, pc}");
}
#endif

int run_program(int count, char** arguments);

TW_HELPER _Noreturn void tw_start(long* stack) {
  const int count = (int)stack[0];
  long* at = stack + 1 + count + 1;
  while (*at) ++at; /* skips the environment */
  for (++at; at[0]; at += 2)
    if (at[0] == 6 /* AT_PAGESZ */) g_page_bytes = (uint64_t)at[1];
  tw_exit(run_program(count, (char**)(stack + 1)));
}

void tw_exit(int status) {
  for (;;) syscall(SYS_exit_group, (long)status);
}

/* The loops copy by inlined words, as the compiler would turn plain ones into calls of these very
 * functions. */
TW_HELPER void* memcpy(void* restrict to, const void* restrict from, size_t bytes) {
  uint8_t* t = to;
  const uint8_t* f = from;
  for (; bytes >= 8; bytes -= 8, t += 8, f += 8) {
    uint64_t word;
    __builtin_memcpy_inline(&word, f, 8);
    __builtin_memcpy_inline(t, &word, 8);
    __asm__ volatile("" ::: "memory");
  }
  for (; bytes; --bytes, ++t, ++f) {
    *t = *f;
    __asm__ volatile("" ::: "memory");
  }
  return to;
}
TW_HELPER void* memset(void* to, int value, size_t bytes) {
  uint8_t* t = to;
  const uint64_t word = (uint64_t)(uint8_t)value * 0x0101010101010101u;
  for (; bytes >= 8; bytes -= 8, t += 8) {
    __builtin_memcpy_inline(t, &word, 8);
    __asm__ volatile("" ::: "memory");
  }
  for (; bytes; --bytes, ++t) {
    *t = (uint8_t)value;
    __asm__ volatile("" ::: "memory");
  }
  return to;
}
TW_HELPER void* memmove(void* to, const void* from, size_t bytes) {
  uint8_t* t = to;
  const uint8_t* f = from;
  if ((uintptr_t)t <= (uintptr_t)f || (uintptr_t)t >= (uintptr_t)f + bytes)
    return memcpy(to, from, bytes);
  while (bytes--) {
    t[bytes] = f[bytes];
    __asm__ volatile("" ::: "memory");
  }
  return to;
}

TW_HELPER void* mmap(void* at, size_t bytes, int protection, int flags, int file, long offset) {
#if defined(__arm__)
  offset = (long)((unsigned long)offset >> 12);
#endif
  const long got = syscall(SYS_mmap, at, (long)bytes, (long)protection, (long)flags, (long)file,
                           offset);
  return got < 0 && got > -4096 ? (void*)-1 : (void*)got;
}
TW_HELPER int munmap(void* at, size_t bytes) {
  return syscall(SYS_munmap, at, (long)bytes) == 0 ? 0 : -1;
}

void* take_memory(uint64_t bytes) {
  void* p = tw_map(bytes ? bytes : 1);
  if (!p) fail(kUser, "no memory: ", "a tensor is too large for this machine", 0);
  return p;
}

int map_file(const char* path, tw_bytes* file) {
  const long f = syscall(SYS_openat, -100L /* AT_FDCWD */, path, 0x80000L /* O_CLOEXEC */, 0L);
  if (f < 0) return 0;
  const long bytes = syscall(SYS_lseek, f, 0L, 2L /* SEEK_END */);
  void* map = bytes > 0    ? mmap(0, (size_t)bytes, 1 /* read */, 2 /* private */, (int)f, 0)
              : bytes == 0 ? (void*)"" /* a tensor without elements; mmap refuses 0 bytes */
                           : (void*)-1;
  syscall(SYS_close, f);
  if (map == (void*)-1) return 0;
  *file = (tw_bytes){map, (uint64_t)bytes};
  return 1;
}

void write_whole_file(const char* path, const tw_bytes* pieces, int count) {
  const long flags = 0x80000 | 0x200 | 0x40 | 1; /* O_CLOEXEC, O_TRUNC, O_CREAT, O_WRONLY */
  const long f = syscall(SYS_openat, -100L, path, flags, 0644L);
  int32_t good = f >= 0;
  for (int i = 0; i < count && good; ++i)
    for (uint64_t done = 0; done < pieces[i].count && good;) {
      const uint64_t rest = pieces[i].count - done;
      const long most = rest < (1 << 30) ? (long)rest : 1L << 30;
      const long got = syscall(SYS_write, f, pieces[i].data + done, most);
      if (got == -4 /* EINTR */) continue;
      good = got > 0;
      done += (uint64_t)got;
    }
  if (f >= 0 && syscall(SYS_close, f) != 0) good = 0;
  if (!good) fail(kIo, "cannot write ", path, 0);
}
