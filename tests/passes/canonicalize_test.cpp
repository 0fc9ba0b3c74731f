#include <doctest/doctest.h>

#include "run_pass.h"

using tw::test::canonicalizes, tw::test::keeps, tw::test::run_pass;

TEST_CASE("neutral elements go, from either side") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %zero: f32[] = const [0]
    %one: f32[1, 3] = const [1, 1, 1]
    %a: f32[2, 3] = binary(%zero, %x) function=add
    %b: f32[2, 3] = binary(%a, %one) function=mul
    %c: f32[2, 3] = binary(%b, %one) function=div
    %d: f32[2, 3] = binary(%c, %zero) function=sub
    %e: f32[2, 3] = unary(%d) function=tanh
    output %e
  )",
                R"(
    %x: f32[2, 3] = input
    %e: f32[2, 3] = unary(%x) function=tanh
    output %e
  )");
}

TEST_CASE("a neutral element that broadcasts its operand stays") {
  keeps(R"(
    %x: f32[3] = input
    %zero: f32[2, 3] = const [0, 0, 0, 0, 0, 0]
    %y: f32[2, 3] = binary(%x, %zero) function=add
    output %y
  )");
}

TEST_CASE(
    "constants stand right of add and left of max; subtraction and division are addition and "
    "multiplication") {
  canonicalizes(R"(
    %x: f32[2, 2] = input
    %k: f32[2] = const [2, 4]
    %a: f32[2, 2] = binary(%k, %x) function=add
    %b: f32[2, 2] = binary(%a, %k) function=sub
    %c: f32[2, 2] = binary(%b, %k) function=div
    %d: f32[2, 2] = binary(%c, %k) function=max
    output %d
  )",
                R"(
    %x: f32[2, 2] = input
    %k: f32[2] = const [2, 4]
    %b_shift: f32[2] = const [-2, -4]
    %c_scale: f32[2] = const [0.5, 0.25]
    %a: f32[2, 2] = binary(%x, %k) function=add
    %b: f32[2, 2] = binary(%a, %b_shift) function=add
    %c: f32[2, 2] = binary(%b, %c_scale) function=mul
    %d: f32[2, 2] = binary(%k, %c) function=max
    output %d
  )");
}

TEST_CASE("a division whose inverse is rounded stays, but in front of a softmax") {
  keeps(R"(
    %x: f32[2, 2] = input
    %k: f32[2] = const [2, 255]
    %a: f32[2, 2] = binary(%x, %k) function=div
    %y: f32[2, 2] = softmax(%a) axis=1
    output %a
    output %y
  )");
  canonicalizes(R"(
    %x: f32[2, 2] = input
    %mask: f32[2, 2] = input
    %k: f32[] = const [10]
    %a: f32[2, 2] = binary(%x, %k) function=div
    %b: f32[2, 2] = binary(%a, %mask) function=add
    %y: f32[2, 2] = softmax(%b) axis=1
    output %y
  )",
                R"(
    %x: f32[2, 2] = input
    %mask: f32[2, 2] = input
    %a_scale: f32[] = const [0.1]
    %a: f32[2, 2] = binary(%x, %a_scale) function=mul
    %b: f32[2, 2] = binary(%a, %mask) function=add
    %y: f32[2, 2] = softmax(%b) axis=1
    output %y
  )");
}

TEST_CASE("chains of limits of one kind merge, a clip stays") {
  canonicalizes(R"(
    %x: f32[4] = input
    %one: f32[] = const [1]
    %two: f32[] = const [2]
    %six: f32[] = const [6]
    %a: f32[4] = binary(%x, %one) function=max
    %b: f32[4] = binary(%two, %a) function=max
    %c: f32[4] = binary(%b, %six) function=min
    output %c
  )",
                R"(
    %x: f32[4] = input
    %six: f32[] = const [6]
    %b_limit: f32[] = const [2]
    %b: f32[4] = binary(%b_limit, %x) function=max
    %c: f32[4] = binary(%six, %b) function=min
    output %c
  )");
}

TEST_CASE("small powers are products") {
  canonicalizes(R"(
    %x: f32[4] = input
    %two: f32[] = const [2]
    %three: f32[] = const [3]
    %a: f32[4] = binary(%x, %two) function=pow
    %b: f32[4] = binary(%a, %three) function=pow
    output %b
  )",
                R"(
    %x: f32[4] = input
    %a: f32[4] = binary(%x, %x) function=mul
    %b_square: f32[4] = binary(%a, %a) function=mul
    %b: f32[4] = binary(%b_square, %a) function=mul
    output %b
  )");
}

TEST_CASE("double negations and roundings of what is whole") {
  canonicalizes(R"(
    %x: f32[4] = input
    %a: f32[4] = unary(%x) function=neg
    %b: f32[4] = unary(%a) function=neg
    %c: f32[4] = binary(%b, %a) function=sub
    %d: f32[4] = unary(%c) function=floor
    %e: f32[4] = unary(%d) function=round
    %g: f32[4] = unary(%a) function=abs
    output %e
    output %g
  )",
                R"(
    %x: f32[4] = input
    %c: f32[4] = binary(%x, %x) function=add
    %d: f32[4] = unary(%c) function=floor
    %g: f32[4] = unary(%x) function=abs
    output %d as "e"
    output %g
  )");
}

TEST_CASE("casts through a wider type are one cast, through a narrower one two") {
  canonicalizes(R"(
    %x: u8[4] = input
    %a: i32[4] = cast(%x) to=i32
    %b: f32[4] = cast(%a) to=f32
    %c: u8[4] = cast(%b) to=u8
    %d: f16[4] = cast(%b) to=f16
    %e: f32[4] = cast(%d) to=f32
    output %c
    output %e
  )",
                R"(
    %x: u8[4] = input
    %d: f16[4] = cast(%x) to=f16
    %e: f32[4] = cast(%d) to=f32
    output %x as "c"
    output %e
  )");
}

TEST_CASE("select with a known condition") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %y: f32[3] = input
    %m: bool[2, 3] = input
    %no: bool[] = const [0]
    %yes: bool[2, 1] = const [1, 1]
    %a: f32[2, 3] = select(%yes, %x, %y)
    %b: f32[2, 3] = select(%no, %x, %y)
    %n: bool[2, 3] = unary(%m) function=logical_not
    %c: f32[2, 3] = select(%n, %a, %b)
    output %c
  )",
                R"(
    %x: f32[2, 3] = input
    %y: f32[3] = input
    %m: bool[2, 3] = input
    %c: f32[2, 3] = select(%m, %y, %x)
    output %c
  )");
}

TEST_CASE("operators broadcast by themselves, unless the expansion gives the shape") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %y: f32[1, 3] = input
    %a: f32[2, 3] = expand(%y) shape=[2, 3]
    %b: f32[2, 3] = binary(%a, %x) function=add
    %c: f32[4, 2, 3] = expand(%b) shape=[4, 2, 3]
    %d: f32[4, 2, 3] = binary(%c, %x) function=mul
    output %d
  )",
                R"(
    %x: f32[2, 3] = input
    %y: f32[1, 3] = input
    %b: f32[2, 3] = binary(%y, %x) function=add
    %c: f32[4, 2, 3] = expand(%b) shape=[4, 2, 3]
    %d: f32[4, 2, 3] = binary(%c, %x) function=mul
    output %d
  )");
}

TEST_CASE("transposes merge, and are reshapes when only extents of 1 move") {
  canonicalizes(R"(
    %x: f32[2, 3, 1, 4] = input
    %a: f32[3, 2, 4, 1] = transpose(%x) perm=[1,0,3,2]
    %b: f32[2, 3, 4, 1] = transpose(%a) perm=[1,0,2,3]
    %c: f32[2, 12] = reshape(%b) shape=[2, 12]
    %d: f32[2, 3, 4] = reshape(%c) shape=[2, 3, 4]
    %e: f32[4, 3, 2] = transpose(%d) perm=[2,1,0]
    output %e
  )",
                R"(
    %x: f32[2, 3, 1, 4] = input
    %d: f32[2, 3, 4] = reshape(%x) shape=[2, 3, 4]
    %e: f32[4, 3, 2] = transpose(%d) perm=[2,1,0]
    output %e
  )");
}

TEST_CASE("movement that does nothing goes") {
  canonicalizes(R"(
    %x: f32[2, 3, 4, 4] = input
    %a: f32[2, 3, 4, 4] = transpose(%x) perm=[0,1,2,3]
    %b: f32[2, 3, 4, 4] = reshape(%a) shape=[2, 3, 4, 4]
    %c: f32[2, 3, 4, 4] = expand(%b) shape=[2, 3, 4, 4]
    %d: f32[2, 3, 4, 4] = slice(%c) starts=[0, 0, 0, 0] steps=[1,1,1,1] sizes=[2, 3, 4, 4]
    %e: f32[2, 3, 4, 4] = pad(%d) begins=[0, 0, 0, 0] ends=[0, 0, 0, 0]
    %f: f32[2, 3, 4, 4] = concat(%e) axis=1
    %g: f32[2, 3, 4, 4] = pool(%f) kernel=[1,1] strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %h: f32[2, 3, 4, 4] = unary(%g) function=exp
    output %h
  )",
                R"(
    %x: f32[2, 3, 4, 4] = input
    %h: f32[2, 3, 4, 4] = unary(%x) function=exp
    output %h
  )");
}

TEST_CASE("slices merge and look through concatenations") {
  canonicalizes(R"(
    %x: f32[10] = input
    %y: f32[5] = input
    %a: f32[4] = slice(%x) starts=[1] steps=[2] sizes=[4]
    %b: f32[2] = slice(%a) starts=[3] steps=[-2] sizes=[2]
    %c: f32[15] = concat(%x, %y) axis=0
    %d: f32[2] = slice(%c) starts=[14] steps=[-3] sizes=[2]
    %e: f32[4] = concat(%b, %d) axis=0
    %f: f32[9] = concat(%e, %y) axis=0
    output %f
  )",
                R"(
    %x: f32[10] = input
    %y: f32[5] = input
    %b: f32[2] = slice(%x) starts=[7] steps=[-4] sizes=[2]
    %d: f32[2] = slice(%y) starts=[4] steps=[-3] sizes=[2]
    %f: f32[9] = concat(%b, %d, %y) axis=0
    output %f
  )");
}

TEST_CASE("a gather at one constant index is a slice") {
  canonicalizes(R"(
    %x: f32[2, 3, 4] = input
    %i: i64[] = const [-1]
    %a: f32[2, 4] = gather(%x, %i) axis=1
    output %a
  )",
                R"(
    %x: f32[2, 3, 4] = input
    %a_slice: f32[2, 1, 4] = slice(%x) starts=[0, 2, 0] steps=[1,1,1] sizes=[2, 1, 4]
    %a: f32[2, 4] = reshape(%a_slice) shape=[2, 4]
    output %a
  )");
}

TEST_CASE("symbolic extents are not 1, and merge like others") {
  run_pass("canonicalize", R"(graph @t(batch, n) {
    %x: f32[batch, n, 4] = input
    %y: f32[n] = input
    %a: f32[n, batch, 4] = transpose(%x) perm=[1,0,2]
    %b: f32[n * batch, 4] = reshape(%a) shape=[n * batch, 4]
    %c: f32[batch * n, 2, 2] = reshape(%b) shape=[batch * n, 2, 2]
    %d: f32[batch * n, 2, 2] = slice(%c) starts=[0, 0, 0] steps=[1,1,1] sizes=[n * batch, 2, 2]
    %e: f32[batch, n] = expand(%y) shape=[batch, n]
    %f: f32[batch, n] = expand(%e) shape=[batch, n]
    output %d
    output %f
  })",
           R"(graph @t(batch, n) {
    %x: f32[batch, n, 4] = input
    %y: f32[n] = input
    %a: f32[n, batch, 4] = transpose(%x) perm=[1,0,2]
    %c: f32[batch * n, 2, 2] = reshape(%a) shape=[batch * n, 2, 2]
    %e: f32[batch, n] = expand(%y) shape=[batch, n]
    output %c as "d"
    output %e as "f"
  })");
}

TEST_CASE("layout casts merge; what is stored in blocks is left alone") {
  canonicalizes(R"(
    %x: f32[1, 4, 2, 2] = input
    %k: f32[1, 4, 1, 1] = const [1, 2, 3, 4]
    %two: f32[] = const [2]
    %a: f32[1, 4, 2, 2]@1:4 = layout_cast(%x) axis=1 block=4
    %b: f32[1, 4, 2, 2] = layout_cast(%a) axis=-1 block=0
    %c: f32[1, 4, 2, 2] = unary(%b) function=exp
    %d: f32[1, 4, 2, 2]@1:4 = layout_cast(%c) axis=1 block=4
    %e: f32[1, 4, 2, 2]@1:4 = binary(%two, %d) function=add
    %f: f32[1, 4, 2, 2]@1:2 = layout_cast(%e) axis=1 block=2
    %g: f32[1, 4, 2, 2] = layout_cast(%f) axis=-1 block=0
    output %g
  )",
                R"(
    %x: f32[1, 4, 2, 2] = input
    %two: f32[] = const [2]
    %c: f32[1, 4, 2, 2] = unary(%x) function=exp
    %d: f32[1, 4, 2, 2]@1:4 = layout_cast(%c) axis=1 block=4
    %e: f32[1, 4, 2, 2]@1:4 = binary(%two, %d) function=add
    %g: f32[1, 4, 2, 2] = layout_cast(%e) axis=-1 block=0
    output %g
  )");
}

TEST_CASE("a reduction of extents of 1 is a reshape") {
  canonicalizes(R"(
    %x: f32[2, 3, 1, 1] = input
    %a: f32[2, 3] = reduce(%x) kind=mean axes=[2,3] keep=false
    output %a
  )",
                R"(
    %x: f32[2, 3, 1, 1] = input
    %a: f32[2, 3] = reshape(%x) shape=[2, 3]
    output %a
  )");
}

TEST_CASE("constants move in front of reshapes that add or drop axes of extent 1") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %mask: f32[1, 2, 1, 1] = const [0, 5]
    %a: f32[1, 2, 1, 3] = reshape(%x) shape=[1, 2, 1, 3]
    %b: f32[1, 2, 1, 3] = binary(%a, %mask) function=add
    %y: f32[2, 3] = reshape(%b) shape=[2, 3]
    output %y
  )",
                R"(
    %x: f32[2, 3] = input
    %mask: f32[1, 2, 1, 1] = const [0, 5]
    %b_beside: f32[2, 1] = reshape(%mask) shape=[2, 1]
    %b_early: f32[2, 3] = binary(%x, %b_beside) function=add
    output %b_early as "y"
  )");
}

TEST_CASE("constants stay behind reshapes that cut or join axes") {
  keeps(R"(
    %x: f32[6] = input
    %k: f32[3] = const [0, 5, 7]
    %a: f32[2, 3] = reshape(%x) shape=[2, 3]
    %y: f32[2, 3] = binary(%a, %k) function=add
    output %y
  )");
}

TEST_CASE("constants that widen a tensor stay behind its reshape") {
  keeps(R"(
    %x: f32[2] = input
    %k: f32[3] = const [0, 5, 7]
    %a: f32[2, 1] = reshape(%x) shape=[2, 1]
    %y: f32[2, 3] = binary(%a, %k) function=add
    output %y
  )");
}

TEST_CASE("element-wise operators move in front of reshapes and transposes that only they read") {
  canonicalizes(R"(
    %x: f32[2, 12] = input
    %half: f32[] = const [0.5]
    %a: f32[2, 3, 4] = reshape(%x) shape=[2, 3, 4]
    %b: f32[2, 4, 3] = transpose(%a) perm=[0,2,1]
    %c: f32[2, 4, 3] = binary(%b, %half) function=mul
    output %c
  )",
                R"(
    %x: f32[2, 12] = input
    %half: f32[] = const [0.5]
    %c_early_early: f32[2, 12] = binary(%x, %half) function=mul
    %c_early: f32[2, 3, 4] = reshape(%c_early_early) shape=[2, 3, 4]
    %c: f32[2, 4, 3] = transpose(%c_early) perm=[0,2,1]
    output %c
  )");
}

TEST_CASE("pads go into convolutions and pools") {
  canonicalizes(R"(
    %x: f32[1, 1, 4, 4] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %a: f32[1, 1, 6, 5] = pad(%x) begins=[0, 0, 1, 0] ends=[0, 0, 1, 1]
    %b: f32[1, 1, 4, 4] = conv(%a, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,1]
    %c: f32[1, 1, 6, 6] = pad(%b) begins=[0, 0, 1, 1] ends=[0, 0, 1, 1]
    %d: f32[1, 1, 5, 5] = pool(%c) kind=average kernel=[2,2] strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %d
  )",
                R"(
    %x: f32[1, 1, 4, 4] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %b: f32[1, 1, 4, 4] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,0,1,2]
    %d: f32[1, 1, 5, 5] = pool(%b) kind=average kernel=[2,2] strides=[1,1] dilations=[1,1] pads=[1,1,1,1] count_include_pad=true
    output %d
  )");
}

TEST_CASE("taps that meet only padding are left out") {
  canonicalizes(R"(
    %x: f32[1, 1, 3, 8] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %y: f32[1, 1, 3, 8] = conv(%x, %w) strides=[1,1] dilations=[4,4] pads=[4,4,4,4]
    output %y
  )",
                R"(
    %x: f32[1, 1, 3, 8] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %y_taps: f32[1, 1, 1, 3] = slice(%w) starts=[0,0,1,0] steps=[1,1,1,1] sizes=[1,1,1,3]
    %y: f32[1, 1, 3, 8] = conv(%x, %y_taps) strides=[1,1] dilations=[4,4] pads=[0,4,0,4]
    output %y
  )");
  // The last output's first tap meets the picture; a tap never is left out that leaves a gap
  keeps(R"(
    %x: f32[1, 1, 3] = input
    %w: f32[1, 1, 3] = const [1, 2, 3]
    %y: f32[1, 1, 5] = conv(%x, %w) strides=[1] dilations=[2] pads=[3,3]
    output %y
  )");
}

TEST_CASE("pads with other values, and before a max pool, stay") {
  keeps(R"(
    %x: f32[1, 1, 4, 4] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %one: f32[] = const [1]
    %a: f32[1, 1, 6, 6] = pad(%x, %one) begins=[0, 0, 1, 1] ends=[0, 0, 1, 1]
    %b: f32[1, 1, 4, 4] = conv(%a, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %c: f32[1, 1, 6, 6] = pad(%b) begins=[0, 0, 1, 1] ends=[0, 0, 1, 1]
    %d: f32[1, 1, 5, 5] = pool(%c) kernel=[2,2] strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %d
  )");
}

TEST_CASE("a convolution of a tensor's phases is one of the tensor") {
  canonicalizes(R"(
    %x: f32[2, 1, 4, 6] = input
    %w: f32[2, 4, 1, 2] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    %b: f32[2] = const [1, 2]
    %p: f32[2, 1, 2, 3] = slice(%x) starts=[0, 0, 0, 0] steps=[1, 1, 2, 2] sizes=[2, 1, 2, 3]
    %q: f32[2, 1, 2, 3] = slice(%x) starts=[0, 0, 1, 0] steps=[1, 1, 2, 2] sizes=[2, 1, 2, 3]
    %r: f32[2, 1, 2, 3] = slice(%x) starts=[0, 0, 0, 1] steps=[1, 1, 2, 2] sizes=[2, 1, 2, 3]
    %s: f32[2, 1, 2, 3] = slice(%x) starts=[0, 0, 1, 1] steps=[1, 1, 2, 2] sizes=[2, 1, 2, 3]
    %c: f32[2, 4, 2, 3] = concat(%p, %q, %r, %s) axis=1
    %y: f32[2, 2, 2, 3] = conv(%c, %w, %b) strides=[1,1] dilations=[1,1] pads=[0,1,0,0]
    output %y
  )",
                R"(
    %x: f32[2, 1, 4, 6] = input
    %b: f32[2] = const [1, 2]
    %y_weights: f32[2, 1, 2, 4] = const [1, 5, 2, 6, 3, 7, 4, 8, 9, 13, 10, 14, 11, 15, 12, 16]
    %y: f32[2, 2, 2, 3] = conv(%x, %y_weights, %b) strides=[2,2] dilations=[1,1] pads=[0,2,0,0]
    output %y
  )");
  canonicalizes(R"(
    %x: f32[1, 2, 9] = input
    %w: f32[1, 6, 2] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    %p: f32[1, 2, 3] = slice(%x) starts=[0, 0, 2] steps=[1, 1, 3] sizes=[1, 2, 3]
    %q: f32[1, 2, 3] = slice(%x) starts=[0, 0, 0] steps=[1, 1, 3] sizes=[1, 2, 3]
    %r: f32[1, 2, 3] = slice(%x) starts=[0, 0, 1] steps=[1, 1, 3] sizes=[1, 2, 3]
    %c: f32[1, 6, 3] = concat(%p, %q, %r) axis=1
    %y: f32[1, 1, 2] = conv(%c, %w) strides=[2] dilations=[1] pads=[1,0]
    output %y
  )",
                R"(
    %x: f32[1, 2, 9] = input
    %y_weights: f32[1, 2, 6] = const [5, 9, 1, 6, 10, 2, 7, 11, 3, 8, 12, 4]
    %y: f32[1, 1, 2] = conv(%x, %y_weights) strides=[6] dilations=[1] pads=[3,0]
    output %y
  )");
}

TEST_CASE("phases that miss points, repeat some, or are read elsewhere stay") {
  const char* slices[] = {"starts=[0, 0, 1] steps=[1, 1, 2] sizes=[1, 1, 3]",
                          "starts=[0, 0, 0] steps=[1, 1, 2] sizes=[1, 1, 3]"};
  const char* widths[] = {"7", "6"};  // an odd extent; two equal starts
  for (int i = 0; i < 2; ++i)
    keeps(std::string("%x: f32[1, 1, ") + widths[i] + R"(] = input
    %w: f32[1, 2, 1] = const [1, 2]
    %p: f32[1, 1, 3] = slice(%x) starts=[0, 0, 0] steps=[1, 1, 2] sizes=[1, 1, 3]
    %q: f32[1, 1, 3] = slice(%x) )" +
          slices[i] + R"(
    %c: f32[1, 2, 3] = concat(%p, %q) axis=1
    %y: f32[1, 1, 3] = conv(%c, %w) strides=[1] dilations=[1] pads=[0,0]
    output %y
  )");
  keeps(R"(
    %x: f32[1, 1, 6] = input
    %w: f32[1, 2, 1] = const [1, 2]
    %p: f32[1, 1, 3] = slice(%x) starts=[0, 0, 0] steps=[1, 1, 2] sizes=[1, 1, 3]
    %q: f32[1, 1, 3] = slice(%x) starts=[0, 0, 1] steps=[1, 1, 2] sizes=[1, 1, 3]
    %c: f32[1, 2, 3] = concat(%p, %q) axis=1
    %y: f32[1, 1, 3] = conv(%c, %w) strides=[1] dilations=[1] pads=[0,0]
    output %y
    output %c
  )");
}

TEST_CASE("a pointwise convolution of a stride takes the points that it reads") {
  canonicalizes(R"(
    %x: f32[2, 3, 5, 6] = input
    %w: f32[128, 3, 1, 1] = input
    %b: f32[128] = input
    %y: f32[2, 128, 3, 2] = conv(%x, %w, %b) strides=[2,3] dilations=[1,1] pads=[0,0,0,0]
    output %y
  )",
                R"(
    %x: f32[2, 3, 5, 6] = input
    %w: f32[128, 3, 1, 1] = input
    %b: f32[128] = input
    %y_points: f32[2, 3, 3, 2] = slice(%x) starts=[0, 0, 0, 0] steps=[1, 1, 2, 3] sizes=[2, 3, 3, 2]
    %y: f32[2, 128, 3, 2] = conv(%y_points, %w, %b) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %y
  )");
}

TEST_CASE("strided convolutions of few outputs, of taps or of padding read in place") {
  struct Case {
    const char *weights, *output, *pads;
  };
  for (const Case& c : {Case{"64, 3, 1", "64, 4", "0,0"}, Case{"128, 3, 2", "128, 3", "0,0"},
                        Case{"128, 3, 1", "128, 4", "1,0"}})
    keeps(std::string("%x: f32[1, 3, 7] = input\n%w: f32[") + c.weights + "] = input\n%y: f32[1, " +
          c.output + "] = conv(%x, %w) strides=[2] dilations=[1] pads=[" + c.pads +
          "]\noutput %y\n");
}

TEST_CASE("transposes of the last two axes are flags of a matmul; keys keep their rows") {
  canonicalizes(R"(
    %q: f32[2, 5, 4] = input
    %k: f32[5, 2, 4] = input
    %w: f32[3, 5] = input
    %a: f32[2, 4, 5] = transpose(%k) perm=[1,2,0]
    %b: f32[2, 5, 5] = matmul(%q, %a)
    %t: f32[5, 3] = transpose(%w) perm=[1,0]
    %c: f32[2, 5, 3] = matmul(%b, %t)
    output %c
  )",
                R"(
    %q: f32[2, 5, 4] = input
    %k: f32[5, 2, 4] = input
    %w: f32[3, 5] = input
    %a_rows: f32[2, 5, 4] = transpose(%k) perm=[1,0,2]
    %b: f32[2, 5, 5] = matmul(%q, %a_rows) trans_b=true
    %c: f32[2, 5, 3] = matmul(%b, %w) trans_b=true
    output %c
  )");
}

TEST_CASE("a concat of many parts is a tree, as far as its leaves do not fit into the root") {
  const auto times = [](int count) {
    std::string list = "%x";
    for (int i = 1; i < count; ++i) list += ", %x";
    return list;
  };
  const std::string input = "    %x: f32[2, 1] = input\n";
  canonicalizes(input + "    %c: f32[2, 130] = concat(" + times(130) + ") axis=1\n    output %c\n",
                input + "    %c_parts: f32[2, 64] = concat(" + times(64) +
                    ") axis=1\n    %c_parts_1: f32[2, 64] = concat(" + times(64) +
                    ") axis=1\n    %c: f32[2, 130] = concat(%c_parts, %c_parts_1, %x, %x) axis=1\n "
                    "   output %c\n");
}
