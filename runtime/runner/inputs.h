/* Makes the inputs of a run: from files, or from random numbers. */
#ifndef TW_RUNNER_INPUTS_H
#define TW_RUNNER_INPUTS_H
#include "arguments.h"
#include "files.h"

/* Fills arrays[0..input_count) and the symbols that they bind. Ends the program with a message
 * where something is missing or does not fit. */
void read_inputs(const tw_api* api, const tw_arguments* arguments, tw_array* arrays,
                 int64_t* symbols);
/* The path DIR/STEM_INDEX.pb or .npy, the first that exists; 0: neither does. */
int stored_path(const char* dir, const char* stem, int32_t index, tw_text* path);
#endif
