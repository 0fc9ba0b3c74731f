/* The system for a program without a C library: its entry, memory, files and threads. The names
 * that libraries of models take from the C library are defined here. */
#ifndef TW_RUNNER_SYSTEM_H
#define TW_RUNNER_SYSTEM_H
#include "../sys.h"

#if defined(__x86_64__)
enum { SYS_mmap = 9, SYS_munmap = 11, SYS_clone = 56, SYS_exit = 60, SYS_exit_group = 231 };
enum { SYS_mkdirat = 258 };
#elif defined(__arm__)
enum { SYS_mmap = 192 /* in pages */, SYS_munmap = 91, SYS_clone = 120, SYS_exit = 1 };
enum { SYS_exit_group = 248, SYS_mkdirat = 323 };
#else
enum { SYS_mmap = 222, SYS_munmap = 215, SYS_clone = 220, SYS_exit = 93, SYS_exit_group = 94 };
enum { SYS_mkdirat = 34 };
#endif

/* The runner's exit codes are those of the command line tilewright. */
enum { kOk = 0, kUser = 1, kUsage = 2, kUnsupported = 3, kMismatch = 4, kIo = 5 };

_Noreturn void tw_exit(int status);
void* memmove(void* to, const void* from, size_t bytes);

/* Takes memory that the process keeps to its end. Ends the program where there is none. */
void* take_memory(uint64_t bytes);

typedef struct tw_bytes {
  const uint8_t* data;
  uint64_t count;
} tw_bytes;
/* Maps a file for reading; 0: it cannot be opened. An empty file has a count of 0. */
int map_file(const char* path, tw_bytes* file);
/* Writes the whole file, or ends the program with a message. */
void write_whole_file(const char* path, const tw_bytes* pieces, int count);

/* The page size, from the auxiliary vector that the kernel puts behind the environment */
extern uint64_t g_page_bytes;
#endif
