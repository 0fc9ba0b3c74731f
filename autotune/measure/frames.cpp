#include "autotune/measure/frames.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tw {
namespace {

struct Head {
  uint32_t kind = 0, magic = 0;
  uint64_t length = 0;
};
constexpr uint32_t kMagic = 0x54574d46;
constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr size_t kChunk = 1 << 20;

bool send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::send(socket, data, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

bool is_sound(const Head& head) {
  return head.magic == kMagic && head.length <= kMostBytes &&
         head.kind <= static_cast<uint32_t>(FrameKind::result);
}

}  // namespace

bool send_frame(int socket, FrameKind kind, std::string_view payload) {
  const Head head{static_cast<uint32_t>(kind), kMagic, payload.size()};
  return send_all(socket, reinterpret_cast<const char*>(&head), sizeof head) &&
         send_all(socket, payload.data(), payload.size());
}

FrameReader::State FrameReader::read() {
  const size_t had = bytes_.size();
  bytes_.resize(had + kChunk);
  ssize_t got = 0;
  do { got = ::recv(socket_, bytes_.data() + had, kChunk, 0); } while (got < 0 && errno == EINTR);
  bytes_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got <= 0) return State::closed;
  Head head;
  if (bytes_.size() < sizeof head) return State::more;
  std::memcpy(&head, bytes_.data(), sizeof head);
  return is_sound(head) ? State::more : State::closed;
}

std::optional<Frame> FrameReader::next() {
  Head head;
  if (bytes_.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes_.data(), sizeof head);
  if (!is_sound(head) || bytes_.size() - sizeof head < head.length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(head.kind), bytes_.substr(sizeof head, head.length)};
  bytes_.erase(0, sizeof head + head.length);
  return frame;
}

}  // namespace tw
