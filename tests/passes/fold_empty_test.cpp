#include <doctest/doctest.h>

#include "run_pass.h"

using tw::test::run_pass;

TEST_CASE("a product of nothing is 0, whatever its free sizes are") {
  run_pass("fold-empty", R"(graph @t(m) {
    %a: f32[m, 0] = input
    %b: f32[0, 5] = input
    %y: f32[m, 5] = matmul(%a, %b)
    output %y
  })",
           R"(graph @t(m) {
    %a: f32[m, 0] = input
    %b: f32[0, 5] = input
    %y_nothing: f32[] = const [0]
    %y: f32[m, 5] = expand(%y_nothing) shape=[m,5]
    output %y
  })");
}

TEST_CASE("a convolution of no channels is its bias") {
  run_pass("fold-empty", R"(graph @t() {
    %x: f32[1, 0, 4, 4] = input
    %w: f32[2, 0, 3, 3] = input
    %c: f32[2] = input
    %y: f32[1, 2, 2, 2] = conv(%x, %w, %c) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %y
  })",
           R"(graph @t() {
    %x: f32[1, 0, 4, 4] = input
    %w: f32[2, 0, 3, 3] = input
    %c: f32[2] = input
    %y_bias: f32[2, 1, 1] = reshape(%c) shape=[2,1,1]
    %y: f32[1, 2, 2, 2] = expand(%y_bias) shape=[1,2,2,2]
    output %y
  })");
}

TEST_CASE("reductions of nothing give what they begin with, means stay") {
  run_pass("fold-empty", R"(graph @t() {
    %x: f32[3, 0] = input
    %p: f32[3] = reduce(%x) kind=prod axes=[1] keep=false
    %m: f32[3] = reduce(%x) kind=mean axes=[1] keep=false
    %e: f32[3, 0] = unary(%x) function=exp
    output %p
    output %m
    output %e
  })",
           R"(graph @t() {
    %x: f32[3, 0] = input
    %p_nothing: f32[] = const [1]
    %e: f32[3, 0] = const []
    %p: f32[3] = expand(%p_nothing) shape=[3]
    %m: f32[3] = reduce(%x) kind=mean axes=[1] keep=false
    output %p
    output %m
    output %e
  })");
}
