#include <doctest/doctest.h>

#include "ir/kernel/kernel.h"
#include "ir/text.h"
#include "tests/ir/random_kernel.h"

using namespace tw;

namespace {
const char* kDense =
    R"(kernel @dense[batch](x: in f32[batch, 64], w: const f32[64, 32], b: const f32[32], y: out f32[batch, 32]) {
  temp c: f32[batch, 32]
  temp r: f32[4] register
  for i in batch parallel {
    for j in 32 vector {
      for k in 64 reduce {
        c: c[i, j] += x[i, k] * w[k, j] where k + i < 70 init 0.0
      }
    }
  }
  for i1 in batch {
    if i1 < 10 && i1 != 3 {
      y: y[i1, 0] = max(0.0, c[i1, 0] + b[0])
    }
    m: y[i1, 1] max= select(i1 < 3, f32(sat.i8(x[i1, 0])), -inf)
  }
}
)";

std::string reprint(const std::string& text) {
  auto e = parse_expr(text);
  return e ? to_string(*e) : error_text(e.takeError());
}
std::string kernel_error(const std::string& text) {
  auto kernel = parse_kernel(text, "k.tw");
  return kernel ? "no error" : error_text(kernel.takeError());
}
std::vector<Expr> exprs(const Stmt& s) {
  std::vector<Expr> all;
  visit_exprs(*s, [&](const Expr& e) { all.push_back(e); });
  return all;
}
bool same(const Stmt& a, const Stmt& b) {
  if (a->is.index() != b->is.index()) return false;
  if (const auto* x = as<stmt::Loop>(a)) {
    const auto& y = get<stmt::Loop>(b);
    if (x->var != y.var || x->kind != y.kind || x->role != y.role) return false;
  }
  if (const auto* x = as<stmt::Store>(a)) {
    const auto& y = get<stmt::Store>(b);
    if (x->label != y.label || x->buffer != y.buffer || x->combiner != y.combiner ||
        x->where.defined() != y.where.defined())
      return false;
  }
  return std::ranges::equal(exprs(a), exprs(b),
                            [](const Expr& x, const Expr& y) { return equal(x, y); }) &&
         std::ranges::equal(children(a), children(b), same);
}
}  // namespace

TEST_CASE("expressions print with as few brackets as needed") {
  for (const char* text : {"a + b * c",
                           "(a + b) * c",
                           "a - (b - c)",
                           "a - b - c",
                           "a // 4 * 4 + a % 4",
                           "-a + -3",
                           "-(-a)",
                           "min(a, b + 1)",
                           "a < b && !(c == d || a != 3)",
                           "f32(a) * 1.5 + exp(2.5)",
                           "sat.u8(1.5)",
                           "select(a < 3, 0.1:f64, nan:f64)",
                           "3:i32 + x:i32",
                           "18446744073709551615:u64",
                           "-9223372036854775808",
                           "-128:i8",
                           "pow(a, b) / mod(a, 3)",
                           "a << 2 | (b & 7) + 1",
                           "-inf:f16",
                           "1e+20",
                           "~a",
                           "logical_xor(a < b, true)"})
    CHECK(reprint(text) == text);
  CHECK(reprint("a > b") == "b < a");
  CHECK(reprint("x:f32 * 2") == "x:f32 * 2.0");
  CHECK(reprint("0x1.8p+1") == "3.0");
}

TEST_CASE("what an expression may not be") {
  CHECK(reprint("a +") == "1:4: expected an expression, found the end of the text");
  CHECK(reprint("a + 1.5") == "1:3: add of i64 and f32: the operands differ in type");
  CHECK(reprint("(a < b) + 1") == "1:9: add of bool and i64: the operands differ in type");
  CHECK(reprint("300:u8") == "1:1: 300 does not fit u8");
  CHECK(reprint("foo(a)") == "1:1: unknown function 'foo'");
  CHECK(reprint("x[0]") == "1:1: no buffer 'x' here");
  CHECK(reprint("exp(a)") == "1:1: exp of i64: the operand must be a float");
  CHECK(reprint("select(a, 1, 2)") == "1:1: select takes a bool and two values of one type");
  CHECK(reprint("min(a)") == "1:1: min takes 2 operands, not 1");
  CHECK(reprint("a b") == "1:3: expected the end of the expression, found 'b'");
  CHECK(reprint(std::string(5000, '(')).find("nested deeper") != std::string::npos);
}

TEST_CASE("a kernel prints as it was written") {
  auto kernel = parse_kernel(kDense);
  REQUIRE(kernel);
  CHECK(print(*kernel) == std::string(kDense));
  CHECK(kernel->buffers[5].scope == "register");
  CHECK(kernel->buffer(*kernel->find_buffer("c")).role == BufferRole::temp);
  CHECK(find_loop(kernel->body, "j")->kind == LoopKind::vector);
  CHECK(path_to(kernel->body, "c").size() == 3);
  CHECK(path_to(kernel->body, "y").size() == 2);
  CHECK(path_to(kernel->body, "nothing").empty());
  CHECK(stores_of(kernel->body).size() == 3);
  std::string hash = kernel_hash(*kernel);
  kernel->name = "other";
  CHECK(kernel_hash(*kernel) == hash);
  kernel->body = substitute(kernel->body, "i1", Expr(2));
  CHECK(kernel_hash(*kernel) != hash);
}

TEST_CASE("rewriting statements drops what becomes empty") {
  auto kernel = parse_kernel(kDense);
  REQUIRE(kernel);
  Stmt without = rewrite(kernel->body, [](const Stmt& s) {
    const auto* store = as<stmt::Store>(s);
    return store && store->label == "c" ? make_sequence({}) : nullptr;
  });
  CHECK(stores_of(without).size() == 2);
  CHECK(!find_loop(without, "i"));
  CHECK(find_loop(without, "i1"));
  Stmt same_tree = rewrite(kernel->body, [](const Stmt&) { return nullptr; });
  CHECK(same_tree == kernel->body);
}

TEST_CASE("kernel errors give the place") {
  CHECK(kernel_error("kernel @k(x: in f32[4]) {\n  s: y[0] = 1\n}") ==
        "k.tw:2:6: no buffer 'y' here");
  CHECK(kernel_error("kernel @k(x: f32[4]) {}") ==
        "k.tw:1:14: expected in, out or const, found 'f32'");
  CHECK(kernel_error("kernel @k(x: in f31[4]) {}") ==
        "k.tw:1:17: expected an element type, found 'f31'");
  CHECK(kernel_error("kernel @k(x: out f32[4]) { s: x[0] = 1:i32 }") ==
        "k.tw:1:38: expected f32, found an expression of type i32");
  CHECK(kernel_error("kernel @k(x: out f32[4]) { for i in 4 { }") ==
        "k.tw:1:42: expected a statement or '}', found the end of the text");
  CHECK(kernel_error("kernel @k(x: out f32[4], x: in f32[4]) {}") ==
        "k.tw:1:26: a second buffer 'x'");
  CHECK(kernel_error("kernel @k(x: out f32[4]) { s: x[0] = \"a\" }") ==
        "k.tw:1:38: expected an expression, found \"a\"");
  CHECK(kernel_error("kernel @k(x: out f32[4]) { s: x[0] -= 1 }") ==
        "k.tw:1:36: expected =, +=, *=, min= or max=, found '-'");
}

TEST_CASE("property: parse(print(kernel)) is the kernel") {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    testing::RandomKernels random(seed);
    Kernel kernel = random.kernel();
    std::string text = print(kernel);
    CAPTURE(seed);
    CAPTURE(text);
    auto parsed = parse_kernel(text);
    if (!parsed) FAIL(error_text(parsed.takeError()));
    REQUIRE(print(*parsed) == text);
    REQUIRE(same(parsed->body, kernel.body));
    REQUIRE(parsed->symbols == kernel.symbols);
  }
}
