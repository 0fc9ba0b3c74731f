// Numbers in texts for people.
#pragma once
#include <cstdio>
#include <string>

namespace tw {

// As printf; 255 characters at most.
template <class... Args>
std::string formatted(const char* pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, args...);
  return buffer;
}

}  // namespace tw
