#include "support/file_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace tw {
namespace {

// For fewer bytes, reading /proc/self/maps costs more than it saves.
constexpr size_t kLeastBytes = 1 << 20;
constexpr std::chrono::milliseconds kTurn(20);

struct Mapping {
  uintptr_t begin = 0, end = 0;
};

// Mapped files without private writable mappings: only these pages can be read again.
std::vector<Mapping> mapped_files() {
  std::vector<Mapping> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    unsigned long begin = 0, end = 0, inode = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, rights, &inode) != 4 ||
        inode == 0 || (rights[1] == 'w' && rights[3] != 's'))
      continue;
    mapping.begin = begin, mapping.end = end;
    out.push_back(mapping);
  }
  return out;
}

std::span<const std::byte> whole_pages(std::span<const std::byte> memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t begin = (at + page - 1) / page * page, end = (at + memory.size()) / page * page;
  return begin < end ? memory.subspan(begin - at, end - begin) : std::span<const std::byte>();
}

// The whole pages of the memory, if a mapped file holds them; else an empty span.
std::span<const std::byte> in_file(std::span<const std::byte> memory) {
  const std::span<const std::byte> pages = whole_pages(memory);
  if (pages.size() < kLeastBytes) return {};
  const auto begin = reinterpret_cast<uintptr_t>(pages.data()), end = begin + pages.size();
  const auto holds = [&](const Mapping& m) { return m.begin <= begin && end <= m.end; };
  return std::ranges::any_of(mapped_files(), holds) ? pages : std::span<const std::byte>();
}

void let_go(std::span<const std::byte> pages) {
  if (pages.empty()) return;
  ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_DONTNEED);
}

}  // namespace

void let_pages_go(std::span<const std::byte> memory) { let_go(in_file(memory)); }

PagesLeave::PagesLeave(std::span<const std::byte> memory) : pages_(in_file(memory)) {
  if (!pages_.empty()) thread_ = std::thread([this] { run(); });
}

PagesLeave::~PagesLeave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void PagesLeave::run() {
  std::unique_lock lock(mutex_);
  for (bool over = false; !over;) {
    over = wake_.wait_for(lock, kTurn, [&] { return over_; });
    let_go(pages_);
  }
}

}  // namespace tw
