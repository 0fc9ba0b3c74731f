// Files that are mapped and read or written once: their pages need not stay in this process's
// memory, as the system's cache has them.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>

namespace tw {

// What has been touched of the memory leaves the process, and comes back where it is touched again.
// Of memory that is no file's, nothing happens.
void let_pages_go(std::span<const std::byte> memory);

// While it lives, the same happens some dozens of times a second: for what is gone through once,
// from its beginning to its end.
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
