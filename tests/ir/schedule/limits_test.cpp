// Limits of extents and of the numbers in steps, found by fuzzing: beyond them sums of indices
// would leave 64 bits.
#include "ir/schedule/schedule.h"
#include "tests/ir/parsed.h"

namespace tw::test {
namespace {

// The error of the steps for a kernel with loops `i` and `j` of these extents; "": there is none
std::string problem_of(const std::string& i, const std::string& j, const std::string& steps) {
  const Kernel kernel = sound_kernel("kernel @k(x: in f32[" + i + ", " + j + "], y: out f32[" + i +
                                     ", " + j + "]) {\n  for i in " + i + " { for j in " + j +
                                     " {\n    y: y[i, j] = x[i, j]\n  } }\n}\n");
  const Schedule schedule = require_value(parse_schedule("schedule {\n" + steps + "\n}\n"));
  return error_text(tw::apply(kernel, schedule).takeError());
}

TEST_CASE("a number in a step has a limit") {
  for (const char* step : {"split j 9223372036854775807 -> j0 j1", "pad j 9223372036854775807",
                           "tile i j 9223372036854775807 4 -> i0 j0 i1 j1",
                           "partition j 9223372036854775807 0 -> front back",
                           "layout x a b -> [a, b // 9223372036854775807, b % 3]"}) {
    CAPTURE(step);
    CHECK(problem_of("8", "8", step)
              .find("the number 9223372036854775807 is outside "
                    "-2147483648 to 2147483648") != std::string::npos);
  }
}

TEST_CASE("loops whose iterations cannot be counted are not fused") {
  CHECK(problem_of("16777216", "16777216", "fuse i j -> f") == "");
  CHECK(problem_of("16777216", "16777217", "fuse i j -> f")
            .find("have more than 281474976710656 iterations together") != std::string::npos);
}

TEST_CASE("no step makes an extent above the limit") {
  CHECK(problem_of("4", "281474976710656", "split j 2147483647 -> j0 j1") == "");
  CHECK(problem_of("4", "281474976710656", "split j 3 -> j0 j1\nfuse j0 j1 -> j")
            .find("have more than") != std::string::npos);
}

TEST_CASE("a kernel's extents have a limit") {
  const Kernel kernel = parsed_kernel(
      "kernel @k(y: out f32[8]) {\n  for i in 9223372036854775807 {\n    y: y[i % 8] = 0\n  "
      "}\n}\n");
  CHECK(error_text(verify(kernel)).find("loop 'i' has the extent 9223372036854775807") !=
        std::string::npos);
}

}  // namespace
}  // namespace tw::test
