// Frames of a conversation over a socket: a kind, a length, and bytes. The other side may be gone
// or may send garbage.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tw {

// `started` means that the candidate's first run begins.
enum class FrameKind : uint32_t { hello, job, started, result };
struct Frame {
  FrameKind kind = FrameKind::hello;
  std::string payload;
};

// False: the other side is gone.
bool send_frame(int socket, FrameKind kind, std::string_view payload);

class FrameReader {
 public:
  explicit FrameReader(int socket) : socket_(socket) {}
  enum class State { more, closed };  // closed: or the bytes are no frame
  State read();                       // waits for bytes if there are none
  std::optional<Frame> next();        // a complete frame, if one has arrived

 private:
  int socket_;
  std::string bytes_;
};

}  // namespace tw
