#include "ir/expr.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ir/scalar_ops.h"

using namespace tw;

TEST_CASE("makers fold constants and identities, and keep floats as they are") {
  Expr i = var("i");
  CHECK(is_const(Expr(6) * 7 + 1, 43));
  CHECK((i + 0).get() == i.get());
  CHECK((1 * i).get() == i.get());
  CHECK(is_const(i * 0, 0));
  CHECK(is_const(floor_mod(i, 1), 0));
  CHECK(is_const(lt(2, 3), 1));
  CHECK(is<expr::Binary>(floor_div(5, 0)));
  CHECK(is<expr::Binary>(float_imm(1) + float_imm(2)));
  CHECK(as<expr::Float>(float_imm(0.1))->value == 0.1f);
  CHECK(is_const(int_imm(300, DType::u8), 44));
  CHECK(is_const(-int_imm(-128, DType::i8), -128));
  CHECK(select(bool_imm(true), i, i + 1).get() == i.get());
  CHECK(is<expr::Binary>(logical_and(Expr(), lt(i, 3))));
  CHECK(is_const(logical_and(bool_imm(false), lt(i, 3)), 0));
  CHECK(is_const(cast(DType::u8, Expr(-1)), 255));
  CHECK(is_const(cast(DType::u8, Expr(-1), true), 0));
  CHECK(as<expr::Float>(cast(DType::f32, Expr(3)))->value == 3.0);
  CHECK(cast(DType::i64, i).get() == i.get());
  CHECK(!as<expr::Cast>(cast(DType::f32, i, true))->saturate);
}

TEST_CASE("equality and hashes are structural") {
  auto make = [] { return load(BufferId{1}, DType::f32, {var("i") + 1, var("j")}); };
  CHECK(equal(make(), make()));
  CHECK(hash_value(make()) == hash_value(make()));
  CHECK(!equal(make(), load(BufferId{2}, DType::f32, {var("i") + 1, var("j")})));
  CHECK(!equal(float_imm(0.0), float_imm(-0.0)));
  CHECK(equal(float_imm(NAN), float_imm(-NAN)));
  CHECK(!equal(int_imm(1, DType::i32), Expr(1)));
  CHECK(!equal(Expr(), Expr(1)));
  CHECK(equal(Expr(), Expr()));
}

TEST_CASE("rewrite shares what does not change") {
  Expr a = var("i") + var("j"), e = a * var("k");
  CHECK(substitute(e, "x", 3).get() == e.get());
  Expr changed = substitute(e, "k", var("m"));
  CHECK(to_string(changed) == "(i + j) * m");
  CHECK(as<expr::Binary>(changed)->a.get() == a.get());
  CHECK(is_const(substitute(substitute(substitute(e, "i", 1), "j", 2), "k", 3), 9));
  CHECK(uses_var(e, "j"));
  CHECK(!uses_var(e, "x"));
  int count = 0;
  visit(e, [&](const Expr&) { ++count; });
  CHECK(count == 5);
}

TEST_CASE("integer arithmetic of each width") {
  auto op = [](BinaryOp o, DType t, int64_t a, int64_t b) { return int_binary(o, t, a, b); };
  CHECK(op(BinaryOp::add, DType::i32, INT32_MAX, 1) == INT32_MIN);
  CHECK(op(BinaryOp::mul, DType::u16, 65535, 65535) == 1);
  CHECK(op(BinaryOp::floor_div, DType::i64, -7, 2) == -4);
  CHECK(op(BinaryOp::div, DType::i64, -7, 2) == -3);
  CHECK(op(BinaryOp::floor_mod, DType::i64, -7, 3) == 2);
  CHECK(op(BinaryOp::floor_mod, DType::i64, 7, -3) == -2);
  CHECK(op(BinaryOp::mod, DType::i64, -7, 3) == -1);
  CHECK(op(BinaryOp::div, DType::i32, INT32_MIN, -1) == INT32_MIN);
  CHECK(op(BinaryOp::div, DType::i64, INT64_MIN, -1) == INT64_MIN);
  CHECK(op(BinaryOp::mod, DType::i64, INT64_MIN, -1) == 0);
  CHECK(op(BinaryOp::div, DType::u64, -1, 2) == INT64_MAX);
  CHECK(op(BinaryOp::max, DType::u64, -1, 5) == -1);
  CHECK(op(BinaryOp::min, DType::i64, -1, 5) == -1);
  CHECK(op(BinaryOp::lt, DType::u32, 5, 4000000000) == 1);
  CHECK(op(BinaryOp::shl, DType::i8, 1, 7) == -128);
  CHECK(op(BinaryOp::shr, DType::i8, -128, 40) == -1);
  CHECK(op(BinaryOp::shr, DType::u8, 128, 7) == 1);
  CHECK(op(BinaryOp::shl, DType::u8, 1, 8) == 0);
  CHECK(op(BinaryOp::pow, DType::i32, 3, 4) == 81);
  CHECK(op(BinaryOp::pow, DType::i32, 2, -1) == 0);
  CHECK(cast_int(DType::u64, DType::i64, -1, true) == 0);
  CHECK(cast_int(DType::i64, DType::u64, -1, true) == INT64_MAX);
  CHECK(cast_int(DType::i8, DType::i32, -300, true) == -128);
  CHECK(cast_int(DType::boolean, DType::i32, 7, false) == 1);
}

TEST_CASE("evaluation short-circuits and looks variables up") {
  auto env = [](std::string_view name) -> int64_t { return name == "i" ? 5 : 0; };
  CHECK(eval_int(ceil_div(var("i"), 4) * 10, env) == 20);
  CHECK(eval_int(binary(BinaryOp::logical_and, lt(var("i"), 0), eq(floor_div(1, var("j")), 0)),
                 env) == 0);
  CHECK(eval_int(select(lt(0, var("i")), unary(UnaryOp::abs, -var("i")), floor_div(1, var("j"))),
                 env) == 5);
  CHECK(eval_int(cast(DType::i8, var("i") + 250), env) == -1);
}
