#include "support/changed_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "support/end_signals.h"

namespace tw {
namespace {

std::atomic<int> exit_code_then{1};

void say(const char* text, size_t size) {
  [[maybe_unused]] const ssize_t done = ::write(STDERR_FILENO, text, size);
}

// Reads a hexadecimal number and moves `text` behind the character that ends it.
uintptr_t number_at(const char*& text) {
  uintptr_t value = 0;
  for (; *text && *text != '-' && *text != ' '; ++text)
    value = value * 16 + static_cast<uintptr_t>(*text <= '9' ? *text - '0' : *text - 'a' + 10);
  if (*text) ++text;
  return value;
}

// The path in a line of /proc/self/maps, "begin-end rights offset device inode   path". Null if the
// address is outside the line's range, or no file is mapped there.
const char* path_if_holds(const char* line, uintptr_t address) {
  const uintptr_t begin = number_at(line), end = number_at(line);
  return begin <= address && address < end ? std::strchr(line, '/') : nullptr;
}

// Ends the process if the address lies in a mapped file. It runs in a signal handler, so it may use
// neither the heap nor streams.
void end_for(uintptr_t address) {
  static char line[8192];
  size_t length = 0;
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (char c = 0; maps >= 0 && ::read(maps, &c, 1) == 1;) {
    if (c != '\n') {
      if (length + 1 < sizeof line) line[length++] = c >= ' ' && c <= '~' ? c : '?';
      continue;
    }
    line[length] = '\0', length = 0;
    const char* path = path_if_holds(line, address);
    if (!path) continue;
    while (!clean_up_at_end()) ::pause();  // another thread is about to end the process
    constexpr char kBefore[] = "error: '", kBehind[] = "' was cut off while it was read\n";
    say(kBefore, sizeof kBefore - 1);
    say(path, std::strlen(path));
    say(kBehind, sizeof kBehind - 1);
    ::_exit(exit_code_then);
  }
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) end_for(reinterpret_cast<uintptr_t>(info->si_addr));
  ::signal(signal, SIG_DFL);  // the access faults again, and the signal ends the process
}

}  // namespace

void exit_when_mapped_files_shrink(int code) {
  exit_code_then = code;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tw
