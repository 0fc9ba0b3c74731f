// Pages of mapped files leave the process. Pages without a file behind them stay.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "support/file_pages.h"

using namespace tw;

namespace {

constexpr size_t kBytes = 8 << 20;

// Returns the bytes of this memory that are resident in this process.
size_t resident(std::span<const std::byte> memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::vector<uint64_t> entries(memory.size() / page);
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
  const uintptr_t first = reinterpret_cast<uintptr_t>(memory.data()) / page;
  REQUIRE(::pread(map, entries.data(), static_cast<size_t>(bytes),
                  static_cast<off_t>(first * sizeof(uint64_t))) == bytes);
  ::close(map);
  return page * static_cast<size_t>(
                    std::ranges::count_if(entries, [](uint64_t e) { return e >> 63 != 0; }));
}

struct Mapped {
  explicit Mapped(int flags, int file = -1)
      : bytes(static_cast<std::byte*>(
                  ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file, 0)),
              kBytes) {
    REQUIRE(bytes.data() != MAP_FAILED);
    std::ranges::fill(bytes, std::byte{7});
    REQUIRE(resident(bytes) == kBytes);
  }
  ~Mapped() { ::munmap(bytes.data(), kBytes); }
  bool whole() const {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{7}; });
  }
  std::span<std::byte> bytes;
};

struct File {
  File() : file(std::tmpfile()), descriptor(::fileno(file)) {
    REQUIRE(::ftruncate(descriptor, kBytes) == 0);
  }
  ~File() { std::fclose(file); }
  std::FILE* file;
  int descriptor;
};

}  // namespace

TEST_CASE("pages of a file leave the process and come back with what was written") {
  const File file;
  const Mapped mapped(MAP_SHARED, file.descriptor);
  let_pages_go(mapped.bytes.subspan(1, kBytes - 2));
  // The range covers the first and the last page only in part.
  CHECK(resident(mapped.bytes) < kBytes / 2);
  CHECK(mapped.whole());
}

TEST_CASE("they leave while they are written too, until it is over") {
  const File file;
  const Mapped mapped(MAP_SHARED, file.descriptor);
  {
    const PagesLeave leaving(mapped.bytes);
    std::ranges::fill(mapped.bytes, std::byte{7});
  }
  CHECK(resident(mapped.bytes) == 0);
  CHECK(mapped.whole());
  std::ranges::fill(mapped.bytes, std::byte{7});
  CHECK(resident(mapped.bytes) == kBytes);
}

TEST_CASE("what no file has stays: memory, and what a process wrote for itself alone") {
  const File file;
  const Mapped memory(MAP_PRIVATE | MAP_ANONYMOUS), own(MAP_PRIVATE, file.descriptor);
  for (const Mapped* mapped : {&memory, &own}) {
    let_pages_go(mapped->bytes);
    { const PagesLeave leaving(mapped->bytes); }
    CHECK(resident(mapped->bytes) == kBytes);
    CHECK(mapped->whole());
  }
}
