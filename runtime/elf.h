/* Headers of an ELF file for this machine */
#ifndef TW_ELF_H
#define TW_ELF_H
#include <stdint.h>

typedef struct tw_elf_header {
  uint8_t identity[16];
  uint16_t type, machine;
  uint32_t version;
  uintptr_t entry, segments, sections;
  uint32_t flags;
  uint16_t header_size, segment_size, segment_count, section_size, section_count, names;
} tw_elf_header;

typedef struct tw_elf_segment {
#if UINTPTR_MAX > UINT32_MAX
  uint32_t type, flags;
  uintptr_t offset, address, physical, file_size, memory_size, alignment;
#else
  uint32_t type, offset, address, physical, file_size, memory_size, flags, alignment;
#endif
} tw_elf_segment;

enum { kLoad = 1, kWritable = 2 }; /* a segment's type and one of its flags */
#endif
