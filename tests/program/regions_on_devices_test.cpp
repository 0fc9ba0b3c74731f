// Regions whose groups are spread over devices: lowering, memory plan and transfers in the
// interpreter.
#include <doctest/doctest.h>

#include <random>

#include "passes/fuse_groups.h"
#include "passes/storage.h"
#include "program/plan_program.h"
#include "tests/ir/graph_testing.h"
#include "tests/ir/parsed.h"
#include "tests/passes/random_graph.h"
#include "tests/program/machine.h"

using namespace tw;

namespace {

// A loop with carried values, rows in and out, a value that no iteration changes, and one that a
// branch makes
const char* kLoop = R"(graph @g() {
  %x: f32[4, 4] = input
  %w: f32[3, 4, 4] = input
  %m: f32[4, 4] = input
  %z: f32[4, 4] = const [0, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0, 7, 3, 10, 6]
  %h: f32[4, 4] = softmax(%x) axis=1
  %last: f32[4, 4], %sum: f32[4, 4], %rows: f32[3, 4, 4], %means: f32[3, 4] = loop(%h, %z, %w, %m, %h) trip=[3] carried=2 sliced=1 turn="turn.1" body=graph @body(turn.1) {
      %a: f32[4, 4] = input
      %b: f32[4, 4] = input
      %row: f32[4, 4] = input
      %by: f32[4, 4] = input
      %first: f32[4, 4] = input
      %n: i64[] = dim_vector() values=[turn.1] scalar=true
      %f: f32[] = cast(%n) to=f32
      %p: f32[4, 4] = matmul(%a, %by)
      %s: f32[4, 4] = binary(%p, %row) function=add
      %c: f32[4, 4] = softmax(%s) axis=1
      %d: f32[4, 4] = binary(%c, %f) function=mul
      %e: f32[4, 4] = binary(%b, %first) function=add
      %u: f32[4, 4] = softmax(%e) axis=0
      %q: f32[4, 4] = matmul(%d, %by)
      %mean: f32[4] = reduce(%q) kind=mean axes=[1] keep=false
      output %d
      output %u
      output %q
      output %mean
    }
  %y: f32[4, 4] = matmul(%last, %m)
  output %y
  output %last
  output %sum
  output %rows
  output %means
}
)";

const char* kChoice = R"(graph @g() {
  %x: f32[4, 16] = input
  %m: f32[16, 16] = input
  %limit: f32[] = input
  %p: f32[4, 16] = matmul(%x, %m)
  %most: f32[] = reduce(%p) kind=max axes=[0, 1] keep=false
  %c: bool[] = binary(%limit, %most) function=lt
  %y: f32[4, 16], %same: f32[4, 16] = if(%c, %p, %m, %x, %p) then_branch=graph @then() {
      %a: f32[4, 16] = input
      %by: f32[16, 16] = input
      %b: f32[4, 16] = matmul(%a, %by)
      %d: f32[4, 16] = softmax(%b) axis=1
      output %d
      output %a
    } else_branch=graph @else() {
      %e: f32[4, 16] = input
      %f: f32[4, 16] = input
      %g: f32[4, 16] = softmax(%e) axis=0
      %h: f32[4, 16] = binary(%g, %f) function=add
      output %e
      output %h
    }
  %z: f32[4, 16] = matmul(%y, %m)
  %o: f32[4, 16] = softmax(%same) axis=1
  output %z
  output %o
  output %y
}
)";

// A loop with a condition, inside a loop, with a branch inside
const char* kNested = R"(graph @g() {
  %x: f32[4, 16] = input
  %m: f32[16, 16] = input
  %limit: f32[] = input
  %y: f32[4, 16] = loop(%x, %m, %limit) trip=[3] carried=1 sliced=0 turn="turn.1" body=graph @outer(turn.1) {
      %a: f32[4, 16] = input
      %by: f32[16, 16] = input
      %most: f32[] = input
      %p: f32[4, 16] = matmul(%a, %by)
      %n: i64[] = dim_vector() values=[turn.1] scalar=true
      %f: f32[] = cast(%n) to=f32
      %go: bool[] = binary(%f, %most) function=lt
      %b: f32[4, 16], %count: i64[] = loop(%go, %p, %by, %a, %most) trip=[4] carried=1 sliced=0 conditional=true turn="step.1" body=graph @inner(step.1) {
          %c: f32[4, 16] = input
          %with: f32[16, 16] = input
          %add: f32[4, 16] = input
          %least: f32[] = input
          %q: f32[4, 16] = matmul(%c, %with)
          %r: f32[4, 16] = softmax(%q) axis=1
          %s: f32[4, 16] = binary(%r, %add) function=add
          %top: f32[] = reduce(%s) kind=max axes=[0, 1] keep=false
          %on: bool[] = binary(%top, %least) function=lt
          %t: f32[4, 16] = if(%on, %s, %s, %add) then_branch=graph @then() {
              %v: f32[4, 16] = input
              %w: f32[4, 16] = unary(%v) function=abs
              output %w
            } else_branch=graph @else() {
              %v: f32[4, 16] = input
              %u: f32[4, 16] = input
              %w: f32[4, 16] = binary(%v, %u) function=mul
              output %w
            }
          output %on
          output %t
        }
      %k: f32[] = cast(%count) to=f32
      %d: f32[4, 16] = binary(%b, %k) function=add
      output %d
    }
  output %y
}
)";

std::vector<FusedGraph> fused_of(const Graph& graph) {
  std::vector<FusedGraph> fused = {{&graph, fuse_groups(graph)}};
  for (const Graph* region : regions_within(graph)) fused.push_back({region, fuse_groups(*region)});
  return fused;
}

// Places groups and results at random, with three exceptions: nodes that only the processor runs
// stay there, groups that write parts of one value share a place, and rows stay off devices that
// cannot address them.
Placement random_placement(const FusedGraph& fused, const Target& target, std::mt19937& random) {
  const Graph& graph = *fused.graph;
  const Storage storage(graph, fused.groups);
  const size_t places = target.devices.size() + 1;
  std::map<int32_t, int> of_root;
  Placement out;
  const auto drawn = [&] { return static_cast<int>(random() % places); };
  for (const Group& group : fused.groups) {
    const Node& node = graph.node(group.anchor);
    const int32_t root = storage.of(graph.node(group.nodes.back()).output).root.index;
    const bool regions = !regions_of(node.attrs).empty();
    out.devices.push_back(regions ? 0 : of_root.try_emplace(root, drawn()).first->second);
    if (!regions) continue;
    const auto* loop = std::get_if<op::Loop>(&node.attrs);
    const std::vector<ValueId> made = node.outputs();
    for (size_t i = 0; i + (loop && loop->conditional ? 1 : 0) < made.size(); ++i) {
      const bool rows = loop && i >= static_cast<size_t>(loop->carried);
      TensorType type = graph.value(made[i]).type;
      if (rows) type.shape.erase(type.shape.begin());
      const int device = drawn();
      out.results[made[i].index] =
          device == 0 || !rows ||
                  finds_rows(target.devices[static_cast<size_t>(device) - 1], byte_count(type))
              ? device
              : 0;
    }
  }
  return out;
}

// The first device can address only rows that begin where buffers may; the second one addresses all
// rows.
Target two_devices() {
  Target target = baseline_target(Arch::x86_64);
  target.devices.assign(2, target);
  target.devices[1].axes = {{"block_x", "block", 65535}};
  return target;
}

struct Counts {
  int transfers = 0, launches = 0;
};

Counts check(const char* text, const std::vector<Tensor>& inputs, unsigned seed) {
  const Graph graph = test::parsed_graph(text);
  const Target target = two_devices();
  const std::vector<FusedGraph> fused = fused_of(graph);
  std::mt19937 random(seed);
  std::vector<Placement> placements;
  for (const FusedGraph& one : fused) placements.push_back(random_placement(one, target, random));
  // All kernels are the processor's, since the interpreter runs them.
  LoweredProgram lowered = test::must(lower_program(fused, placements, target));
  std::vector<RunKernel> kernels;
  for (const LoweredKernel& kernel : lowered.kernels)
    kernels.push_back(take_out_constant_stages(kernel.lowered.kernel));
  const Program program =
      test::must(plan_program(std::move(lowered), std::move(kernels), target)).program;
  const std::vector<Tensor> expected = test::must(evaluate(graph, inputs));
  std::vector<test::Bytes> given, made;
  for (const Tensor& t : inputs) given.push_back(t.bytes);
  for (const Tensor& t : expected) made.emplace_back(t.bytes.size());
  test::Machine machine(program);
  for (int run = 0; run < 2; ++run) {  // the second run meets the memory that the first one left
    machine.run(given, made);
    for (size_t i = 0; i < expected.size(); ++i) {
      Tensor got = expected[i];
      got.bytes = made[i];
      CAPTURE(i);
      CAPTURE(print(program));
      REQUIRE(test::relative_difference(expected[i], got) < 1e-5);
    }
  }
  return {machine.transfers, machine.launches};
}

std::vector<Tensor> with_limit(const char* text, double limit) {
  std::vector<Tensor> inputs = test::random_inputs(test::parsed_graph(text), 3);
  inputs.back().set(0, limit);
  return inputs;
}

}  // namespace

TEST_CASE("a loop spread over two devices equals its evaluation") {
  Counts all;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Counts one = check(kLoop, test::random_inputs(test::parsed_graph(kLoop), seed), seed);
    all.transfers += one.transfers, all.launches += one.launches;
  }
  CHECK(all.transfers > 60);
  CHECK(all.launches > 60);
}

TEST_CASE("branches spread over two devices equal their evaluation") {
  for (unsigned seed = 0; seed < 40; ++seed)
    for (const double limit : {-1e3, 1e3}) {
      CAPTURE(seed);
      CAPTURE(limit);
      check(kChoice, with_limit(kChoice, limit), seed);
    }
}

TEST_CASE("loops and branches in each other, spread over two devices, equal their evaluation") {
  for (unsigned seed = 0; seed < 40; ++seed)
    for (const double limit : {-1e3, 1.5, 1e3}) {
      CAPTURE(seed);
      CAPTURE(limit);
      check(kNested, with_limit(kNested, limit), seed);
    }
}
