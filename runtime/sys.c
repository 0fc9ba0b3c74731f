/* The clock and small files, by system call */
#include "sys.h"
#include "model.h"

uint64_t tw_clock_ns(void) {
  struct {
    long seconds, nanoseconds;
  } now = {0, 0};
  syscall(SYS_clock_gettime, 1L /* CLOCK_MONOTONIC */, &now);
  return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
}

int32_t tw_read_file(const char* path, char* buffer, int32_t capacity) {
  long file = syscall(SYS_openat, -100L /* AT_FDCWD */, path, 0x80000L /* O_RDONLY | O_CLOEXEC */,
                      0L);
  if (file < 0) return -1;
  int32_t length = 0;
  while (length < capacity - 1) {
    long got = syscall(SYS_read, file, buffer + length, (long)(capacity - 1 - length));
    if (got <= 0) break;
    length += (int32_t)got;
  }
  syscall(SYS_close, file);
  buffer[length] = 0;
  return length;
}
