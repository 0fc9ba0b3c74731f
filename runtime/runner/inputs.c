#include "inputs.h"
#include "print.h"
#include "system.h"

/* SplitMix64, from Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014). */
static uint64_t split_mix(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Makes the same numbers as `tilewright run --random`. */
static void make_random(tw_array* array, uint64_t seed, uint64_t stream) {
  const tw_type* type = type_of(array->dtype);
  array->count = count_of(array->dims, array->rank, array->dtype);
  array->data = take_memory((uint64_t)array->count * (uint64_t)type->bytes);
  uint64_t state = seed;
  state = split_mix(&state) ^ (stream * 0xd1342543de82ef95u);
  for (int64_t i = 0; i < array->count; ++i) {
    const uint64_t bits = split_mix(&state);
    set_element(array->data, array->dtype, i,
                type->is_float ? (double)(uint32_t)(bits >> 40) * 0x1p-23 - 1.0
                               : (double)(uint32_t)(bits >> 63));
  }
}

int stored_path(const char* dir, const char* stem, int32_t index, tw_text* path) {
  static const char* const kEndings[] = {".pb", ".npy"};
  for (int i = 0; i < 2; ++i) {
    text_clear(path);
    text_add(path, dir);
    text_add(path, "/");
    text_add(path, stem);
    text_add(path, "_");
    text_add_number(path, index);
    text_add(path, kEndings[i]);
    if (file_exists(path->data)) return 1;
  }
  return 0;
}

/* The text behind "NAME="; NULL: the text begins otherwise. */
static const char* behind_name(const char* text, const char* name) {
  while (*name && *text == *name) ++text, ++name;
  return !*name && *text == '=' ? text + 1 : 0;
}

/* The file that --input names for this input; NULL: none. */
static const char* given_file(const tw_api* api, const tw_arguments* a, int32_t input) {
  for (int i = 0; i < a->input_count; ++i) {
    const char* file = behind_name(a->inputs[i], api->inputs[input].name);
    if (file) return file;
    if (api->input_count == 1 && file_exists(a->inputs[i])) return a->inputs[i];
  }
  return 0;
}

static void check_names(const tw_api* api, const tw_arguments* a) {
  for (int i = 0; i < a->input_count; ++i) {
    int32_t known = api->input_count == 1 && file_exists(a->inputs[i]);
    for (int32_t k = 0; k < api->input_count; ++k)
      known |= behind_name(a->inputs[i], api->inputs[k].name) != 0;
    if (!known)
      fail(kUser, "--input ", a->inputs[i], ": NAME=FILE with the name of an input is expected");
  }
}

static void bind_dims(const tw_api* api, const tw_arguments* a, int64_t* symbols) {
  for (int32_t s = 0; s < api->symbol_count; ++s) symbols[s] = -1;
  for (int i = 0; i < a->dim_count; ++i) {
    int32_t s = 0;
    const char* value = 0;
    for (; s < api->symbol_count && !(value = behind_name(a->dims[i], api->symbols[s])); ++s) {}
    if (!value) fail(kUser, "--dim ", a->dims[i], ": the model has no such free dimension");
    symbols[s] = integer_of(value, "--dim NAME=");
  }
}

/* Binds the symbols in an array's shape. The library itself checks the other extents. */
static void bind_shape(const tw_tensor_info* info, const tw_array* array, int64_t* symbols,
                       int32_t symbol_count) {
  for (int32_t d = 0; d < info->rank && d < array->rank; ++d) {
    const int64_t symbol = -1 - info->dims[d];
    if (symbol >= 0 && symbol < symbol_count && symbols[symbol] < 0)
      symbols[symbol] = array->dims[d];
  }
}

/* The extents of an input for which there is no file. */
static void take_shape(const tw_api* api, int32_t input, const int64_t* symbols, tw_array* array) {
  const tw_tensor_info* info = &api->inputs[input];
  for (int32_t s = 0; s < api->symbol_count; ++s)
    if (symbols[s] < 0)
      fail(kUser, "the dimension ", api->symbols[s],
           " is free: give --dim, or an input that has it");
  array->dtype = info->dtype;
  array->rank = info->rank;
  api->input_dims(input, symbols, array->dims);
}

void read_inputs(const tw_api* api, const tw_arguments* a, tw_array* arrays, int64_t* symbols) {
  char data[4096];
  tw_text path = {data, 0, sizeof data};
  check_names(api, a);
  bind_dims(api, a, symbols);
  for (int32_t i = 0; i < api->input_count; ++i) {
    const char* file = given_file(api, a, i);
    if (!file && a->data && stored_path(a->data, "input", i, &path)) file = path.data;
    if (!file || !(ends_with(file, ".npy") || ends_with(file, ".pb"))) continue;
    arrays[i] = read_array(file);
    /* Types that NumPy lacks are written as bytes. */
    if (arrays[i].dtype == TW_U8 && !type_of(api->inputs[i].dtype)->npy)
      arrays[i].dtype = api->inputs[i].dtype;
    bind_shape(&api->inputs[i], &arrays[i], symbols, api->symbol_count);
  }
  for (int32_t i = 0; i < api->input_count; ++i) {
    const char* file = given_file(api, a, i);
    if (arrays[i].data) continue;
    if (!file && !a->random)
      fail(kUser, "no data for the input ", api->inputs[i].name, ": --input or --random");
    take_shape(api, i, symbols, &arrays[i]);
    if (file && ends_with(file, ".npz"))
      fail(kUser, "an archive is no input: unpack ", file, ", and give its .npy files");
    if (file) arrays[i] = read_raw(file, arrays[i].dtype, arrays[i].dims, arrays[i].rank);
    else make_random(&arrays[i], a->seed, (uint64_t)i);
  }
}
