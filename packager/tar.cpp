#include "packager/tar.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tw {
namespace {

constexpr uint64_t kBlock = 512, kEnd = 2 * kBlock;  // an archive ends with two blocks of zeros
constexpr uint64_t kMostBytes = (uint64_t{1} << 33) - 1;  // largest member: eleven octal digits
constexpr size_t kMostName = 99, kMostMembers = 64;

// Offsets of the fields of a head (POSIX ustar)
constexpr size_t kName = 0, kMode = 100, kOwner = 108, kGroup = 116, kSize = 124, kTime = 136,
                 kSum = 148, kKind = 156, kMagic = 257, kMajor = 329, kMinor = 337;

uint64_t padded(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

std::string head_of(const std::string& name, uint64_t bytes, bool executable) {
  std::string head(kBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { head.replace(at, text.size(), text); };
  const auto octal = [&](size_t at, int digits, uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
    put(at, text);
  };
  put(kName, name);
  octal(kMode, 7, executable ? 0755 : 0644);
  octal(kOwner, 7, 0);
  octal(kGroup, 7, 0);
  octal(kSize, 11, bytes);
  octal(kTime, 11, 0);
  put(kKind, "0");
  put(kMagic, {"ustar\00000", 8});
  octal(kMajor, 7, 0);
  octal(kMinor, 7, 0);
  put(kSum, "        ");
  uint64_t sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  octal(kSum, 6, sum);
  head[kSum + 6] = '\0';
  return head;
}

const char* kind_text(char kind) {
  switch (kind) {
    case '0': return "a file";
    case '1': return "a hard link";
    case '2': return "a symbolic link";
    case '3':
    case '4': return "a device";
    case '5': return "a folder";
    case '6': return "a pipe";
    default: return "of an unknown kind";
  }
}

Error damaged(const std::string& file, size_t member, const std::string& why) {
  return make_error(DiagCode::parse, "'{0}' is no bundle, or damaged: member {1}: {2}", file,
                    member + 1, why);
}

bool only_zeros(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
}

// The number that eleven octal digits spell; nothing where there are other characters
std::optional<uint64_t> size_of(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

Expected<TarMember> member_at(std::string_view bytes, uint64_t at, size_t number,
                              const std::string& file) {
  if (bytes.size() - at < kBlock) return damaged(file, number, "its head is cut off");
  const std::string_view head = bytes.substr(at, kBlock);
  TarMember member;
  member.name = std::string(head.substr(kName, head.substr(kName, kMode).find('\0')));
  if (const std::string why = bad_member_name(member.name); !why.empty())
    return damaged(file, number, why);
  if (head[kKind] != '0')
    return damaged(file, number, "'" + member.name + "' is " + kind_text(head[kKind]));
  const std::optional<uint64_t> size = size_of(head.substr(kSize, 11));
  if (!size) return damaged(file, number, "its size is no number");
  member.executable = head.substr(kMode, 7) == "0000755";
  if (head != head_of(member.name, *size, member.executable))
    return damaged(file, number, "the head of '" + member.name + "' is not as 'bundle' writes it");
  if (padded(*size) > bytes.size() - at - kBlock)
    return damaged(file, number, "'" + member.name + "' is cut off");
  member.bytes = bytes.substr(at + kBlock, *size);
  if (!only_zeros(bytes.substr(at + kBlock + *size, padded(*size) - *size)))
    return damaged(file, number, "there are bytes behind '" + member.name + "'");
  return member;
}

}  // namespace

std::string bad_member_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._+-").find(c) != std::string_view::npos;
  };
  if (name.empty()) return "it has no name";
  if (name.size() > kMostName) return "its name has more than 99 characters";
  if (name.front() == '.' || name.front() == '-' || !std::ranges::all_of(name, plain))
    return "its name is not made of letters, digits, '.', '_', '+' and '-' alone, beginning with a "
           "letter or a digit";
  return "";
}

uint64_t tar_bytes(std::span<const TarMember> members) {
  uint64_t bytes = kEnd;
  for (const TarMember& member : members) bytes += kBlock + padded(member.bytes.size());
  return bytes;
}

Error write_tar(OutputFile& file, std::span<const TarMember> members) {
  uint64_t at = 0;  // bytes that are not written are zero
  for (const TarMember& member : members) {
    TW_CHECK(bad_member_name(member.name).empty(), "bad name '{0}'", member.name);
    if (member.bytes.size() > kMostBytes)
      return make_error(DiagCode::unsupported, "'{0}': a bundle takes files below 8 GiB",
                        member.name);
    TW_TRY(file.write(at, head_of(member.name, member.bytes.size(), member.executable)));
    if (!member.bytes.empty()) TW_TRY(file.write(at + kBlock, member.bytes));
    at += kBlock + padded(member.bytes.size());
  }
  return Error::success();
}

Expected<std::vector<TarMember>> parse_tar(std::string_view bytes, const std::string& file) {
  std::vector<TarMember> members;
  uint64_t at = 0;
  for (; at >= bytes.size() || bytes[at] != '\0';) {
    if (members.size() == kMostMembers)
      return damaged(file, members.size(), "there are more than 64");
    TW_ASSIGN(TarMember member, member_at(bytes, at, members.size(), file));
    at += kBlock + padded(member.bytes.size());
    members.push_back(std::move(member));
  }
  if (bytes.size() - at != kEnd || !only_zeros(bytes.substr(at)))
    return damaged(file, members.size(), "the archive does not end behind the last one");
  return members;
}

}  // namespace tw
