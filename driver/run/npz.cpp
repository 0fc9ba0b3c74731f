#include "driver/run/npz.h"

#include <zlib.h>

#include <algorithm>
#include <string_view>

namespace tw {
namespace {

constexpr uint32_t kEndMagic = 0x06054b50, kEntryMagic = 0x02014b50, kLocalMagic = 0x04034b50;
constexpr size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kMaxComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint64_t kMaxExpansion = 1100;  // deflate cannot expand more than 1032 times

using Bytes = std::span<const std::byte>;

uint32_t little(Bytes bytes, size_t offset, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= static_cast<uint32_t>(bytes[offset + static_cast<size_t>(i)]) << (8 * i);
  return value;
}

struct Entry {
  std::string name;
  uint32_t flags = 0, method = 0, crc = 0, packed = 0, size = 0, local = 0;
};

class Archive {
 public:
  Archive(Bytes bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Expected<std::vector<Entry>> entries() const {
    TW_ASSIGN(const size_t end, find_end());
    const uint32_t count = little(bytes_, end + 10, 2);
    size_t at = little(bytes_, end + 16, 4);
    std::vector<Entry> list;
    for (uint32_t i = 0; i < count; ++i) {
      if (!holds(at, kEntrySize) || little(bytes_, at, 4) != kEntryMagic)
        return damaged("its directory is cut off");
      Entry e;
      e.flags = little(bytes_, at + 8, 2);
      e.method = little(bytes_, at + 10, 2);
      e.crc = little(bytes_, at + 16, 4);
      e.packed = little(bytes_, at + 20, 4);
      e.size = little(bytes_, at + 24, 4);
      e.local = little(bytes_, at + 42, 4);
      const size_t name = little(bytes_, at + 28, 2);
      const size_t rest = size_t{little(bytes_, at + 30, 2)} + little(bytes_, at + 32, 2);
      if (!holds(at + kEntrySize, name + rest)) return damaged("its directory is cut off");
      e.name.assign(reinterpret_cast<const char*>(bytes_.data()) + at + kEntrySize, name);
      if (e.size == UINT32_MAX || e.packed == UINT32_MAX || e.local == UINT32_MAX)
        return make_error(DiagCode::limit, "'{0}': members beyond 4 GiB are not read", file_);
      at += kEntrySize + name + rest;
      list.push_back(std::move(e));
    }
    TW_TRY(check_apart(list));
    return list;
  }

  Expected<std::vector<std::byte>> unpack(const Entry& e) const {
    if (!holds(e.local, kLocalSize) || little(bytes_, e.local, 4) != kLocalMagic)
      return damaged("member '" + e.name + "' is not there");
    const size_t start = size_t{e.local} + kLocalSize + little(bytes_, e.local + 26, 2) +
                         little(bytes_, e.local + 28, 2);
    if (!holds(start, e.packed)) return damaged("member '" + e.name + "' is cut off");
    if (e.flags & 1)
      return make_error(DiagCode::invalid_argument, "'{0}': member '{1}' is encrypted", file_,
                        e.name);
    const Bytes packed = bytes_.subspan(start, e.packed);
    std::vector<std::byte> out;
    if (e.method == kStored) {
      if (e.packed != e.size) return damaged("member '" + e.name + "' states two sizes");
      out.assign(packed.begin(), packed.end());
    } else if (e.method == kDeflated) {
      if (uint64_t{e.size} > kMaxExpansion * (uint64_t{e.packed} + 1))
        return damaged("member '" + e.name + "' states a wrong size");
      out.resize(e.size);
      if (!inflate_into(packed, out)) return damaged("member '" + e.name + "' does not inflate");
    } else {
      return make_error(
          DiagCode::invalid_argument,
          "'{0}': member '{1}' is compressed by method {2}; stored and deflated are read", file_,
          e.name, e.method);
    }
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size());
    if (sum != e.crc) return damaged("member '" + e.name + "' has a wrong checksum");
    return out;
  }

 private:
  bool holds(size_t offset, size_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  // Refuses members that share bytes: they could unfold to more than the file can hold.
  Error check_apart(const std::vector<Entry>& list) const {
    std::vector<const Entry*> order;
    for (const Entry& e : list) order.push_back(&e);
    std::ranges::sort(order, {}, [](const Entry* e) { return e->local; });
    for (size_t i = 1; i < order.size(); ++i) {
      const Entry &before = *order[i - 1], &e = *order[i];
      if (uint64_t{before.local} + kLocalSize + before.packed > e.local)
        return damaged("members '" + before.name + "' and '" + e.name + "' share bytes");
    }
    return Error::success();
  }

  Error damaged(const std::string& why) const {
    return make_error(DiagCode::invalid_argument, "'{0}' is not a readable .npz file: {1}", file_,
                      why);
  }

  Expected<size_t> find_end() const {
    if (bytes_.size() < kEndSize) return damaged("no zip directory");
    const size_t last = bytes_.size() - kEndSize;
    for (size_t back = 0; back <= std::min(last, kMaxComment); ++back)
      if (little(bytes_, last - back, 4) == kEndMagic) return last - back;
    return damaged("no zip directory");
  }

  static bool inflate_into(Bytes packed, std::vector<std::byte>& out) {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    std::byte spare{};  // zlib wants a pointer even for nothing
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &spare : out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return whole;
  }

  Bytes bytes_;
  const std::string& file_;
};

}  // namespace

Expected<std::map<std::string, Tensor>> parse_npz(Bytes bytes, const std::string& file) {
  const Archive archive(bytes, file);
  TW_ASSIGN(const std::vector<Entry> entries, archive.entries());
  std::map<std::string, Tensor> out;
  for (const Entry& e : entries) {
    TW_ASSIGN(const std::vector<std::byte> member, archive.unpack(e));
    TW_ASSIGN(Tensor tensor, parse_npy(member, file + ":" + e.name));
    const bool ending = std::string_view(e.name).ends_with(".npy");
    const std::string name = ending ? e.name.substr(0, e.name.size() - 4) : e.name;
    if (!out.emplace(name, std::move(tensor)).second)
      return make_error(DiagCode::invalid_argument, "'{0}' has two members '{1}'", file, name);
  }
  return out;
}

}  // namespace tw
