/* The runtime of freestanding objects in one unit, as runtime.c is for libraries. It takes only
 * memcpy, memmove and memset from the C library. */
// clang-format off: each file needs those before it.
#include "../helpers.c"
#include "soft_double.c"
#include "arm_memory.c"
#include "../text.c"
#include "../control.c"
#include "../indices.c"
#include "core.c"
// clang-format on
