// Numbers in texts for people.
#pragma once
#include <cstdio>
#include <string>

namespace tw {

// Formats as printf does, up to 255 characters.
template <class... Args>
std::string formatted(const char* pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, args...);
  return buffer;
}

}  // namespace tw
