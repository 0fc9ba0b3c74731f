#include <doctest/doctest.h>

#include "passes/pass.h"
#include "run_pass.h"

using namespace tw;
using tw::test::run_pass;

TEST_CASE("eliminate-dead-code erases what no output needs") {
  run_pass("eliminate-dead-code", R"(graph @t() {
    %x: f32[2] = input
    %a: f32[2] = unary(%x) function=exp
    %b: f32[2] = unary(%a) function=neg
    %c: f32[2] = unary(%x) function=tanh
    output %c
  })",
           R"(graph @t() {
    %x: f32[2] = input
    %c: f32[2] = unary(%x) function=tanh
    output %c
  })");
}

TEST_CASE("fold-constants leaves an empty value whose other extents are free") {
  run_pass("fold-constants", R"(graph @t(n) {
    %x: f32[1, n] = input
    %k: f32[0, 1] = const []
    %a: f32[0, n] = expand(%k) shape=[0,n]
    %y: f32[1, n] = concat(%a, %x) axis=0
    output %y
  })",
           R"(graph @t(n) {
    %x: f32[1, n] = input
    %k: f32[0, 1] = const []
    %a: f32[0, n] = expand(%k) shape=[0,n]
    %y: f32[1, n] = concat(%a, %x) axis=0
    output %y
  })");
}

TEST_CASE("eliminate-common-subexpressions keeps the first of equal nodes and constants") {
  run_pass("eliminate-common-subexpressions", R"(graph @t() {
    %x: f32[2] = input
    %y: f32[2] = input
    %k: f32[2] = const [1, 2]
    %l: f32[2] = const [1, 2]
    %m: f32[2] = const [1, 3]
    %a: f32[2] = binary(%x, %k) function=mul
    %b: f32[2] = binary(%l, %x) function=mul
    %c: f32[2] = binary(%x, %m) function=mul
    %d: f32[2] = binary(%a, %c) function=add
    %e: f32[2] = binary(%c, %b) function=add
    %f: f32[2] = binary(%x, %y) function=max
    %g: f32[2] = binary(%y, %x) function=max
    output %d
    output %e
    output %f
    output %g
  })",
           R"(graph @t() {
    %x: f32[2] = input
    %y: f32[2] = input
    %k: f32[2] = const [1, 2]
    %m: f32[2] = const [1, 3]
    %a: f32[2] = binary(%x, %k) function=mul
    %c: f32[2] = binary(%x, %m) function=mul
    %d: f32[2] = binary(%a, %c) function=add
    %f: f32[2] = binary(%x, %y) function=max
    %g: f32[2] = binary(%y, %x) function=max
    output %d
    output %d as "e"
    output %f
    output %g
  })");
}

TEST_CASE("fold-constants computes what depends on constants and static shapes only") {
  run_pass("fold-constants", R"(graph @t() {
    %x: f32[2, 2] = input
    %k: f32[4] = const [4, 9, 16, 25]
    %a: f32[2, 2] = reshape(%k) shape=[2, 2]
    %b: f32[2, 2] = unary(%a) function=sqrt
    %c: f32[2, 2] = binary(%x, %b) function=mul
    %s: i64[2] = shape_of(%x)
    %n: i64[1] = dim_vector() values=[7]
    %m: i64[2] = binary(%s, %n) function=add
    output %c
    output %m
  })",
           R"(graph @t() {
    %x: f32[2, 2] = input
    %b: f32[2, 2] = const [2, 3, 4, 5]
    %m: i64[2] = const [9, 9]
    %c: f32[2, 2] = binary(%x, %b) function=mul
    output %c
    output %m
  })");
}

TEST_CASE("fold-constants stays in its budget, over all its runs") {
  Expected<Graph> graph = parse_graph(R"(graph @t() {
    %x: f32[1000] = input
    %k: f32[] = const [2]
    %a: f32[1000] = expand(%k) shape=[1000]
    %b: f32[500] = expand(%k) shape=[500]
    %c: f32[1000] = binary(%x, %a) function=add
    output %b
    output %c
  })");
  REQUIRE(bool(graph));
  Target target;
  PassContext context{target};
  context.fold_budget_bytes = 2500;
  REQUIRE(!run_passes(*graph, context, {"fold-constants", "fold-constants"}));
  CHECK(graph->order().size() == 2);
  CHECK(context.fold_budget_bytes == 500);
}

TEST_CASE("fold-shapes follows symbols through shape arithmetic") {
  run_pass("fold-shapes", R"(graph @t(batch) {
    %x: f32[batch, 6] = input
    %s: i64[2] = shape_of(%x)
    %zero: i64[] = const [0]
    %two: i64[1] = const [2]
    %b: i64[] = gather(%s, %zero) axis=0
    %v: i64[1] = reshape(%b) shape=[1]
    %d: i64[1] = slice(%s) starts=[1] steps=[1] sizes=[1]
    %h: i64[1] = binary(%d, %two) function=div
    %m: i64[1] = binary(%v, %two) function=mul
    %c: i64[2] = concat(%m, %h) axis=0
    %p: i64[] = reduce(%c) kind=prod axes=[0] keep=false
    output %c
    output %h
    output %p
  })",
           R"(graph @t(batch) {
    %x: f32[batch, 6] = input
    %h: i64[1] = const [3]
    %c: i64[2] = dim_vector() values=[batch * 2, 3]
    %p: i64[] = dim_vector() values=[batch * 6] scalar=true
    output %c
    output %h
    output %p
  })");
}

TEST_CASE(
    "nodes of several outputs: dead only when no output is read, never merged, folded when all "
    "inputs are constants") {
  run_pass("eliminate-dead-code", R"(graph @t() {
    %x: f32[4] = input
    %v: f32[2], %i: i64[2], %s: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]
    %w: f32[2], %j: i64[2], %r: i64[4] = extern(%x) function=topk ints=[0,0,1] dims=[2]
    output %i
  })",
           R"(graph @t() {
    %x: f32[4] = input
    %v: f32[2], %i: i64[2], %s: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]
    output %i
  })");
  const char* twins = R"(graph @t() {
    %x: f32[4] = input
    %v: f32[2], %i: i64[2], %s: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]
    %w: f32[2], %j: i64[2], %r: i64[4] = extern(%x) function=topk ints=[0,1,1] dims=[2]
    output %i
    output %w
  })";
  run_pass("eliminate-common-subexpressions", twins, twins);
  run_pass("fold-constants", R"(graph @t() {
    %x: f32[2] = input
    %k: f32[4] = const [1, 4, 2, 3]
    %v: f32[2], %i: i64[2], %s: i64[4] = extern(%k) function=topk ints=[0,1,1] dims=[2]
    %y: f32[2] = binary(%x, %v) function=add
    output %y
    output %i
  })",
           R"(graph @t() {
    %x: f32[2] = input
    %v: f32[2] = const [4, 3]
    %i: i64[2] = const [1, 3]
    %y: f32[2] = binary(%x, %v) function=add
    output %y
    output %i
  })");
  const char* random = R"(graph @t() {
    %b: u32[4] = extern() function=random_bits ints=[1] dims=[4]
    output %b
  })";
  run_pass("fold-constants", random, random);
}
