// support/hash.h for the worker on boards. The hash only tells machines apart, so it is FNV-1a and
// not the compiler's own.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tw {
inline std::string short_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}
}  // namespace tw
