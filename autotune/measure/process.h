// A program started as a child, with a socket as its standard input for frames in both directions.
// The child may crash, hang or send garbage.
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
  // The child has none of this process's files, nor its signal mask, and a process group of its
  // own: Ctrl-C reaches only the parent, which then decides.
  static Expected<std::unique_ptr<ChildProcess>> start(const std::string& program,
                                                       const std::vector<std::string>& arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // ends the child

  bool send(FrameKind kind, std::string_view payload) { return send_frame(socket_, kind, payload); }
  // Waits for the next frame until the child has used this much processor time; a child that sleeps
  // has a multiple of that. Empty: it has closed the socket, or `late`.
  std::optional<Frame> next_frame(double processor_seconds, bool& late);

  struct End {
    int signal = 0;    // 0: it exited
    std::string text;  // "SIGSEGV (a bad address)"
  };
  // Ends the child and says how it ended. A child that has closed the socket gets a moment to exit
  // by itself; any other is killed.
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
