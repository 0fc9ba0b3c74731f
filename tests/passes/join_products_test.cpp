#include <doctest/doctest.h>

#include <string>

#include "run_pass.h"

using tw::test::run_pass;

namespace {

// Attention of two heads. `products` makes %q, %k and %v, 4 wide.
std::string attention(const std::string& products) {
  return "graph @t() {\n" + products + R"(
    %qh: f32[3, 2, 2] = reshape(%q) shape=[3,2,2]
    %qt: f32[2, 3, 2] = transpose(%qh) perm=[1,0,2]
    %kh: f32[3, 2, 2] = reshape(%k) shape=[3,2,2]
    %kt: f32[2, 3, 2] = transpose(%kh) perm=[1,0,2]
    %vh: f32[3, 2, 2] = reshape(%v) shape=[3,2,2]
    %vt: f32[2, 3, 2] = transpose(%vh) perm=[1,0,2]
    %s: f32[2, 3, 3] = matmul(%qt, %kt) trans_b=true
    %p: f32[2, 3, 3] = softmax(%s) axis=2
    %o: f32[2, 3, 2] = matmul(%p, %vt)
    output %o
  })";
}
void keeps(const std::string& products) {
  run_pass("join-products", attention(products).c_str(), attention(products).c_str());
}

}  // namespace

TEST_CASE("the three products of an attention become one, with the biases that there are") {
  run_pass("join-products",
           attention(R"(
    %x: f32[3, 1] = input
    %wq: f32[1, 4] = const [1, 2, 3, 4]
    %wk: f32[1, 4] = const [9, 1, 2, 3]
    %wv: f32[1, 4] = const [3, 1, 4, 1]
    %bk: f32[4] = const [1, 2, 3, 5]
    %q: f32[3, 4] = matmul(%x, %wq)
    %m: f32[3, 4] = matmul(%x, %wk)
    %k: f32[3, 4] = binary(%m, %bk) function=add
    %v: f32[3, 4] = matmul(%x, %wv)
  )")
               .c_str(),
           attention(R"(
    %x: f32[3, 1] = input
    %q_weights: f32[1, 12] = const [1, 2, 3, 4, 9, 1, 2, 3, 3, 1, 4, 1]
    %q_bias: f32[12] = const [0, 0, 0, 0, 1, 2, 3, 5, 0, 0, 0, 0]
    %q_joined: f32[3, 12] = matmul(%x, %q_weights)
    %q_biased: f32[3, 12] = binary(%q_joined, %q_bias) function=add
    %q: f32[3, 4] = slice(%q_biased) starts=[0,0] steps=[1,1] sizes=[3,4]
    %k: f32[3, 4] = slice(%q_biased) starts=[0,4] steps=[1,1] sizes=[3,4]
    %v: f32[3, 4] = slice(%q_biased) starts=[0,8] steps=[1,1] sizes=[3,4]
  )")
               .c_str());
}

TEST_CASE("constants of several rows lie side by side row by row") {
  run_pass("join-products",
           attention(R"(
    %x: f32[3, 2] = input
    %v: f32[3, 4] = input
    %wq: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %wk: f32[2, 4] = const [9, 1, 2, 3, 4, 5, 6, 7]
    %q: f32[3, 4] = matmul(%x, %wq)
    %k: f32[3, 4] = matmul(%x, %wk)
  )")
               .c_str(),
           attention(R"(
    %x: f32[3, 2] = input
    %v: f32[3, 4] = input
    %q_weights: f32[2, 8] = const [1, 2, 3, 4, 9, 1, 2, 3, 5, 6, 7, 8, 4, 5, 6, 7]
    %q_joined: f32[3, 8] = matmul(%x, %q_weights)
    %q: f32[3, 4] = slice(%q_joined) starts=[0,0] steps=[1,1] sizes=[3,4]
    %k: f32[3, 4] = slice(%q_joined) starts=[0,4] steps=[1,1] sizes=[3,4]
  )")
               .c_str());
}

TEST_CASE(
    "keys and values of another operand are joined without the queries, transposed constants one "
    "below the other") {
  run_pass("join-products",
           attention(R"(
    %x: f32[3, 2] = input
    %z: f32[3, 2] = input
    %wq: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %wk: f32[4, 2] = const [9, 1, 2, 3, 4, 5, 6, 7]
    %wv: f32[4, 2] = const [3, 1, 4, 1, 5, 9, 2, 6]
    %q: f32[3, 4] = matmul(%x, %wq)
    %k: f32[3, 4] = matmul(%z, %wk) trans_b=true
    %v: f32[3, 4] = matmul(%z, %wv) trans_b=true
  )")
               .c_str(),
           attention(R"(
    %x: f32[3, 2] = input
    %z: f32[3, 2] = input
    %wq: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %k_weights: f32[8, 2] = const [9, 1, 2, 3, 4, 5, 6, 7, 3, 1, 4, 1, 5, 9, 2, 6]
    %q: f32[3, 4] = matmul(%x, %wq)
    %k_joined: f32[3, 8] = matmul(%z, %k_weights) trans_b=true
    %k: f32[3, 4] = slice(%k_joined) starts=[0,0] steps=[1,1] sizes=[3,4]
    %v: f32[3, 4] = slice(%k_joined) starts=[0,4] steps=[1,1] sizes=[3,4]
  )")
               .c_str());
}

TEST_CASE(
    "products of different operands, of weights that are no constants or with other readers stay") {
  keeps(R"(
    %x: f32[3, 2] = input
    %y: f32[3, 2] = input
    %z: f32[3, 2] = input
    %w: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %q: f32[3, 4] = matmul(%x, %w)
    %k: f32[3, 4] = matmul(%y, %w)
    %v: f32[3, 4] = matmul(%z, %w)
  )");
  keeps(R"(
    %x: f32[3, 2] = input
    %wq: f32[2, 4] = input
    %wk: f32[2, 4] = input
    %wv: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %q: f32[3, 4] = matmul(%x, %wq)
    %k: f32[3, 4] = matmul(%x, %wk)
    %v: f32[3, 4] = matmul(%x, %wv)
  )");
  keeps(R"(
    %x: f32[3, 2] = input
    %wq: f32[2, 4] = const [1, 2, 3, 4, 5, 6, 7, 8]
    %wk: f32[2, 4] = const [9, 1, 2, 3, 4, 5, 6, 7]
    %v: f32[3, 4] = input
    %q: f32[3, 4] = matmul(%x, %wq)
    %k: f32[3, 4] = matmul(%x, %wk)
    output %k
  )");
}
