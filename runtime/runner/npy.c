/* .npy files, versions 1 to 3, little-endian numbers in C order. */
#include "files.h"
#include "print.h"
#include "system.h"

static _Noreturn void bad_file(const char* path, const char* why) { fail(kUser, path, ": ", why); }

int ends_with(const char* text, const char* ending) {
  for (; *text; ++text)
    if (text_same(text, ending)) return 1;
  return 0;
}

int file_exists(const char* path) {
  const long f = syscall(SYS_openat, -100L, path, 0x80000L, 0L);
  if (f >= 0) syscall(SYS_close, f);
  return f >= 0;
}

/* Copies a file's bytes to memory that is aligned to the elements. */
static void take_payload(tw_array* a, const uint8_t* from, uint64_t bytes, const char* path) {
  a->count = count_of(a->dims, a->rank, a->dtype);
  if ((uint64_t)a->count * (uint64_t)type_of(a->dtype)->bytes != bytes)
    bad_file(path, "its size is not that of its shape");
  a->data = take_memory(bytes);
  memcpy(a->data, from, (size_t)bytes);
}

/* The text behind 'key': in the header's Python dictionary; NULL: not there. */
static const char* value_of(const char* at, const char* end, const char* key) {
  for (; at < end; ++at) {
    const char *a = at, *k = key;
    while (a < end && *k && *a == *k) ++a, ++k;
    if (*k) continue;
    while (a < end && (*a == ' ' || *a == ':')) ++a;
    return a;
  }
  return 0;
}

static void read_shape(tw_array* array, const char* at, const char* end, const char* path) {
  if (at == end || *at++ != '(') bad_file(path, "no shape");
  for (array->rank = 0;;) {
    while (at < end && (*at == ' ' || *at == ',')) ++at;
    if (at < end && *at == ')') return;
    int64_t value = 0;
    if (at == end || *at < '0' || *at > '9' || array->rank == 64) bad_file(path, "a bad shape");
    for (; at < end && *at >= '0' && *at <= '9'; ++at)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, *at - '0', &value))
        bad_file(path, "a bad shape");
    array->dims[array->rank++] = value;
  }
}

static tw_array parse_npy(tw_bytes file, const char* path) {
  static const char kMagic[] = "\x93NUMPY";
  for (int i = 0; i < 6; ++i)
    if (file.count < 12 || file.data[i] != (uint8_t)kMagic[i]) bad_file(path, "no .npy file");
  const uint64_t size_bytes = file.data[6] == 1 ? 2 : 4;
  uint64_t length = 0;
  for (uint64_t i = 0; i < size_bytes; ++i) length |= (uint64_t)file.data[8 + i] << (8 * i);
  if (length > file.count - 8 - size_bytes) bad_file(path, "it ends in the header");
  const char* header = (const char*)file.data + 8 + size_bytes;
  const char* end = header + length;
  const char* descr = value_of(header, end, "'descr'");
  const char* order = value_of(header, end, "'fortran_order'");
  const char* shape = value_of(header, end, "'shape'");
  if (!descr || !order || !shape || order == end || end - descr < 5)
    bad_file(path, "the header has no descr, fortran_order or shape");
  if (*order != 'F') bad_file(path, "it is in Fortran order, expected C order");
  const tw_type* type = descr[0] == '\'' && descr[4] == '\'' ? type_of_npy(descr + 1, 3) : 0;
  if (!type) bad_file(path, "its type is none of the little-endian numbers");
  tw_array array = {.dtype = type->dtype};
  read_shape(&array, shape, end, path);
  take_payload(&array, (const uint8_t*)end, file.count - (uint64_t)(end - (const char*)file.data),
               path);
  return array;
}

tw_array read_raw(const char* path, int32_t dtype, const int64_t* dims, int32_t rank) {
  tw_bytes file = {0, 0};
  tw_array array = {.dtype = dtype, .rank = rank};
  memcpy(array.dims, dims, (size_t)rank * sizeof *dims);
  if (!map_file(path, &file)) fail(kIo, "cannot read ", path, 0);
  take_payload(&array, file.data, file.count, path);
  return array;
}

void write_npy(const char* path, const tw_array* array) {
  char data[64 * 24];
  tw_text t = {data, 0, sizeof data};
  const tw_type* type = type_of(array->dtype);
  text_clear(&t);
  text_add(&t, "\x93NUMPY\x01?__{'descr': '"); /* version 1.0 and the length replace "?__" */
  text_add(&t, type->npy ? type->npy : "|u1");
  text_add(&t, "', 'fortran_order': False, 'shape': (");
  for (int32_t i = 0; i < array->rank; ++i) {
    text_add_number(&t, array->dims[i]);
    text_add(&t, ",");
  }
  text_add(&t, "), }");
  while (t.length % 64 != 63) text_add(&t, " ");
  text_add(&t, "\n");
  data[7] = 0;
  data[8] = (char)((t.length - 10) & 255);
  data[9] = (char)((t.length - 10) >> 8);
  const tw_bytes pieces[] = {{(const uint8_t*)data, (uint64_t)t.length},
                             {array->data, (uint64_t)array->count * (uint64_t)type->bytes}};
  write_whole_file(path, pieces, 2);
}
