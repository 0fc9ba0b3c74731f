// The example's end on an error: one line to standard error, exit code 1.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace detect {

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("detect: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::exit(1);
}

}  // namespace detect
