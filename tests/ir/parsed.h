// For tests: values parsed from text. A text that does not parse fails the test; for sound_kernel,
// so does a kernel that does not verify.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"

namespace tw::test {

template <class T>
T require_value(Expected<T> value) {
  REQUIRE_MESSAGE(bool(value), error_text(value.takeError()));
  return std::move(*value);
}
inline Graph parsed_graph(const std::string& text) { return require_value(parse_graph(text)); }
inline Kernel parsed_kernel(const std::string& text) { return require_value(parse_kernel(text)); }
inline Kernel sound_kernel(const std::string& text) {
  Kernel kernel = parsed_kernel(text);
  REQUIRE(error_text(verify(kernel)) == "");
  return kernel;
}

}  // namespace tw::test
