/* Maps the segments of a library, fills its relocations, and asks it for its interface. */
#include "loader.h"
#include "../elf.h"
#include "print.h"
#include "system.h"

enum { kDynamic = 2, kShared = 3 };
enum {
  kHash = 4,
  kStrings = 5,
  kSymbols = 6,
  kRela = 7,
  kRelaBytes = 8,
  kRel = 17,
  kRelBytes = 18
};
enum { kPltBytes = 2, kPlt = 23 };

typedef struct tw_dynamic {
  intptr_t tag;
  uintptr_t value;
} tw_dynamic;

#if UINTPTR_MAX > UINT32_MAX
typedef struct tw_elf_symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
} tw_elf_symbol;
typedef struct tw_relocation {
  uint64_t place, info;
  int64_t addend;
} tw_relocation;
#define TW_SYMBOL_OF(info) ((uint32_t)((info) >> 32))
#define TW_TYPE_OF(info) ((uint32_t)(info))
#else
typedef struct tw_elf_symbol {
  uint32_t name, value, size;
  uint8_t info, other;
  uint16_t section;
} tw_elf_symbol;
typedef struct tw_relocation {
  uint32_t place, info;
} tw_relocation;
#define TW_SYMBOL_OF(info) ((info) >> 8)
#define TW_TYPE_OF(info) ((info) & 255)
#endif

/* The machine's number, and its relocations: the library's own address; a symbol's address with an
 * addend; the same without one. */
#if defined(__x86_64__)
enum { kMachine = 62, kRelative = 8, kAbsolute = 1, kGlobal = 6, kJump = 7 };
#elif defined(__aarch64__)
enum { kMachine = 183, kRelative = 1027, kAbsolute = 257, kGlobal = 1025, kJump = 1026 };
#elif defined(__riscv)
enum { kMachine = 243, kRelative = 3, kAbsolute = 2, kGlobal = -1, kJump = 5 };
#else
enum { kMachine = 40, kRelative = 23, kAbsolute = 2, kGlobal = 21, kJump = 22 };
#endif

typedef struct tw_library {
  const char* path;
  tw_bytes file;
  uint8_t* base;
  const tw_elf_segment* segments;
  int count;
  const tw_elf_symbol* symbols;
  uint32_t symbol_count;
  const char* strings;
} tw_library;

static _Noreturn void refuse(const tw_library* l, const char* why) {
  fail(kUser, l->path, ": ", why);
}

static const tw_elf_header* read_header(tw_library* l) {
  const tw_elf_header* h = (const tw_elf_header*)(const void*)l->file.data;
  if (l->file.count < sizeof *h || h->identity[0] != 0x7f || h->identity[1] != 'E' ||
      h->identity[2] != 'L' || h->identity[3] != 'F' || h->type != kShared)
    refuse(l, "not a library");
  if (h->machine != kMachine || h->identity[4] != (sizeof(void*) == 8 ? 2 : 1))
    refuse(l, "a library for another processor");
  if (h->segment_size != sizeof(tw_elf_segment) || h->segments > l->file.count ||
      h->segment_count * sizeof(tw_elf_segment) > l->file.count - h->segments)
    refuse(l, "a damaged library: its program headers lie outside of the file");
  return h;
}

/* The bytes of address space that the segments span, and the largest alignment among them */
static uint64_t span_of(const tw_library* l, uint64_t* alignment) {
  uint64_t end = 0;
  *alignment = g_page_bytes;
  for (int i = 0; i < l->count; ++i) {
    const tw_elf_segment* s = &l->segments[i];
    if (s->type != kLoad) continue;
    if (s->offset > l->file.count || s->file_size > l->file.count - s->offset ||
        s->file_size > s->memory_size || s->memory_size > PTRDIFF_MAX ||
        s->address > PTRDIFF_MAX - s->memory_size)
      refuse(l, "a damaged library: a segment lies outside of the file");
    if ((s->address - s->offset) & (g_page_bytes - 1))
      refuse(l, "a library for smaller pages than this system has");
    if (s->address + s->memory_size > end) end = s->address + s->memory_size;
    if (s->alignment > *alignment && s->alignment <= 1 << 30) *alignment = s->alignment;
  }
  if (end == 0) refuse(l, "a damaged library: it has no segments");
  return end;
}

static void map_segment(const tw_library* l, const tw_elf_segment* s, long file) {
  const uintptr_t page = (uintptr_t)g_page_bytes - 1;
  uint8_t* from = l->base + (s->address & ~page);
  uint8_t* file_end = l->base + s->address + s->file_size;
  uint8_t* end = l->base + s->address + s->memory_size;
  const int rights = (s->flags & 4 ? 1 : 0) | (s->flags & 2 ? 2 : 0) | (s->flags & 1 ? 4 : 0);
  const int fixed = 0x12; /* private, fixed */
  if (s->file_size && mmap(from, (size_t)(file_end - from), rights, fixed, (int)file,
                           (long)(s->offset & ~page)) == (void*)-1)
    refuse(l, "cannot be mapped");
  if (end == file_end) return;
  uint8_t* fresh = (uint8_t*)(((uintptr_t)file_end + page) & ~page);
  if (!s->file_size) fresh = from;
  else memset(file_end, 0, (size_t)((end < fresh ? end : fresh) - file_end));
  if (end > fresh &&
      mmap(fresh, (size_t)(end - fresh), rights, fixed | 0x20 /* anonymous */, -1, 0) == (void*)-1)
    refuse(l, "no memory for its data");
}

static void map_library(tw_library* l) {
  uint64_t alignment;
  const uint64_t span = span_of(l, &alignment);
  uint8_t* room = mmap(0, (size_t)(span + alignment), 0 /* nothing */, 0x22, -1, 0);
  if (room == (void*)-1) refuse(l, "no room for it in the address space");
  l->base = (uint8_t*)(((uintptr_t)room + alignment - 1) & ~(uintptr_t)(alignment - 1));
  const long file = syscall(SYS_openat, -100L, l->path, 0x80000L, 0L);
  if (file < 0) refuse(l, "cannot be opened");
  for (int i = 0; i < l->count; ++i)
    if (l->segments[i].type == kLoad && l->segments[i].memory_size)
      map_segment(l, &l->segments[i], file);
  syscall(SYS_close, file);
}

/* The address of a symbol that the library defines, or of a function that it takes from the
 * program. */
static uintptr_t address_of(const tw_library* l, const tw_elf_symbol* symbol) {
  const char* name = l->strings + symbol->name;
  if (symbol->section) return (uintptr_t)l->base + symbol->value;
  const struct {
    const char* name;
    uintptr_t address;
  } known[] = {{"mmap", (uintptr_t)mmap},
               {"munmap", (uintptr_t)munmap},
               {"syscall", (uintptr_t)syscall},
               {"memcpy", (uintptr_t)memcpy},
               {"memset", (uintptr_t)memset},
               {"pthread_create", (uintptr_t)pthread_create},
               {"pthread_join", (uintptr_t)pthread_join}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (text_same(name, known[i].name)) return known[i].address;
  if (symbol->info >> 4 == 2 /* weak */) return 0;
  fail(kUser, l->path, " needs the function ", name);
}

static void relocate(const tw_library* l, uintptr_t table, uintptr_t bytes) {
  const tw_relocation* r = (const tw_relocation*)(void*)(l->base + table);
  for (; bytes >= sizeof *r; bytes -= sizeof *r, ++r) {
    uintptr_t* place = (uintptr_t*)(void*)(l->base + r->place);
    const int32_t type = (int32_t)TW_TYPE_OF(r->info);
    const tw_elf_symbol* symbol = &l->symbols[TW_SYMBOL_OF(r->info)];
#if UINTPTR_MAX > UINT32_MAX
    const uintptr_t addend = (uintptr_t)r->addend;
#else
    const uintptr_t addend = *place;
#endif
    if (type == kRelative) *place = (uintptr_t)l->base + addend;
    else if (type == kAbsolute) *place = address_of(l, symbol) + addend;
    else if (type == kGlobal || type == kJump) *place = address_of(l, symbol);
    else if (type != 0) refuse(l, "has a relocation that this runner does not know");
  }
}

static void read_dynamic(tw_library* l, const tw_dynamic* d) {
  uintptr_t tables[2] = {0, 0}, bytes[2] = {0, 0};
  for (; d->tag; ++d) {
    if (d->tag == kHash) l->symbol_count = ((const uint32_t*)(void*)(l->base + d->value))[1];
    if (d->tag == kStrings) l->strings = (const char*)l->base + d->value;
    if (d->tag == kSymbols) l->symbols = (const tw_elf_symbol*)(void*)(l->base + d->value);
    if (d->tag == kRela || d->tag == kRel) tables[0] = d->value;
    if (d->tag == kRelaBytes || d->tag == kRelBytes) bytes[0] = d->value;
    if (d->tag == kPlt) tables[1] = d->value;
    if (d->tag == kPltBytes) bytes[1] = d->value;
  }
  if (!l->strings || !l->symbols) refuse(l, "a damaged library: it has no symbols");
  for (int i = 0; i < 2; ++i) relocate(l, tables[i], bytes[i]);
}

const tw_api* load_library(const char* path) {
  tw_library l = {.path = path};
  if (!map_file(path, &l.file)) fail(kIo, "cannot open the library ", path, 0);
  const tw_elf_header* header = read_header(&l);
  l.segments = (const tw_elf_segment*)(const void*)(l.file.data + header->segments);
  l.count = header->segment_count;
  map_library(&l);
  for (int i = 0; i < l.count; ++i)
    if (l.segments[i].type == kDynamic)
      read_dynamic(&l, (const tw_dynamic*)(void*)(l.base + l.segments[i].address));
  for (uint32_t i = 1; i < l.symbol_count; ++i) {
    const tw_elf_symbol* symbol = &l.symbols[i];
    if (!symbol->section || !text_same(l.strings + symbol->name, TW_QUERY_SYMBOL)) continue;
    const tw_query_fn query = (tw_query_fn)((uintptr_t)l.base + symbol->value);
    const tw_api* api = query(TW_ABI_VERSION);
    if (!api) refuse(&l, "of a version of Tilewright that this runner does not know");
    return api;
  }
  refuse(&l, "not a library of Tilewright's: it has no " TW_QUERY_SYMBOL);
}
