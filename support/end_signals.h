// Clean-up of temporary files when SIGINT, SIGTERM or SIGHUP ends a program that has asked for it.
#pragma once
#include <cstddef>
#include <string>

namespace tw {

// From here on, these signals clean up before they end the process; ignored ones stay ignored.
// Programs call it before they have threads.
void clean_up_on_end_signals();

// Cleans up as the signal handler does. Returns false if another thread has begun it. For handlers
// that end the process in their own way.
bool clean_up_at_end();
// Cleans up and ends the process by the signal. For handlers that replace the one above.
void end_by_signal(int signal);

// Removes a file, or a folder that contains only files, if an end signal comes while this object
// lives.
class RemovedOnEndSignal {
 public:
  explicit RemovedOnEndSignal(const std::string& path);
  RemovedOnEndSignal(const RemovedOnEndSignal&) = delete;
  ~RemovedOnEndSignal();

 private:
  size_t slot_;
  char* path_;  // the object's own until the handler takes it
};

// Holds end signals back while it lives, for short steps that must not be torn apart.
class EndSignalsWait {
 public:
  EndSignalsWait();
  EndSignalsWait(const EndSignalsWait&) = delete;
  ~EndSignalsWait();

 private:
  unsigned long before_[16];  // a sigset_t
};

}  // namespace tw
