// Nothing stays behind when SIGINT, SIGTERM or SIGHUP ends a program that has asked for it.
#pragma once
#include <cstddef>
#include <string>

namespace tw {

// From now on these signals clean up before they end the process; those that are ignored stay so.
// For programs, before there are threads.
void clean_up_on_end_signals();

// Cleans up as the signals' handler does, once: false where another thread is at it. For handlers
// that end the process in their own way.
bool clean_up_at_end();
// Cleans up and ends the process by the signal. For handlers of signals that take the place of the
// one above.
void end_by_signal(int signal);

// A file, or a folder that holds nothing but files, that is removed if such a signal comes while
// this lives.
class RemovedOnEndSignal {
 public:
  explicit RemovedOnEndSignal(const std::string& path);
  RemovedOnEndSignal(const RemovedOnEndSignal&) = delete;
  ~RemovedOnEndSignal();

 private:
  size_t slot_;
  char* path_;  // of this object's until the handler has taken it
};

// Such a signal waits until this is gone: for steps that must not be torn apart. Short ones.
class EndSignalsWait {
 public:
  EndSignalsWait();
  EndSignalsWait(const EndSignalsWait&) = delete;
  ~EndSignalsWait();

 private:
  unsigned long before_[16];  // a sigset_t
};

}  // namespace tw
