/* All of the runtime of freestanding objects in one unit, as runtime.c is of libraries. Of the C
 * library it takes memcpy, memmove and memset. */
// clang-format off: each file stands on those before it.
#include "../helpers.c"
#include "soft_double.c"
#include "arm_memory.c"
#include "../text.c"
#include "../control.c"
#include "../indices.c"
#include "core.c"
// clang-format on
