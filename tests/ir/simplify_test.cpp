#include "ir/simplify.h"

#include <doctest/doctest.h>

#include "tests/ir/random_expr.h"

using namespace tw;

namespace {
const Expr i = var("i"), j = var("j"), k = var("k"), n = var("batch"), h = var("h");
Ranges ranges() {
  return {{"i", {0, 7}},          {"j", {0, 15}},     {"k", {0, n - 1}},
          {"batch", {1, Expr()}}, {"h", {1, Expr()}}, {"one", {0, 0}}};
}
std::string simple(const Expr& e) { return to_string(simplify(e, ranges())); }
}  // namespace

TEST_CASE("linear forms merge and keep one order") {
  CHECK(simple(j * 3 + i - j * 2 + 4 - 1) == "i + j + 3");
  CHECK(simple((i + 1) * 4 - i * 4) == "4");
  CHECK(simple(j - i) == "j - i");
  CHECK(simple(n * 49 * h - h * 7 * (n * 7)) == "0");
  CHECK(simple((n + 1) * (n - 1)) == "batch * batch - 1");
  CHECK(simple(var("one") * 8 + i) == "i");
}

TEST_CASE("floor_div and floor_mod split off multiples") {
  CHECK(simple(floor_div(i * 16 + j, 16)) == "i");
  CHECK(simple(floor_mod(i * 16 + j, 16)) == "j");
  CHECK(simple(floor_div(i * 32 + j, 16)) == "i * 2");
  CHECK(simple(floor_div(n * 64, 64)) == "batch");
  CHECK(simple(floor_mod(n * 64 + j, 64)) == "j");
  // The place of a pixel in rows of n + 1 pixels, three rows an image
  const Expr place = var("place"), width = n + 1, line = floor_div(place, width);
  CHECK(simple((floor_div(line, 3) * 3 + floor_mod(line, 3)) * width + floor_mod(place, width)) ==
        "place");
  CHECK(simple(floor_div(floor_div(k, 3), 4)) == "k // 12");
  CHECK(simple(floor_mod(floor_mod(k, 12), 4)) == "k % 4");
  CHECK(simple(floor_mod(k * 6, 8)) == "k * 3 % 4 * 2");
  CHECK(simple(floor_div(k, 5) * 5 + floor_mod(k, 5)) == "k");
  CHECK(simple(floor_div(k, 28) * 28 + floor_mod(floor_div(k, 4), 7) * 4 + floor_mod(k, 4)) == "k");
  CHECK(simple(floor_div(i, 8)) == "0");
  CHECK(simple(floor_mod(i + 8, 8)) == "i");
  CHECK(simple(floor_div(k * 16 + j, n * 16)) == "0");
  CHECK(simple(floor_div(i * n + k, n)) == "i");
  CHECK(simple(floor_mod(i * n + k, n)) == "k");
  CHECK(simple(floor_div((i * h + 3) * n + k, n)) == "h * i + 3");
  // A part of the divisor bounds the rest: planes of n, eight of them a group
  CHECK(simple(floor_div(place * n + k, n * 8)) == "place // 8");
  CHECK(simple(floor_mod(place * n + k, n * 8)) == "batch * (place % 8) + k");
  CHECK(simple(floor_div((i * h + 3) * n + k, n * h)) == "i + 3 // h");
  CHECK(simple(floor_div(i * n + place, n)) == "i + place // batch");
  CHECK(simple(floor_div(i * n + place, n) * n + floor_mod(i * n + place, n)) ==
        "batch * i + place");
  // A place in a plane says that the plane is not empty
  Ranges planes{{"wide", symbol_range("wide.0")}, {"high", symbol_range("high.0")}};
  planes["wide"].min = planes["high"].min = Expr(0);
  const Expr wide = var("wide"), high = var("high"), cell = var("cell");
  planes["cell"] = {Expr(0), wide * high - 1};
  CHECK(to_string(simplify(floor_div(place * wide * high + cell, wide * high), planes)) == "place");
  CHECK(to_string(simplify(floor_div(place * wide, wide), planes)) == "place * wide // wide");
  // Quotients of dividends that have a known distance
  CHECK(simple(min(floor_div(n + 1, 4) + 1, floor_div(n + 3, 4))) == "(batch + 3) // 4");
  CHECK(simple(max(floor_div(n, 2), floor_div(n - 1, 2))) == "batch // 2");
  CHECK(simple(lt(floor_div(n, 2), floor_div(n - 2, 2))) == "false");
  CHECK(simple(le(floor_div(n + 1240, 1280), floor_div(max(floor_div(n, 20), 2) + 62, 64))) ==
        "true");
  CHECK(simple(le(floor_div(n, 2), floor_div(n, 8) * 4 + 3)) == "true");
  CHECK(simple(le(floor_div(n, 8) * 4, floor_div(n, 2))) == "true");
  CHECK(simple(le(floor_div(n, 2), floor_div(n, 8) * 4 + 2)) != "true");
}

TEST_CASE("data wraps: no order is concluded from its sums") {
  const Expr w = load(BufferId{0}, DType::i64, {i}), least(INT64_MIN + 1), most(INT64_MAX);
  const auto decided = [](const Expr& e) { return as_const(simplify(e, ranges())).has_value(); };
  CHECK(to_string(simplify(le(w, most), ranges()), [](BufferId) { return "w"; }) ==
        "w[i] <= 9223372036854775807");
  CHECK_FALSE(decided(lt(w, w + 1)));
  CHECK_FALSE(decided(le(max(w, least), floor_mod(max(w, least), 16))));
  CHECK_FALSE(decided(floor_mod(w * 6, 3)));
  CHECK_FALSE(decided(min(w + 1, w + 9) - w));
  CHECK_FALSE(decided(eq(w * 2, w * 2 + var("h") * 2)));
  CHECK_FALSE(decided(le(Expr(0), unary(UnaryOp::abs, w))));
  // Conclusions that hold in spite of wrapping, or between limits, remain.
  CHECK(is_const(simplify(w + 1 - w, ranges()), 1));
  CHECK(decided(lt(min(max(w, 0), n - 1), n)));
  const Expr small = cast(DType::i64, load(BufferId{0}, DType::i32, {i}));
  CHECK(decided(lt(small, small + 1)));
  CHECK(is_const(simplify(floor_mod(small * 6, 3), ranges()), 0));
}

TEST_CASE("min, max, comparisons and selects are decided by the ranges") {
  CHECK(simple(min(i + 3, i + 5)) == "i + 3");
  CHECK(simple(min(i, 7)) == "i");
  CHECK(simple(max(k - n, 0)) == "0");
  CHECK(simple(min(k, n)) == "k");
  CHECK(simple(min(i * 16 + 16, n) - i * 16) == "min(batch - i * 16, 16)");
  CHECK(simple(min(max(j, 3), 2)) == "2");
  CHECK(simple(lt(i * 16 + j, 128)) == "true");
  CHECK(simple(lt(i * 16 + j, 64)) == "i < 4");
  CHECK(simple(le(n * 64, k * 64 + i)) == "false");
  CHECK(simple(eq(i * 2, j * 4 + 1)) == "false");
  CHECK(simple(select(lt(i, 8), j, k)) == "j");
  CHECK(simple(select(lt(k, 4), j + i, i + j)) == "i + j");
  CHECK(simple(unary(UnaryOp::logical_not, lt(k, i))) == "i < k + 1");
  CHECK(simple(logical_and(lt(k, i), lt(i, 9))) == "k < i");
}

TEST_CASE("expressions of other types are simplified inside") {
  Expr x = load(BufferId{0}, DType::f32, {floor_div(i * 16 + j, 16)});
  Expr e = select(lt(i, 9), x * float_imm(2), float_imm(0));
  CHECK(to_string(simplify(e, ranges()), [](BufferId) { return "x"; }) == "x[i] * 2.0");
  Expr wraps = binary(BinaryOp::add, var("a", DType::i8), int_imm(1, DType::i8));
  CHECK(equal(simplify(lt(var("a", DType::i8), wraps)), lt(var("a", DType::i8), wraps)));
}

TEST_CASE("constant bounds and proofs") {
  Bounds b = constant_bounds(floor_div(j - 20, 4) * 2 + i, ranges());
  CHECK(b.min == -10);
  CHECK(b.max == 3);
  CHECK(can_prove(lt(k * h + h - 1, n * h), ranges()));
  CHECK(can_prove(lt(floor_div(k, 16) * 16, n), ranges()));
  CHECK(!can_prove(lt(k + 1, n), ranges()));
  CHECK(constant_bounds(cast(DType::i64, load(BufferId{0}, DType::u8, {i})), ranges()).max == 255);
}

TEST_CASE("linear_in finds the coefficient") {
  auto term = linear_in(i * 16 + floor_div(j, 3) + 2 * i, "i");
  REQUIRE(term);
  CHECK(term->coefficient == 18);
  CHECK(to_string(term->rest) == "j // 3");
  CHECK(!linear_in(floor_div(i, 3), "i"));
  CHECK(!linear_in(i * n, "i"));
  CHECK(linear_in(j, "i")->coefficient == 0);
}

TEST_CASE("interval_over: regions of a tile") {
  auto text = [](const Expr& e, const Ranges& over) {
    auto interval = interval_over(e, over, ranges());
    return interval ? to_string(interval->min) + " .. " + to_string(interval->max) : "unknown";
  };
  Ranges tile = {{"i", {0, 7}}, {"j", {0, 15}}};
  CHECK(text(k * 8 + i, tile) == "k * 8 .. k * 8 + 7");
  CHECK(text(k * 2 - i + j, tile) == "k * 2 - 7 .. k * 2 + 15");
  CHECK(text(floor_div(k * 16 + j, 4), tile) == "k * 4 .. k * 4 + 3");
  CHECK(text(floor_mod(k * 16 + j, 16), tile) == "0 .. 15");
  CHECK(text(floor_mod(k * 32 + j + 3, 32), tile) == "3 .. 18");
  CHECK(text(floor_mod(k * 3 + j, 16), tile) == "0 .. 15");
  CHECK(text(min(k + i, n - 1), tile) == "k .. min(batch, k + 8) - 1");
  CHECK(text(k, {{"k", {0, n - 1}}}) == "0 .. batch - 1");
  CHECK(text(i * k, tile) == "0 .. k * 7");
  CHECK(text(load(BufferId{0}, DType::i64, {i}), tile) == "unknown");
  CHECK(text(select(lt(i, k), j, i + 20), tile) == "0 .. 27");
}

TEST_CASE("property: simplify keeps every value and is idempotent") {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    testing::RandomExprs random(seed);
    Expr e = random.pick(3) ? random.integer(3) : random.condition(2);
    CAPTURE(seed);
    CAPTURE(to_string(e));
    Expr simpler = simplify(e, random.ranges());
    CAPTURE(to_string(simpler));
    Expr again = simplify(simpler, random.ranges());
    CAPTURE(to_string(again));
    REQUIRE(equal(simpler, again));
    Bounds bounds = constant_bounds(e, random.ranges());
    for (int trial = 0; trial < 12; ++trial) {
      auto values = random.assignment();
      int64_t expected = testing::evaluate(e, values);
      REQUIRE(testing::evaluate(simpler, values) == expected);
      if (bounds.min) REQUIRE(*bounds.min <= expected);
      if (bounds.max) REQUIRE(*bounds.max >= expected);
    }
  }
}

TEST_CASE("property: interval_over contains every value, exactly for affine expressions") {
  int found = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    testing::RandomExprs random(seed);
    bool affine = random.pick(3) == 0;
    Expr e = affine ? var("i") * random.between(-5, 5) + var("j") * random.between(-5, 5) +
                          var("m") * 3 + 2
                    : random.integer(3);
    Ranges over = {{"i", random.ranges().at("i")}, {"j", random.ranges().at("j")}};
    auto interval = interval_over(e, over, random.ranges());
    CAPTURE(seed);
    CAPTURE(to_string(e));
    REQUIRE((interval || !affine));
    if (!interval) continue;
    ++found;
    CAPTURE(to_string(interval->min));
    CAPTURE(to_string(interval->max));
    auto values = random.assignment();
    int64_t low = testing::evaluate(interval->min, values),
            high = testing::evaluate(interval->max, values);
    int64_t seen_low = INT64_MAX, seen_high = INT64_MIN;
    for (int64_t a = *as_const(over["i"].min); a <= *as_const(over["i"].max); ++a)
      for (int64_t b = *as_const(over["j"].min); b <= *as_const(over["j"].max); ++b) {
        values["i"] = a;
        values["j"] = b;
        int64_t v = testing::evaluate(e, values);
        seen_low = std::min(seen_low, v);
        seen_high = std::max(seen_high, v);
      }
    REQUIRE(low <= seen_low);
    REQUIRE(seen_high <= high);
    if (affine) REQUIRE((low == seen_low && high == seen_high));
  }
  CHECK(found > 1500);
}

TEST_CASE("what was simplified before holds for its own ranges alone, those of ranges included") {
  const Expr i = var("i"), n = var("n");
  const auto within = [&](const Expr& last) {
    return Ranges{{"i", {Expr(0), last}}, {"n", {Expr(1), Expr(8)}}};
  };
  const Expr block = floor_div(i, 16);
  for (int again = 0; again < 2; ++again) {  // the second round uses the cache
    CHECK(is_const(simplify(block, within(Expr(15))), 0));
    CHECK(!is_const(simplify(block, within(Expr(31))), 0));
    CHECK(is_const(simplify(block, within(n)), 0));
    // i has the same range, but n has another one.
    Ranges wider = within(n);
    wider["n"] = {Expr(1), Expr(80)};
    CHECK(!is_const(simplify(block, wider), 0));
    CHECK(!is_const(simplify(block, {}), 0));
  }
}
