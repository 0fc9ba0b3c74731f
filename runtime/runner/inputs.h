/* The inputs of a run: from files, or made up. */
#ifndef TW_RUNNER_INPUTS_H
#define TW_RUNNER_INPUTS_H
#include "arguments.h"
#include "files.h"

/* Fills arrays[0..input_count), and what they make the model's symbols be. Ends the program, and
 * says why, where something is missing or does not fit. */
void read_inputs(const tw_api* api, const tw_arguments* arguments, tw_array* arrays,
                 int64_t* symbols);
/* DIR/STEM_INDEX.pb or .npy, the first that is there; 0: neither. */
int stored_path(const char* dir, const char* stem, int32_t index, tw_text* path);
#endif
