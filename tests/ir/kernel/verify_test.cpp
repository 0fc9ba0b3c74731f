#include <doctest/doctest.h>

#include "ir/kernel/kernel.h"
#include "tests/ir/random_kernel.h"

using namespace tw;

namespace {
std::string problems(const std::string& text) {
  auto kernel = parse_kernel(text);
  return kernel ? error_text(verify(*kernel)) : error_text(kernel.takeError());
}
std::string body_problems(const std::string& body) {
  return problems("kernel @k[n](x: in f32[8, 4], y: out f32[n]) {\n  temp r: f32[4] register\n" +
                  body + "\n}");
}
}  // namespace

TEST_CASE("a good kernel has no problems") {
  CHECK(body_problems("for i in n parallel { for j in 4 unroll { s: r[j] = x[i, j] } t: y[i] += "
                      "r[3] where i < 4 init 0 }") == "");
}

TEST_CASE("each rule of the verifier") {
  CHECK(body_problems("s: y[i] = 1") == "kernel @k: stage 's': variable 'i' is not in scope");
  CHECK(body_problems("s: y[0, 0] = 1") ==
        "kernel @k: stage 's': 'y' has 1 dimensions and is accessed with 2 indices");
  CHECK(body_problems("s: x[0, 0] = 1") == "kernel @k: stage 's': 'x' may not be written");
  CHECK(body_problems("s: y[0] = x[0]") ==
        "kernel @k: stage 's': 'x' has 2 dimensions and is accessed with 1 indices");
  CHECK(body_problems("s: y[0] = 1 init 2") == "kernel @k: stage 's': an init without a combiner");
  CHECK(body_problems("s: y[0] = 1 s: y[1] = 1") == "kernel @k: stage 's': a second stage 's'");
  CHECK(body_problems("for i in 4 { s: y[i] = 1 } for i in 4 { t: y[i] = 1 }") ==
        "kernel @k: a second loop 'i'");
  CHECK(body_problems("for n in 4 { s: y[0] = 1 }") ==
        "kernel @k: loop 'n' has the name of a symbol");
  CHECK(body_problems("for i in n unroll { s: y[i] = 1 }") ==
        "kernel @k: unroll loop 'i' needs a constant extent, not n");
  CHECK(body_problems("for i in -4 { s: y[i] = 1 }") == "kernel @k: loop 'i' has the extent -4");
  CHECK(body_problems("for i in 4 { for j in 4 parallel { s: y[i] = 1 } }") ==
        "kernel @k: parallel loop 'j' lies inside loop 'i'");
  CHECK(body_problems("for i in 4 scan { for j in 4 parallel { s: y[j] = 1 } }") == "");
  CHECK(body_problems("for i in 4 scan { for j in 4 { for l in 4 parallel { s: y[l] = 1 } } }") ==
        "kernel @k: parallel loop 'l' lies inside loop 'j'");
  CHECK(body_problems("for i in 4 vector scan { s: y[i] = 1 }") ==
        "kernel @k: scan loop 'i' is vector: its iterations run in order");
  CHECK(body_problems("for i in 4 parallel reduce { s: y[0] = 1 }") ==
        "kernel @k: parallel loop 'i' is a reduce loop");
  CHECK(body_problems("for i in i64(x[0, 0]) { s: y[i] = 1 }") ==
        "kernel @k: x[0, 0] may not be loaded in an extent");
  CHECK(body_problems("for i in 4 { s: r[i] = 1 }") ==
        "kernel @k: stage 's': register buffer 'r' is indexed by 'i', which is neither unrolled "
        "nor vectorized");
  CHECK(problems("kernel @k(y: out bool[4]) { s: y[0] max= true }") ==
        "kernel @k: stage 's': bool values have no combiner");
  CHECK(problems("kernel @k(y: out f32[4] stack) { s: y[0] = 1 }") ==
        "kernel @k: parameter 'y' must be in scope global, not stack");
  CHECK(problems("kernel @k(y: out f32[m]) { temp r: f32[k] register }") ==
        "kernel @k: variable 'm' is not in scope\nkernel @k: variable 'k' is not in scope\n"
        "kernel @k: register buffer 'r' needs constant extents, not k");
}

TEST_CASE("rules of loops, tokens and barriers of devices") {
  const auto device = [](const std::string& body) {
    return problems(
        "kernel @k[n](x: in f32[8], y: out f32[8]) { temp t: f32[8] shared tokens q tokens r[2] = "
        "1 " +
        body + " }");
  };
  CHECK(device("for i in 8 bind block.x { s: y[i] = x[i] }") == "");
  CHECK(device("for i in 2 bind a { for j in 4 bind a { s: y[i * 4 + j] = 1 } }") ==
        "kernel @k: loops 'i' and 'j' are both bound to a");
  CHECK(device("for i in n vthread { s: y[i] = 1 }") ==
        "kernel @k: vthread loop 'i' needs a constant extent, not n");
  CHECK(device("signal q[0] wait q") == "kernel @k: a signal of 'q' with an index");
  CHECK(device("signal q") == "kernel @k: token queue 'q' is given 1 more than are taken");
  CHECK(device("for i in 4 { signal r[i % 2] if i < 3 { wait r[i % 2] } }") ==
        "kernel @k: token queue 'r[1]' is given 1 more than are taken");
  CHECK(device("signal r[2] wait r[2]") == "kernel @k: token queue 'r' has no element 2");
  CHECK(device("s: t[0] += x[0] async") ==
        "kernel @k: stage 's': an asynchronous store only copies, or stores zeros");
  CHECK(device("for i in 8 { barrier i s: y[i] = 1 }") ==
        "kernel @k: the barrier of 'i', which is no bound loop");
  CHECK(device("for i in 8 bind a { if i < 4 { barrier i } s: y[i] = 1 }") ==
        "kernel @k: the barrier of 'i' is under a condition that differs between its threads");
  CHECK(device("for b in 2 bind a { for i in 4 bind c { if b < 1 { barrier i } s: y[b * 4 + i] = 1 "
               "} }") == "");
  CHECK(device("roles { a { s: t[0] = 1 signal q } b { wait q u: y[0] = t[0] } }") == "");
  CHECK(device("roles { a { s: t[0] = 1 } b { u: y[0] = t[0] } }") ==
        "kernel @k: role 'b' reads 't' with no token from role 'a', which writes it");
  CHECK(device("roles { a { for i in 8 { s: t[i % 2] = 1 signal q } } b { for j in 8 { wait q u: "
               "y[j] = t[j % 2] } } }") ==
        "kernel @k: role 'a' writes 't' again with no token from role 'b', which reads it");
  CHECK(device("roles { a { for i in 8 { s: t[i] = 1 signal q } } b { for j in 8 { wait q u: y[j] "
               "= t[j] } } }") == "");
  CHECK(device("prefetch x[9] 4") == "kernel @k: a prefetch has the locality 4, not 0 to 3");
  CHECK(problems("kernel @k(y: out f32[8]) { temp t: f32[8] per i for i in 8 bind a { s: t[0] = 1 "
                 "} u: y[0] = t[0] }") ==
        "kernel @k: 't' is per 'i' and used outside of that loop");
  CHECK(problems("kernel @k(y: out f32[8]) { tokens q[1000000] s: y[0] = 1 }") ==
        "kernel @k: token queue 'q' has the extent 1000000, not 1 to 4096");
}

TEST_CASE("types that only built kernels can get wrong") {
  auto kernel = parse_kernel("kernel @k(x: in f32[4], y: out f32[4]) { s: y[0] = x[0] }");
  REQUIRE(kernel);
  stmt::Store store = get<stmt::Store>(kernel->body);
  store.value = load(BufferId{0}, DType::i32, {0});
  store.indices = {int_imm(0, DType::i32)};
  kernel->body = make_store(store);
  CHECK(error_text(verify(*kernel)) ==
        "kernel @k: stage 's': an index 0:i32 is i32, not i64\nkernel @k: stage 's': the value "
        "x[0] is i32, not f32\n"
        "kernel @k: stage 's': 'x' holds f32 and is loaded as i32");
  store.value = load(BufferId{7}, DType::f32, {0});
  store.indices = {0};
  kernel->body = make_store(store);
  CHECK(error_text(verify(*kernel)) == "kernel @k: stage 's': there is no buffer number 7");
}

TEST_CASE("property: random kernels are legal") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Kernel kernel = testing::RandomKernels(seed).kernel();
    CAPTURE(seed);
    CAPTURE(print(kernel));
    REQUIRE(error_text(verify(kernel)) == "");
  }
}
