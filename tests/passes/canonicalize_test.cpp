#include <doctest/doctest.h>

#include "run_pass.h"

using tw::test::run_pass;

namespace {

// The bodies of two graphs of no symbols.
void canonicalizes(const std::string& before, const std::string& after) {
  run_pass("canonicalize", ("graph @t() {\n" + before + "}\n").c_str(), ("graph @t() {\n" + after + "}\n").c_str());
}
void keeps(const std::string& body) { canonicalizes(body, body); }

}  // namespace

TEST_CASE("neutral elements go, from either side") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %zero: f32[] = const [0]
    %one: f32[1, 3] = const [1, 1, 1]
    %a: f32[2, 3] = add(%zero, %x)
    %b: f32[2, 3] = mul(%a, %one)
    %c: f32[2, 3] = div(%b, %one)
    %d: f32[2, 3] = sub(%c, %zero)
    %e: f32[2, 3] = tanh(%d)
    output %e
  )", R"(
    %x: f32[2, 3] = input
    %e: f32[2, 3] = tanh(%x)
    output %e
  )");
}

TEST_CASE("a neutral element that broadcasts its operand stays") {
  keeps(R"(
    %x: f32[3] = input
    %zero: f32[2, 3] = const [0, 0, 0, 0, 0, 0]
    %y: f32[2, 3] = add(%x, %zero)
    output %y
  )");
}

TEST_CASE("constants stand right of add and left of max; subtraction and division are addition and multiplication") {
  canonicalizes(R"(
    %x: f32[2, 2] = input
    %k: f32[2] = const [2, 4]
    %a: f32[2, 2] = add(%k, %x)
    %b: f32[2, 2] = sub(%a, %k)
    %c: f32[2, 2] = div(%b, %k)
    %d: f32[2, 2] = max(%c, %k)
    output %d
  )", R"(
    %x: f32[2, 2] = input
    %k: f32[2] = const [2, 4]
    %b_shift: f32[2] = const [-2, -4]
    %c_scale: f32[2] = const [0.5, 0.25]
    %a: f32[2, 2] = add(%x, %k)
    %b: f32[2, 2] = add(%a, %b_shift)
    %c: f32[2, 2] = mul(%b, %c_scale)
    %d: f32[2, 2] = max(%k, %c)
    output %d
  )");
}

TEST_CASE("chains of limits of one kind merge, a clip stays") {
  canonicalizes(R"(
    %x: f32[4] = input
    %one: f32[] = const [1]
    %two: f32[] = const [2]
    %six: f32[] = const [6]
    %a: f32[4] = max(%x, %one)
    %b: f32[4] = max(%two, %a)
    %c: f32[4] = min(%b, %six)
    output %c
  )", R"(
    %x: f32[4] = input
    %six: f32[] = const [6]
    %b_limit: f32[] = const [2]
    %b: f32[4] = max(%b_limit, %x)
    %c: f32[4] = min(%six, %b)
    output %c
  )");
}

TEST_CASE("small powers are products") {
  canonicalizes(R"(
    %x: f32[4] = input
    %two: f32[] = const [2]
    %three: f32[] = const [3]
    %a: f32[4] = pow(%x, %two)
    %b: f32[4] = pow(%a, %three)
    output %b
  )", R"(
    %x: f32[4] = input
    %a: f32[4] = mul(%x, %x)
    %b_square: f32[4] = mul(%a, %a)
    %b: f32[4] = mul(%b_square, %a)
    output %b
  )");
}

TEST_CASE("double negations and roundings of what is whole") {
  canonicalizes(R"(
    %x: f32[4] = input
    %n: i32[4] = input
    %a: f32[4] = neg(%x)
    %b: f32[4] = neg(%a)
    %c: f32[4] = sub(%b, %a)
    %d: f32[4] = floor(%c)
    %e: f32[4] = round(%d)
    %f: i32[4] = ceil(%n)
    %g: i32[4] = abs(%f)
    output %e
    output %g
  )", R"(
    %x: f32[4] = input
    %n: i32[4] = input
    %c: f32[4] = add(%x, %x)
    %d: f32[4] = floor(%c)
    %g: i32[4] = abs(%n)
    output %d as e
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
  )", R"(
    %x: u8[4] = input
    %d: f16[4] = cast(%x) to=f16
    %e: f32[4] = cast(%d) to=f32
    output %x as c
    output %e
  )");
}

TEST_CASE("select with a known condition") {
  canonicalizes(R"(
    %x: f32[2, 3] = input
    %y: f32[3] = input
    %m: bool[2, 3] = input
    %no: bool[] = const [false]
    %yes: bool[2, 1] = const [true, true]
    %a: f32[2, 3] = select(%yes, %x, %y)
    %b: f32[2, 3] = select(%no, %x, %y)
    %n: bool[2, 3] = logical_not(%m)
    %c: f32[2, 3] = select(%n, %a, %b)
    output %c
  )", R"(
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
    %b: f32[2, 3] = add(%a, %x)
    %c: f32[4, 2, 3] = expand(%b) shape=[4, 2, 3]
    %d: f32[4, 2, 3] = mul(%c, %x)
    output %d
  )", R"(
    %x: f32[2, 3] = input
    %y: f32[1, 3] = input
    %b: f32[2, 3] = add(%y, %x)
    %c: f32[4, 2, 3] = expand(%b) shape=[4, 2, 3]
    %d: f32[4, 2, 3] = mul(%c, %x)
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
  )", R"(
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
    %c: f32[2, 3, 4, 4] = expand(%b) shape=[3, 4, 4]
    %d: f32[2, 3, 4, 4] = slice(%c) starts=[0, 0, 0, 0] steps=[1,1,1,1] sizes=[2, 3, 4, 4]
    %e: f32[2, 3, 4, 4] = pad(%d) begins=[0, 0, 0, 0] ends=[0, 0, 0, 0]
    %f: f32[2, 3, 4, 4] = concat(%e) axis=1
    %g: f32[2, 3, 4, 4] = pool(%f) kernel=[1,1] strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %h: f32[2, 3, 4, 4] = exp(%g)
    output %h
  )", R"(
    %x: f32[2, 3, 4, 4] = input
    %h: f32[2, 3, 4, 4] = exp(%x)
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
  )", R"(
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
  )", R"(
    %x: f32[2, 3, 4] = input
    %a_slice: f32[2, 1, 4] = slice(%x) starts=[0, 2, 0] steps=[1,1,1] sizes=[2, 1, 4]
    %a: f32[2, 4] = reshape(%a_slice) shape=[2, 4]
    output %a
  )");
}

TEST_CASE("a reduction of extents of 1 is a reshape") {
  canonicalizes(R"(
    %x: f32[2, 3, 1, 1] = input
    %a: f32[2, 3] = reduce(%x) kind=mean axes=[2,3] keep=false
    output %a
  )", R"(
    %x: f32[2, 3, 1, 1] = input
    %a: f32[2, 3] = reshape(%x) shape=[2, 3]
    output %a
  )");
}

TEST_CASE("element-wise operators move in front of reshapes and transposes that only they read") {
  canonicalizes(R"(
    %x: f32[2, 12] = input
    %half: f32[] = const [0.5]
    %a: f32[2, 3, 4] = reshape(%x) shape=[2, 3, 4]
    %b: f32[2, 4, 3] = transpose(%a) perm=[0,2,1]
    %c: f32[2, 4, 3] = mul(%b, %half)
    output %c
  )", R"(
    %x: f32[2, 12] = input
    %half: f32[] = const [0.5]
    %c_early_early: f32[2, 12] = mul(%x, %half)
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
  )", R"(
    %x: f32[1, 1, 4, 4] = input
    %w: f32[1, 1, 3, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9]
    %b: f32[1, 1, 4, 4] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,0,1,2]
    %d: f32[1, 1, 5, 5] = pool(%b) kind=average kernel=[2,2] strides=[1,1] dilations=[1,1] pads=[1,1,1,1] count_include_pad=true
    output %d
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
  )", R"(
    %q: f32[2, 5, 4] = input
    %k: f32[5, 2, 4] = input
    %w: f32[3, 5] = input
    %a_rows: f32[2, 5, 4] = transpose(%k) perm=[1,0,2]
    %b: f32[2, 5, 5] = matmul(%q, %a_rows) trans_b=true
    %c: f32[2, 5, 3] = matmul(%b, %w) trans_b=true
    output %c
  )");
}
