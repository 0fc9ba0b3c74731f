/* Finds the weights: inside the library, or in a file of their own, which is mapped once for all
 * contexts. */
#include "weights.h"
#include "context.h"
#include "hash.h"
#include "integrity.h"
#include "own_weights.h"

enum { kPathBytes = 4096 };
static _Atomic uint32_t g_weights_lock;
static const uint8_t* g_weights; /* address of the mapped file's weights */
static uint64_t g_weights_users;

/* Reads hexadecimal digits up to another character. */
static uintptr_t take_hex(const char** at) {
  uintptr_t value = 0;
  for (;; ++*at) {
    const char c = **at;
    if (c >= '0' && c <= '9') value = value * 16 + (uintptr_t)(c - '0');
    else if (c >= 'a' && c <= 'f') value = value * 16 + (uintptr_t)(c - 'a' + 10);
    else return value;
  }
}

/* The path in a line of /proc/self/maps, "begin-end rights offset device inode   path", where the
 * library is mapped there; else NULL. */
static const char* path_in(const char* line) {
  const uintptr_t wanted = (uintptr_t)&tw_weights_offset;
  const uintptr_t begin = take_hex(&line);
  if (*line++ != '-') return 0;
  const uintptr_t end = take_hex(&line);
  if (wanted < begin || wanted >= end) return 0;
  for (; *line && *line != '/'; ++line) {}
  return line;
}

/* The folder of this library and a '/', from the system's list of mappings; 0: the list does not
 * tell. */
static int own_folder(tw_text* path) {
  char line[kPathBytes + 128], piece[1024];
  int32_t length = 0;
  const char* found = 0;
  long got, file = syscall(SYS_openat, -100L /* AT_FDCWD */, "/proc/self/maps",
                           0x80000L /* O_RDONLY | O_CLOEXEC */, 0L);
  if (file < 0) return 0;
  while (!found && (got = syscall(SYS_read, file, piece, (long)sizeof piece)) > 0)
    for (long i = 0; !found && i < got; ++i) {
      if (piece[i] != '\n') {
        if (length + 1 < (int32_t)sizeof line) line[length++] = piece[i];
        continue;
      }
      line[length] = 0;
      length = 0;
      found = path_in(line);
    }
  syscall(SYS_close, file);
  if (!found || *found != '/') return 0;
  text_add(path, found);
  while (path->data[path->length - 1] != '/') path->data[--path->length] = 0;
  return 1;
}

static tw_status refuse_weights(tw_text* error, const char* path, const char* why) {
  text_clear(error);
  text_add(error, "the weights '");
  text_add(error, path);
  text_add(error, "' ");
  text_add(error, why);
  return TW_E_DAMAGED;
}

/* Maps the weights of an open file, whose header must equal the library's. */
static tw_status map_weights(long file, const char* path, tw_text* error) {
  const tw_weights_header* own = (const tw_weights_header*)(const void*)tw_own_weights();
  tw_weights_header found;
  memset(&found, 0, sizeof found);
  const long got = syscall(SYS_read, file, &found, (long)sizeof found);
  for (int i = 0; i < 8; ++i)
    if (got != (long)sizeof found || found.magic[i] != own->magic[i])
      return refuse_weights(error, path, "are no file of weights");
  const uint8_t *a = (const uint8_t*)&found, *b = (const uint8_t*)own;
  for (unsigned i = 0; i < sizeof found; ++i)
    if (a[i] != b[i])
      return refuse_weights(error, path, "are of another model, or of another compile of it");
  const uint64_t bytes = own->bytes;
  const long end = syscall(SYS_lseek, file, 0L, 2L /* SEEK_END */);
  if (end < 0 || (uint64_t)end != own->offset + bytes)
    return refuse_weights(error, path, "are truncated, or longer than they were written");
  void* map = mmap(0, (size_t)bytes, 1 /* read */, 1 /* shared */, (int)file, (long)own->offset);
  if (map == (void*)-1) {
    refuse_weights(error, path, "cannot be mapped: no memory");
    return TW_E_MEMORY;
  }
  g_weights = map;
  return TW_OK;
}

static tw_status open_weights(const char* given, tw_text* error) {
  char data[kPathBytes] = "";
  tw_text path = {data, 0, sizeof data};
  if (given) {
    text_add(&path, given);
  } else {
    if (!own_folder(&path))
      return refuse_weights(error, tw_model->weights_file,
                            "cannot be looked for beside the library: /proc/self/maps does not say "
                            "where it is; name them in tw_options.weights");
    text_add(&path, tw_model->weights_file);
  }
  const long file = syscall(SYS_openat, -100L, path.data, 0x80000L, 0L);
  if (file < 0) return refuse_weights(error, path.data, "cannot be opened");
  const tw_status status = map_weights(file, path.data, error);
  syscall(SYS_close, file);
  return status;
}

static tw_status tw_weights_enter(const char* given, const uint8_t** weights, tw_text* error) {
  if (!tw_model->weights_file) {
    *weights = tw_own_weights();
    return TW_OK;
  }
  tw_lock(&g_weights_lock);
  const tw_status status = g_weights ? TW_OK : open_weights(given, error);
  if (status == TW_OK) {
    ++g_weights_users;
    *weights = g_weights;
  }
  tw_unlock(&g_weights_lock);
  return status;
}

static void tw_weights_leave(void) {
  if (!tw_model->weights_file) return;
  tw_lock(&g_weights_lock);
  if (--g_weights_users == 0) {
    const uint8_t* mapped = g_weights;
    g_weights = 0;
    munmap((void*)mapped, (size_t)((const tw_weights_header*)(const void*)tw_own_weights())->bytes);
  }
  tw_unlock(&g_weights_lock);
}
