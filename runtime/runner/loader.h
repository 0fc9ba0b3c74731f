/* Loads a library that Tilewright has written, as the system's loader would: a static program has
 * none. */
#ifndef TW_RUNNER_LOADER_H
#define TW_RUNNER_LOADER_H
#include "../tilewright.h"

/* Ends the program, and says why, where the file is not such a library or not for this machine. */
const tw_api* load_library(const char* path);
#endif
