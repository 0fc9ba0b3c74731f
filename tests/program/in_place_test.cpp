#include "program/in_place.h"

#include <doctest/doctest.h>

#include "tests/ir/parsed.h"

using namespace tw;

namespace {

// A call of kernel 0, y = a + b, of kernel 1, which reads a backwards, or of kernel 2, which reads
// all of a first. Operands are numbers of lifetimes; -1: an input of the model, -2: an output.
struct Call {
  int kernel, a, b, y;
};

struct Setup {
  Program program;
  std::vector<Lifetime> lifetimes;

  Setup(const std::vector<Call>& calls, int64_t bytes = 64) {
    program.kernels = {
        test::parsed_kernel("kernel @add(a: in f32[16], b: in f32[16], y: out f32[16]) { for i in "
                            "16 { s: y[i] = a[i] + b[i] } }"),
        test::parsed_kernel("kernel @turn(a: in f32[16], b: in f32[16], y: out f32[16]) { for i in "
                            "16 { s: y[i] = a[15 - i] + b[0] } }"),
        test::parsed_kernel(
            "kernel @late(a: in f32[16], b: in f32[16], y: out f32[16]) { temp t: f32[16] for j in "
            "16 { t: t[j] = a[j] } for i in 16 { s: y[i] = t[i] + b[i] } }")};
    for (size_t c = 0; c < calls.size(); ++c) {
      KernelCall call;
      call.kernel = calls[c].kernel;
      for (int operand : {calls[c].a, calls[c].b, calls[c].y}) {
        call.arguments.push_back({operand >= 0    ? Place::arena
                                  : operand == -1 ? Place::input
                                                  : Place::output,
                                  std::max(operand, 0), Expr(0)});
        if (operand < 0) continue;
        while (lifetimes.size() <= static_cast<size_t>(operand))
          lifetimes.push_back({Expr(bytes), static_cast<int>(c), 0});
        lifetimes[static_cast<size_t>(operand)].last = static_cast<int>(c);
      }
      program.calls.push_back(std::move(call));
    }
  }

  // Returns the lifetime of a call's output after joining.
  int output(size_t call) const { return program.calls[call].arguments[2].index; }
  std::vector<std::string> declared(size_t kernel) const {
    return program.kernels[kernel].buffers[2].in_place;
  }
};

}  // namespace

TEST_CASE("outputs in place: a chain stays where it begins") {
  Setup s({{0, -1, -1, 0}, {0, 0, -1, 1}, {0, 1, -1, 2}, {0, 2, -1, -2}});
  join_in_place(s.program, s.program.kernels, s.lifetimes);
  CHECK(s.output(1) == 0);
  CHECK(s.output(2) == 0);
  CHECK(s.program.calls[3].arguments[0].index == 0);
  CHECK(s.program.calls[3].arguments[2].place == Place::output);
  CHECK(s.lifetimes[0].last == 3);
  CHECK(is_const(s.lifetimes[1].bytes, 0));
  CHECK(s.declared(0) == std::vector<std::string>{"a"});
  CHECK(s.declared(1).empty());
  const MemoryPlan plan = plan_memory(s.lifetimes, {});
  CHECK(is_const(plan.bytes, 64));
}

TEST_CASE(
    "outputs in place: not of what is still read, of what two arguments show, of other sizes and "
    "offsets, or where the kernel forbids it") {
  auto joined = [](Setup s, size_t call) {
    const int before = s.output(call);
    join_in_place(s.program, s.program.kernels, s.lifetimes);
    return s.output(call) != before;
  };
  CHECK(joined(Setup({{0, -1, -1, 0}, {0, 0, -1, 1}}), 1));
  CHECK_FALSE(joined(Setup({{0, -1, -1, 0}, {0, 0, -1, 1}, {0, 0, 1, -2}}), 1));  // read later
  CHECK_FALSE(joined(Setup({{0, -1, -1, 0}, {0, 0, 0, 1}}), 1));
  CHECK_FALSE(joined(Setup({{0, -1, -1, 0}, {1, 0, -1, 1}}), 1));
  // All iterations read the first element of b.
  CHECK_FALSE(joined(Setup({{0, -1, -1, 0}, {1, -1, 0, 1}}), 1));
  Setup other({{0, -1, -1, 0}, {0, 0, -1, 1}});
  other.lifetimes[0].bytes = Expr(128);
  CHECK_FALSE(joined(other, 1));
  Setup part({{0, -1, -1, 0}, {0, 0, -1, 1}}, 128);
  part.program.calls[1].arguments[0].offset = Expr(64);
  CHECK_FALSE(joined(part, 1));
  Setup begun({{0, -1, -1, 0}, {0, 0, -1, 1}});  // another call wrote a part of the output before
  begun.lifetimes[1].first = 0;
  CHECK_FALSE(joined(begun, 1));
}

TEST_CASE("outputs in place: of two inputs the one read where the output is stored") {
  Setup both({{0, -1, -1, 0}, {0, -1, -1, 1}, {0, 0, 1, 2}});
  join_in_place(both.program, both.program.kernels, both.lifetimes);
  CHECK(both.output(2) == 0);
  Setup late({{0, -1, -1, 0}, {0, -1, -1, 1}, {2, 0, 1, 2}});
  join_in_place(late.program, late.program.kernels, late.lifetimes);
  CHECK(late.output(2) == 1);
  CHECK(late.declared(2) == std::vector<std::string>{"b"});
}
