// Pages of mapped files that are read or written once. They need not stay in this process's memory,
// as the system's cache has them.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>

namespace tw {

// Gives back the pages of `memory` that have been touched; a page returns when it is touched again.
// Does nothing for memory that no file backs.
void let_pages_go(std::span<const std::byte> memory);

// Calls let_pages_go some dozens of times a second while it lives. For memory that is read or
// written once, from beginning to end.
class PagesLeave {
 public:
  explicit PagesLeave(std::span<const std::byte> memory);
  ~PagesLeave();
  PagesLeave(const PagesLeave&) = delete;
  PagesLeave& operator=(const PagesLeave&) = delete;

 private:
  void run();

  std::span<const std::byte> pages_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace tw
