// A program started as a child, to talk to in frames over a socket that is its standard input. It
// may crash, hang or talk nonsense.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/measure/frames.h"
#include "support/diag.h"

namespace tw {

class ChildProcess {
 public:
  // Without this process's files and signal mask, and in a process group of its own: Ctrl-C is for
  // the parent, which then decides.
  static Expected<std::unique_ptr<ChildProcess>> start(const std::string& program,
                                                       const std::vector<std::string>& arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // ends it

  bool send(FrameKind kind, std::string_view payload) { return send_frame(socket_, kind, payload); }
  // Waits for the next frame while the child takes so many seconds of processor time; one that
  // sleeps instead has a multiple of that. None: it has closed the socket, or `late`.
  std::optional<Frame> next_frame(double processor_seconds, bool& late);

  struct End {
    int signal = 0;    // 0: it ended by itself
    std::string text;  // "SIGSEGV (a bad address)"
  };
  // Says how it ended. A child that has closed the socket is given a moment to do so by itself; any
  // other is killed.
  End end(bool closed);

 private:
  ChildProcess(pid_t pid, int socket) : pid_(pid), socket_(socket), reader_(socket) {}
  double processor_seconds() const;
  bool is_gone() const;

  pid_t pid_;
  int socket_;
  FrameReader reader_;
};

}  // namespace tw
