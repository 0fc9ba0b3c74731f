// The spans of stores in which buffers are needed.
#include "ir/kernel/live_spans.h"

#include <doctest/doctest.h>

#include "tests/test_folder.h"

using namespace tw;

namespace {

// Returns "first..last" for each buffer in scope tile.
std::string spans(const std::string& body) {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @k(x: in f32[4], y: out f32[4]) {\n"
      "temp a: f32[4] tile\ntemp b: f32[4] tile\n" +
      body + "\n}");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  std::string text;
  for (const auto& [buffer, span] : live_spans(*kernel, "tile"))
    text += kernel->buffers[static_cast<size_t>(buffer)].name + " " + std::to_string(span.first) +
            ".." + std::to_string(span.last) + " ";
  return text;
}

}  // namespace

TEST_CASE("a buffer is needed from its first store to the last one that reads it") {
  CHECK(spans("for i in 4 { a: a[i] = x[i] }\n"
              "for j in 4 { b: b[j] = a[j] }\n"
              "for k in 4 { y: y[k] = b[k] }") == "a 0..1 b 1..2 ");
  CHECK(spans("for i in 4 { a: a[i] = x[i] y: y[i] = a[i] }") == "a 0..1 ");
}

TEST_CASE("a buffer that a loop finds is needed in all of the loop") {
  CHECK(spans("for i in 4 { a: a[i] = x[i] }\n"
              "for k in 2 {\n"
              "  for j in 4 { b: b[j] = a[j] }\n"
              "  for l in 4 { y: y[l] = b[l] }\n"
              "}") == "a 0..2 b 1..2 ");
}

TEST_CASE("a buffer that nothing sets first is needed everywhere") {
  const char* const summed =
      "for i in 4 { a.init: a[i] = 0.0 }\n"
      "for k in 2 reduce { for j in 4 { a: a[j] += x[j] } }\n"
      "for l in 4 { y: y[l] = a[l] }";
  CHECK(spans(summed) == "a 0..2 ");
  CHECK(spans("for k in 2 {\n"
              "  for j in 4 { b: b[j] = x[j] }\n"
              "  if (k == 0) { for i in 4 { a: a[i] = b[i] } }\n"
              "  for l in 4 { y: y[l] = a[l] }\n"
              "}") == "a 0..2 b 0..1 ");
  CHECK(spans("for k in 2 {\n"
              "  for j in 4 { b: b[j] = x[j] }\n"
              "  if (k == 0) {\n"
              "    for i in 4 { a: a[i] = b[i] }\n"
              "    for l in 4 { y: y[l] = a[l] }\n"
              "  }\n"
              "}") == "a 1..2 b 0..1 ");
}
