#include "support/end_signals.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tw {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t kPaths = 64;  // the limit of paths to remove; further ones stay behind
constexpr int kMostWaits = 5000, kMostRounds = 100;

std::array<std::atomic<char*>, kPaths> paths;
std::atomic<int> steps{0};  // running steps that must not be torn apart
std::atomic<bool> ending{false};

static_assert(sizeof(sigset_t) <= 16 * sizeof(unsigned long));

void sleep_a_millisecond() {
  const timespec time{0, 1000000};
  ::nanosleep(&time, nullptr);
}

sigset_t end_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kSignals) ::sigaddset(&set, signal);
  return set;
}

struct Entry {  // the record of getdents64; a handler cannot use readdir, which may allocate
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  unsigned char kind;
  char name[];
};

void empty_folder(int folder) {
  alignas(Entry) char buffer[4096];
  ::lseek(folder, 0, SEEK_SET);
  for (long bytes = 0; (bytes = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;)
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      ::unlinkat(folder, entry->name, 0);  // "." and ".." are refused
      at += entry->size;
    }
}

void remove(const char* path) {
  if (::unlink(path) == 0 || errno == ENOENT) return;
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  for (int round = 0; round < kMostRounds; ++round) {  // other threads may still write into it
    empty_folder(folder);
    if (::rmdir(path) == 0 || errno != ENOTEMPTY) break;
  }
  ::close(folder);
}

}  // namespace

bool clean_up_at_end() {
  if (ending.exchange(true)) return false;  // another thread cleans up
  for (int i = 0; i < kMostWaits && steps > 0; ++i) sleep_a_millisecond();
  for (std::atomic<char*>& path : paths)
    if (const char* taken = path.exchange(nullptr)) remove(taken);
  return true;
}

void end_by_signal(int signal) {
  if (!clean_up_at_end()) return;
  ::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void clean_up_on_end_signals() {
  for (const int signal : kSignals) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = end_by_signal;
    action.sa_flags = SA_RESTART;
    action.sa_mask = end_signals();
    ::sigaction(signal, &action, nullptr);
  }
}

RemovedOnEndSignal::RemovedOnEndSignal(const std::string& path)
    : slot_(0), path_(::strdup(path.c_str())) {
  for (; slot_ < kPaths; ++slot_) {
    char* none = nullptr;
    if (paths[slot_].compare_exchange_strong(none, path_)) return;
  }
}

RemovedOnEndSignal::~RemovedOnEndSignal() {
  char* mine = path_;
  if (slot_ == kPaths || paths[slot_].compare_exchange_strong(mine, nullptr)) std::free(path_);
}

EndSignalsWait::EndSignalsWait() {
  const sigset_t set = end_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  std::memcpy(before_, &before, sizeof before);
  ++steps;
  if (!ending) return;
  --steps;
  while (true) ::pause();  // the process is about to end
}

EndSignalsWait::~EndSignalsWait() {
  sigset_t before;
  std::memcpy(&before, before_, sizeof before);
  --steps;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tw
