/* Reads an ONNX TensorProto from the wire format of protocol buffers. */
#include "files.h"
#include "print.h"
#include "system.h"

typedef struct tw_field {
  uint64_t number, value; /* value of a varint */
  uint32_t kind;          /* 0: varint, 1: 8 bytes, 2: bytes with their length, 5: 4 bytes */
  tw_bytes bytes;
} tw_field;

static int take_varint(tw_bytes* from, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && from->count; shift += 7) {
    const uint8_t byte = *from->data;
    ++from->data;
    --from->count;
    *value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return 1;
  }
  return 0;
}

static int take_field(tw_bytes* from, tw_field* field) {
  uint64_t key, size = 0;
  if (!take_varint(from, &key)) return 0;
  field->number = key >> 3;
  field->kind = (uint32_t)(key & 7);
  if (field->kind == 0) return take_varint(from, &field->value);
  if (field->kind == 1) size = 8;
  else if (field->kind == 5) size = 4;
  else if (field->kind != 2 || !take_varint(from, &size)) return 0;
  if (size > from->count) return 0;
  field->bytes = (tw_bytes){from->data, size};
  from->data += size;
  from->count -= size;
  return 1;
}

enum { kDims = 1, kType = 2, kFloats = 4, kInts = 5, kStringData = 6, kLongs = 7, kRaw = 9 };
enum { kDoubles = 10, kUnsignedLongs = 11, kLocation = 14 };

static _Noreturn void bad_proto(const char* path, const char* why) {
  fail(kUser, path, ": no ONNX tensor: ", why);
}

/* Bits of an element. Types narrower than a byte are packed in the file, with the first element in
 * the lowest bits. */
static uint32_t bits_of(int32_t dtype) {
  switch (dtype) {
    case TW_U4:
    case TW_I4:
    case TW_F4E2M1: return 4;
    case TW_U2:
    case TW_I2: return 2;
    default: return 8;
  }
}

/* Unpacks the elements of one byte to `at` and on, up to the end of the array. The result is their
 * number. */
static int64_t unpack(tw_array* a, int64_t at, uint8_t packed) {
  const uint32_t bits = bits_of(a->dtype);
  const int sign = a->dtype == TW_I4 || a->dtype == TW_I2;
  int64_t i = 0;
  for (; i < 8 / bits && at + i < a->count; ++i) {
    const uint32_t value = packed >> (i * bits) & ((1u << bits) - 1);
    const int negative = sign && value >> (bits - 1);
    ((uint8_t*)a->data)[at + i] = (uint8_t)(negative ? value | ~0u << bits : value);
  }
  return i;
}

/* Reads the numbers of a repeated field, packed or one by one. */
static void take_numbers(tw_array* a, const tw_field* field, int64_t* filled, const char* path) {
  const int32_t bytes = type_of(a->dtype)->bytes;
  const int fixed = field->number == kFloats ? 4 : field->number == kDoubles ? 8 : 0;
  tw_bytes rest = field->bytes;
  for (int first = 1; field->kind == 0 ? first : rest.count > 0; first = 0) {
    uint64_t value = field->value;
    if (*filled == a->count) bad_proto(path, "it has more elements than its shape");
    uint8_t* at = (uint8_t*)a->data + *filled * bytes;
    if (fixed) {
      if (rest.count < (uint64_t)fixed || fixed != bytes) bad_proto(path, "bad elements");
      memcpy(at, rest.data, (size_t)fixed);
      rest.data += fixed;
      rest.count -= (uint64_t)fixed;
    } else {
      if (field->kind != 0 && !take_varint(&rest, &value)) bad_proto(path, "it is cut short");
      if (bits_of(a->dtype) < 8) { /* a number has the elements of one packed byte */
        *filled += unpack(a, *filled, (uint8_t)value);
        continue;
      }
      memcpy(at, &value, (size_t)bytes); /* little endian; halves come as their bits */
    }
    ++*filled;
  }
}

static void read_head(tw_array* array, tw_bytes file, const char* path) {
  tw_field field;
  while (file.count) {
    if (!take_field(&file, &field)) bad_proto(path, "it is cut short");
    if (field.number == kType) array->dtype = (int32_t)field.value;
    if (field.number == kLocation && field.value) bad_proto(path, "its bytes are another file's");
    if (field.number != kDims) continue;
    tw_bytes rest = field.bytes;
    for (int first = 1; field.kind == 0 ? first : rest.count > 0; first = 0) {
      uint64_t value = field.value;
      if (array->rank == 64 || (field.kind != 0 && !take_varint(&rest, &value)))
        bad_proto(path, "a bad shape");
      array->dims[array->rank++] = (int64_t)value;
    }
  }
}

static void take_raw(tw_array* a, tw_bytes raw, uint64_t bytes, const char* path) {
  const uint32_t each = 8 / bits_of(a->dtype);
  if (raw.count != (bytes + each - 1) / each)
    bad_proto(path, "its bytes are not those of its shape");
  if (each == 1) {
    memcpy(a->data, raw.data, (size_t)bytes);
    return;
  }
  int64_t filled = 0;
  for (uint64_t i = 0; i < raw.count; ++i) filled += unpack(a, filled, raw.data[i]);
}

static tw_array parse_proto(tw_bytes file, const char* path) {
  tw_array array = {.dtype = 0};
  tw_field field = {0};
  int64_t filled = 0;
  read_head(&array, file, path);
  array.count = count_of(array.dims, array.rank, array.dtype);
  const uint64_t bytes = (uint64_t)array.count * (uint64_t)type_of(array.dtype)->bytes;
  if (bytes / 8 > file.count) /* each number takes at least one byte of the file */
    bad_proto(path, "it has fewer elements than its shape");
  array.data = take_memory(bytes);
  while (file.count && take_field(&file, &field)) {
    if (field.number == kRaw && field.kind == 2) {
      take_raw(&array, field.bytes, bytes, path);
      filled = array.count;
    } else if (field.number == kFloats || field.number == kInts || field.number == kLongs ||
               field.number == kDoubles || field.number == kUnsignedLongs) {
      take_numbers(&array, &field, &filled, path);
    }
  }
  if (filled != array.count) bad_proto(path, "it has fewer elements than its shape");
  return array;
}

tw_array read_array(const char* path) {
  tw_bytes file = {0, 0};
  if (!map_file(path, &file)) fail(kIo, "cannot read ", path, 0);
  return ends_with(path, ".pb") ? parse_proto(file, path) : parse_npy(file, path);
}
