#include "arguments.h"
#include "print.h"
#include "system.h"

static const char kUsageText[] =
    "usage: MODEL.run run|bench|verify [LIBRARY] [OPTIONS]\n"
    "LIBRARY: default: MODEL.so beside this file\n"
    "  -i, --input NAME=FILE  a .npy or ONNX .pb file, or bytes alone; NAME= may be left out when\n"
    "                         the model has one input\n"
    "  --random SEED          make up the inputs that no file gives; bench and verify: default 0\n"
    "  --data DIR             input_0.npy or .pb, ...; verify: output_0.npy or .pb, ...\n"
    "  --dim NAME=N           bind a free dimension, where the inputs do not\n"
    "  --threads N            0 (default): as many as this process may use\n"
    "  -d, --output-dir DIR   run: write every output there as NAME.npy\n"
    "  --runs N, --seconds S  bench: so many runs, or for so long; default 1 second\n"
    "  --warmup N             bench: runs before the clock starts; default 3\n"
    "  --tolerance T          verify: largest error, of an output's range; default 1e-4\n"
    "exit codes: 0 done, 1 a wrong file or value, 2 usage, 3 unsupported, 4 results differ,\n"
    "5 a file cannot be read or written\n";

static _Noreturn void bad_usage(const char* a, const char* b) {
  print(kUsageText);
  fail(kUsage, a, b, 0);
}

int64_t integer_of(const char* text, const char* flag) {
  int64_t value = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, *at - '0', &value))
      break;
  if (*at || at == text) bad_usage("a number is expected behind ", flag);
  return value;
}

/* Reads a number like "0.5" or "1e-4". */
static double number_of(const char* text, const char* flag) {
  double value = 0, scale = 1;
  int point = 0, digits = 0;
  const char* at = text;
  for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); ++at) {
    if (*at == '.') {
      point = 1;
      continue;
    }
    value = value * 10 + (*at - '0');
    if (point) scale *= 10;
    ++digits;
  }
  if (digits && *at == 'e') {
    const int minus = at[1] == '-';
    int64_t exponent = integer_of(at + 1 + minus, flag);
    for (; exponent > 0 && exponent < 400; --exponent) {
      if (minus) scale *= 10;
      else value *= 10;
    }
    return value / scale;
  }
  if (*at || !digits) bad_usage("a number is expected behind ", flag);
  return value / scale;
}

static void add_given(const char** list, int* count, const char* word, const char* flag) {
  if (*count == kMostGiven) bad_usage("too many times ", flag);
  list[(*count)++] = word;
}

static void take_flag(tw_arguments* a, const char* flag, const char* value) {
  if (text_same(flag, "-i") || text_same(flag, "--input"))
    add_given(a->inputs, &a->input_count, value, flag);
  else if (text_same(flag, "--dim")) add_given(a->dims, &a->dim_count, value, flag);
  else if (text_same(flag, "--data")) a->data = value;
  else if (text_same(flag, "-d") || text_same(flag, "--output-dir")) a->output_dir = value;
  else if (text_same(flag, "--random")) a->random = 1, a->seed = (uint64_t)integer_of(value, flag);
  else if (text_same(flag, "--threads")) a->threads = integer_of(value, flag);
  else if (text_same(flag, "--runs")) a->runs = integer_of(value, flag);
  else if (text_same(flag, "--warmup")) a->warmup = integer_of(value, flag);
  else if (text_same(flag, "--seconds")) a->seconds = number_of(value, flag);
  else if (text_same(flag, "--tolerance")) a->tolerance = number_of(value, flag);
  else bad_usage("there is no flag ", flag);
}

tw_arguments read_arguments(int count, char** words) {
  tw_arguments a = {.warmup = 3, .seconds = 1, .tolerance = 1e-4};
  if (count < 2) bad_usage("no command", 0);
  if (text_same(words[1], "--help") || text_same(words[1], "-h")) {
    print(kUsageText);
    tw_exit(kOk);
  }
  if (text_same(words[1], "run")) a.command = kRun;
  else if (text_same(words[1], "bench")) a.command = kBench;
  else if (text_same(words[1], "verify")) a.command = kVerify;
  else bad_usage("there is no command ", words[1]);
  for (int i = 2; i < count; ++i) {
    if (words[i][0] != '-') {
      if (a.library) bad_usage("two libraries: ", words[i]);
      a.library = words[i];
      continue;
    }
    if (i + 1 == count) bad_usage("a value is expected behind ", words[i]);
    take_flag(&a, words[i], words[i + 1]);
    ++i;
  }
  if (a.threads > 4096 || a.runs > 1000000) bad_usage("a number is too large", 0);
  if (a.command == kVerify && !a.data) bad_usage("verify needs --data with stored outputs", 0);
  if (a.command != kRun) a.random = 1;
  return a;
}
