// Remarks about stages that leave a device without work.
#include "kernels/device/few_threads.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "tests/ir/graph_testing.h"

using namespace tw;

TEST_CASE("stages that few threads run for long, and why") {
  const Kernel kernel = test::must(
      parse_kernel(R"(kernel @k(x: in f32[8, 9000], y: out f32[8, 9000]) {
    temp a: f32[2]
    temp b: f32[9000]
    temp c: f32[8, 9000]
    temp d: f32[8, 9001]
    for a_i in 2 bind thread.x { for a_k in 9000 reduce { a: a[a_i] += x[a_i, a_k] init 0 } }
    for b_i in 9000 { b: b[b_i] = x[0, b_i] + a[0] }
    for c_b in 8 bind block.x { for c_t in 9 bind thread.x { for c_j in 1000 {
      c: c[c_b, c_t * 1000 + c_j] = b[c_t * 1000 + c_j]
    } } }
    for t in 9000 scan { for d_i in 8 bind thread.x { d: d[d_i, t + 1] = d[d_i, t] + c[d_i, t] } }
    for y_i in 8 { for y_j in 9000 bind block.x { y: y[y_i, y_j] = d[y_i, y_j] } }
  })"));
  std::vector<std::string> said;
  for (const FewThreads& stage : few_threads(kernel, Target{})) said.push_back(to_string(stage));
  REQUIRE(said.size() == 3);
  CHECK(said[0] ==
        "stage 'a' runs in 2 threads, 9000 steps each: it has few results, of many terms each");
  CHECK(said[1] ==
        "stage 'b' runs in 1 thread, 9000 steps each: no rule deals out its loops to threads");
  CHECK(said[2] ==
        "stage 'd' runs in 8 threads, 9000 steps each: loop 't' carries values from one iteration "
        "to the next");
}

TEST_CASE("threads that do an instruction together are all at work") {
  Intrinsic together;
  together.name = "mma";
  together.emit.threads = 32;
  Target target;
  target.intrinsics.push_back(together);
  const Kernel kernel = test::must(parse_kernel(R"(kernel @k(x: in f32[16, 512], y: out f32[16]) {
    for w in 2 bind thread.y { for c in 16 { block product by mma { for i in 8 { for k in 512 reduce {
      y: y[w * 8 + i] += x[w * 8 + i, k] init 0
    } } } } }
  })"));
  CHECK(few_threads(kernel, target).empty());
  CHECK(few_threads(kernel, Target{}).size() == 1);
}
