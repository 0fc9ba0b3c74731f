/* A program that runs, times and verifies the library beside it, and needs nothing but the kernel.
 * All of it is one unit, as runtime.c is for libraries. */
// clang-format off: each file needs those before it.
#include "../sys.c"
#include "../helpers.c"
#include "../core/arm_memory.c"
#include "../text.c"
#include "print.c"
#include "system.c"
#include "threads.c"
#include "loader.c"
#include "elements.c"
#include "npy.c"
#include "proto.c"
#include "arguments.c"
#include "inputs.c"
#include "session.c"
#include "compare.c"
#include "program.c"
// clang-format on
