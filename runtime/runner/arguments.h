/* The command line of the runner */
#ifndef TW_RUNNER_ARGUMENTS_H
#define TW_RUNNER_ARGUMENTS_H
#include <stdint.h>

enum { kMostGiven = 64 };
typedef enum tw_command { kRun, kBench, kVerify } tw_command;

typedef struct tw_arguments {
  tw_command command;
  const char* library; /* NULL: the library beside the runner */
  const char *data, *output_dir;
  const char* inputs[kMostGiven];
  const char* dims[kMostGiven];
  int input_count, dim_count;
  int32_t random; /* 1: --random was given */
  uint64_t seed;
  int64_t threads, runs, warmup;
  double seconds, tolerance;
} tw_arguments;

/* Ends the program and prints the usage where the arguments are wrong. */
tw_arguments read_arguments(int count, char** words);
int64_t integer_of(const char* text, const char* flag);
#endif
