/* Defines the names by which ARM's run-time ABI calls memcpy, memmove and memset. */
#include "../sys.h"

#if defined(__arm__)
extern void* memmove(void* to, const void* from, size_t bytes);

#define TW_COPY(name, function) \
  TW_HELPER void name(void* to, const void* from, size_t bytes) { function(to, from, bytes); }
#define TW_SET(name) \
  TW_HELPER void name(void* to, size_t bytes, int value) { memset(to, value, bytes); }
#define TW_CLEAR(name) \
  TW_HELPER void name(void* to, size_t bytes) { memset(to, 0, bytes); }
TW_COPY(__aeabi_memcpy, memcpy)
TW_COPY(__aeabi_memcpy4, memcpy)
TW_COPY(__aeabi_memcpy8, memcpy)
TW_COPY(__aeabi_memmove, memmove)
TW_COPY(__aeabi_memmove4, memmove)
TW_COPY(__aeabi_memmove8, memmove)
TW_SET(__aeabi_memset)
TW_SET(__aeabi_memset4)
TW_SET(__aeabi_memset8)
TW_CLEAR(__aeabi_memclr)
TW_CLEAR(__aeabi_memclr4)
TW_CLEAR(__aeabi_memclr8)
#endif
