/* Checks the segments that are mapped from the file and never written against the hash that the
 * packager puts into the note. */
#include "integrity.h"
#include "elf.h"
#include "hash.h"
#include "model.h"
#include "own_weights.h"
#include "sys.h"

enum { kSmallestPage = 4096 };

extern const uint8_t __ehdr_start[] __attribute__((
    visibility("hidden"))); /* defined by the linker: the address of the file's first byte */

/* Touches the pages through a system call. Where the file has become shorter, the call fails; an
 * access of our own would end the process. */
static int readable(int pipe[2], const uint8_t* at, uint64_t bytes) {
  char back;
  if (bytes > (uint64_t)(UINTPTR_MAX - (uintptr_t)at)) return 0;
  for (uint64_t done = 0; done < bytes;
       done += kSmallestPage - ((uintptr_t)(at + done) & (kSmallestPage - 1))) {
    if (syscall(SYS_write, (long)pipe[1], at + done, 1L) != 1) return 0;
    if (syscall(SYS_read, (long)pipe[0], &back, 1L) != 1) return 0;
  }
  return 1;
}

/* Adds the bytes as they were when the hash was taken: with zeros in place of the hashes. */
static void add_without_hashes(tw_hasher* h, const uint8_t* at, uint64_t bytes) {
  static const uint8_t zeros[sizeof tw_hashes];
  uint64_t before = (uint64_t)((uintptr_t)tw_hashes - (uintptr_t)at);
  if ((uintptr_t)tw_hashes < (uintptr_t)at || before >= bytes ||
      bytes - before < sizeof tw_hashes) {
    tw_hash_add(h, at, (size_t)bytes);
    return;
  }
  tw_hash_add(h, at, (size_t)before);
  tw_hash_add(h, zeros, sizeof zeros);
  tw_hash_add(h, at + before + sizeof tw_hashes, (size_t)(bytes - before - sizeof tw_hashes));
}

static int hash_segments(int pipe[2], uint8_t out[TW_HASH_BYTES]) {
  const tw_elf_header* header = (const tw_elf_header*)(const void*)__ehdr_start;
  const tw_elf_segment* segments = (const tw_elf_segment*)(const void*)(__ehdr_start +
                                                                        header->segments);
  tw_hasher h;
  tw_hash_begin(&h);
  if (!readable(pipe, (const uint8_t*)segments, header->segment_count * sizeof *segments)) return 0;
  for (int i = 0; i < header->segment_count; ++i) {
    const tw_elf_segment* s = &segments[i];
    if (s->type != kLoad || s->flags & kWritable) continue;
    if (!readable(pipe, __ehdr_start + s->address, s->file_size)) return 0;
    add_without_hashes(&h, __ehdr_start + s->address, s->file_size);
  }
  tw_hash_end(&h, out);
  return 1;
}

/* Checks weights in a file of their own: the file that a context has mapped, or else the file
 * beside the library. */
static int weights_are_whole(int pipe[2]) {
  char data[256] = "";
  tw_text error = {data, 0, sizeof data};
  const tw_weights_header* header = (const tw_weights_header*)(const void*)tw_own_weights();
  const uint8_t* weights = 0;
  uint8_t found[TW_HASH_BYTES];
  if (!tw_model->weights_file) return 1;
  if (tw_weights_enter(0, &weights, &error) != TW_OK) return 0;
  int same = readable(pipe, weights, header->bytes);
  if (same) {
    tw_hasher h;
    tw_hash_begin(&h);
    tw_hash_add(&h, weights, (size_t)header->bytes);
    tw_hash_end(&h, found);
  }
  for (int i = 0; same && i < TW_HASH_BYTES; ++i) same = found[i] == header->hash[i];
  tw_weights_leave();
  return same;
}

/* 0: the bytes are an object's, which has no hash as it is a part of a program. */
static int has_hash(void) {
  const volatile uint8_t* hash = tw_hashes; /* volatile: written when all is linked */
  int some = 0;
  for (int i = 0; i < TW_HASH_BYTES; ++i) some |= hash[i];
  return some;
}

tw_status tw_check_integrity(void) {
  int pipe[2];
  uint8_t found[TW_HASH_BYTES];
  if (!has_hash()) return TW_E_UNSUPPORTED;
  if (syscall(SYS_pipe2, pipe, 0x80000L /* O_CLOEXEC */) != 0) return TW_E_MEMORY;
  int same = hash_segments(pipe, found);
  for (int i = 0; same && i < TW_HASH_BYTES; ++i) same = found[i] == tw_hashes[i];
  same = same && weights_are_whole(pipe);
  syscall(SYS_close, (long)pipe[0]);
  syscall(SYS_close, (long)pipe[1]);
  return same ? TW_OK : TW_E_DAMAGED;
}
