// Pieces of a conversation over a socket: a kind, a length, and bytes. The other side may be gone
// or mad.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tw {

// started: the candidate's first run begins
enum class FrameKind : uint32_t { hello, job, started, result };
struct Frame {
  FrameKind kind = FrameKind::hello;
  std::string payload;
};

// false: nobody listens any more
bool send_frame(int socket, FrameKind kind, std::string_view payload);

class FrameReader {
 public:
  explicit FrameReader(int socket) : socket_(socket) {}
  enum class State { more, closed };  // closed: or what came is no frame
  State read();                       // waits for bytes, unless some are there
  std::optional<Frame> next();        // a whole frame that has come

 private:
  int socket_;
  std::string bytes_;
};

}  // namespace tw
