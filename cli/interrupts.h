// Ctrl-C in a long command: the first signal asks for an orderly end, the second one ends the
// process.
#pragma once
#include <signal.h>

#include <atomic>

namespace tw {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  const std::atomic<bool>& asked() const;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3] = {};
};

}  // namespace tw
