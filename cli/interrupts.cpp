#include "cli/interrupts.h"

#include <iterator>

#include "support/end_signals.h"

namespace tw {
namespace {

std::atomic<bool>& interrupted() {  // set by a signal handler, which reaches nothing else
  static std::atomic<bool> flag{false};
  return flag;
}

}  // namespace

Interrupts::Interrupts() {
  interrupted() = false;
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    if (interrupted().exchange(true)) end_by_signal(signal);
  };
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& Interrupts::asked() const { return interrupted(); }

}  // namespace tw
