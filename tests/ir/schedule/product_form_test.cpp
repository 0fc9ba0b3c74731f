#include "ir/schedule/product_form.h"

#include <doctest/doctest.h>

using namespace tw;

namespace {

Intrinsic instruction(const char* semantics) {
  Intrinsic made;
  made.name = "i";
  made.semantics = semantics;
  return made;
}

}  // namespace

TEST_CASE("product form: sums of neighbours are one row, and dense") {
  const Intrinsic dot = instruction(
      "kernel @dot(a: in u8[4], b: in i8[64], c: out i32[16]) { for i in 16 { for k in 4 reduce { "
      "c: c[i] += i32(b[i * 4 + k]) * i32(a[k]) } } }");
  const auto form = product_form(dot);
  REQUIRE(form);
  CHECK(form->left_type == DType::u8);
  CHECK(form->right_type == DType::i8);
  CHECK(form->sum_type == DType::i32);
  CHECK(form->row_count() == 1);
  CHECK(form->column_count() == 16);
  CHECK(form->depth_count() == 4);
  CHECK(form->columns[0].right == 4);
  CHECK(form->dense());
  CHECK(!product_form(dot, [](const ProductForm& f) { return f.left_type == DType::i8; }));
}

TEST_CASE("product form: rows, and layouts that are not dense") {
  const Intrinsic matrix = instruction(
      "kernel @mm(a: in i8[2, 8], b: in i8[2, 8], c: out i32[2, 2]) { for i in 2 { for j in 2 { "
      "for k in 8 reduce { c: c[i, j] += i32(a[i, k]) * i32(b[j, k]) } } } }");
  const auto form = product_form(matrix);
  REQUIRE(form);
  CHECK(form->row_count() == 2);
  CHECK(form->rows[0].left == 8);
  CHECK(form->rows[0].sum == 2);
  CHECK(form->dense());

  Intrinsic tile = instruction(
      "kernel @tile(a: in u8[16, 64], b: in i8[16, 16, 4], c: out i32[16, 16]) { for i in 16 { for "
      "j in 16 { for k in 16 reduce { for p in 4 reduce { c: c[i, j] += i32(a[i, k * 4 + p]) * "
      "i32(b[k, j, p]) } } } } }");
  const auto tiled = product_form(tile);
  REQUIRE(tiled);
  CHECK(tiled->depth.size() == 2);
  CHECK(tiled->depth_count() == 64);
  CHECK(tiled->depth[0].right == 64);
  CHECK(tiled->neighbours() == 4);
  CHECK(tiled->dense());
  CHECK(!tiled->in_tiles);
  tile.scopes = {"tile", "tile", "tile"};
  CHECK(product_form(tile)->in_tiles);

  const Intrinsic transposed = instruction(
      "kernel @t(a: in i8[8], b: in i8[8, 4], c: out i32[4]) { for j in 4 { for k in 8 reduce { c: "
      "c[j] += i32(a[k]) * i32(b[k, j]) } } }");
  CHECK(!product_form(transposed)->dense());
}

TEST_CASE("product form: what adds no product has none") {
  CHECK(!product_form(instruction(
      "kernel @max(a: in i8[16], c: out i8[16]) { for o in 16 { c: c[o] max= a[o] } }")));
  CHECK(!product_form(instruction(
      "kernel @sum(a: in f32[16], c: out f32[16]) { for o in 16 { c: c[o] += a[o] } }")));
  CHECK(!product_form(instruction("no kernel")));
}

TEST_CASE("product form: the most products a cycle, the first of equals") {
  const char* const semantics =
      "kernel @dot(a: in i8[4], b: in i8[16], c: out i32[4]) { for i in 4 { for k in 4 reduce { c: "
      "c[i] += i32(a[k]) * i32(b[i * 4 + k]) } } }";
  Target target = baseline_target(Arch::x86_64);
  for (const auto& [name, rate] : {std::pair{"slow", 0.5}, {"first", 2.0}, {"second", 2.0}}) {
    target.intrinsics.push_back(instruction(semantics));
    target.intrinsics.back().name = name;
    target.intrinsics.back().rate = rate;
  }
  const auto any = [](const ProductForm&) { return true; };
  CHECK(best_product(target, any, any)->intrinsic->name == "first");
  CHECK(!best_product(target, any, [](const ProductForm& f) { return f.row_count() > 1; }));
}
