/* Loads a library that Tilewright has written, as the system's loader would. A static program has
 * no loader. */
#ifndef TW_RUNNER_LOADER_H
#define TW_RUNNER_LOADER_H
#include "../tilewright.h"

/* Ends the program with a message where the file is not such a library, or not for this machine. */
const tw_api* load_library(const char* path);
#endif
