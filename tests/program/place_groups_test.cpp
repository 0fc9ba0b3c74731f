#include "program/place_groups.h"

#include <doctest/doctest.h>

#include "kernels/lower.h"
#include "passes/fuse_groups.h"

using namespace tw;

namespace {

const char* kChain =
    "graph @g() {\n%x: f32[64, 64] = input\n%w: f32[64, 64] = input\n"
    "%a: f32[64, 64] = matmul(%x, %w)\n%s: f32[64, 64] = softmax(%a) axis=1\n%y: f32[64, 64] = "
    "matmul(%w, %s)\noutput %y\n}\n";

Target with_devices(size_t count) {
  Target target = baseline_target(Arch::x86_64);
  Target device = target;
  device.name = "fast";
  device.rates = {1e14, 1e13, 1e12, 1e-9, 1e-9};
  target.devices.assign(count, device);
  return target;
}

// A product in front of a loop of products. The loop carries two values and gathers rows of four
// bytes.
const char* kLoop = R"(graph @g() {
  %x: f32[64, 64] = input
  %w: f32[64, 64] = input
  %a: f32[64, 64] = matmul(%x, %w)
  %last: f32[64, 64], %sum: f32[64, 64], %rows: f32[9] = loop(%a, %x, %w) trip=[9] carried=2 turn="t" body=graph @body(t) {
      %b: f32[64, 64] = input
      %c: f32[64, 64] = input
      %by: f32[64, 64] = input
      %p: f32[64, 64] = matmul(%b, %by)
      %s: f32[64, 64] = softmax(%c) axis=1
      %row: f32[] = reduce(%p) kind=max axes=[0, 1] keep=false
      output %p
      output %s
      output %row
    }
  output %last
  output %sum
  output %rows
}
)";

using Refuses = std::string (*)(const LoweredGroup& kernel);

std::vector<Placement> all_placed(const char* text, const Target& target, Refuses refuses) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  std::vector<FusedGraph> fused = {{&*graph, fuse_groups(*graph)}};
  for (const Graph* region : regions_within(*graph))
    fused.push_back({region, fuse_groups(*region)});
  std::vector<std::vector<DeviceKernels>> devices(fused.size());
  for (size_t f = 0; f < fused.size(); ++f)
    for (size_t d = 0; d < target.devices.size(); ++d) {
      DeviceKernels& own = devices[f].emplace_back(
          lower_for_device(fused[f], target, static_cast<int>(d) + 1));
      for (const LoweredKernel& kernel : own.kernels)
        own.refusals.push_back(refuses(kernel.lowered));
    }
  return place_groups(fused, target, devices);
}

Placement placed(const Target& target, Refuses refuses) {
  return all_placed(kChain, target, refuses).front();
}

// Returns the places of the loop's carried values and rows.
std::vector<int> results_of(const Placement& placement) {
  std::vector<int> places;
  for (const auto& [value, device] : placement.results) places.push_back(device);
  return places;
}

std::string all(const LoweredGroup&) { return ""; }
std::string no_reductions(const LoweredGroup& kernel) {
  return std::holds_alternative<ReduceStages>(kernel.stages) ? "no rows here" : "";
}
}  // namespace

TEST_CASE("without devices all is on the processor") {
  const Placement p = placed(with_devices(0), all);
  CHECK(p.devices == std::vector<int>{0, 0, 0});
}

TEST_CASE("a fast device gets all; a slow one, or one that is far away, nothing") {
  Target target = with_devices(1);
  CHECK(placed(target, all).devices == std::vector<int>{1, 1, 1});
  target.devices[0].rates.flops = 1e6;
  const Placement slow = placed(target, all);
  CHECK(slow.devices == std::vector<int>{0, 0, 0});
  CHECK(slow.reasons[0] == "faster on the processor, by estimate");
  target = with_devices(1);
  target.devices[0].rates.copy = 1;
  CHECK(placed(target, all).devices == std::vector<int>{0, 0, 0});
  target.devices[0].take_all = true;
  CHECK(placed(target, all).devices == std::vector<int>{1, 1, 1});
}

TEST_CASE("what a device lacks stays on the processor, with the reason") {
  const Placement p = placed(with_devices(1), no_reductions);
  CHECK(p.devices == std::vector<int>{1, 0, 1});
  CHECK(p.reasons[1] == "fast: no rows here");
  CHECK(p.reasons[0].empty());
}

TEST_CASE("the better of two devices is taken") {
  Target target = with_devices(2);
  target.devices[0].rates.flops = 1e9;
  CHECK(placed(target, all).devices == std::vector<int>{2, 2, 2});
}

TEST_CASE("the groups of a loop's body, and what it carries, are where they are fast") {
  Target target = with_devices(1);
  target.devices[0].axes = {{"block_x", "block", 65535}};
  for (const bool take_all : {false, true}) {
    CAPTURE(take_all);
    target.devices[0].take_all = take_all;
    const std::vector<Placement> fast = all_placed(kLoop, target, all);
    REQUIRE(fast.size() == 2);
    CHECK(fast[0].devices == std::vector<int>{1, 0});  // the processor runs the loop itself
    CHECK(fast[0].reasons[1].find("the processor counts its iterations") != std::string::npos);
    CHECK(fast[1].devices == std::vector<int>{1, 1, 1});
    CHECK(results_of(fast[0]) == std::vector<int>{1, 1, 1});
    // The processor makes the second carried value and the rows.
    const std::vector<Placement> mixed = all_placed(kLoop, target, no_reductions);
    CHECK(mixed[1].devices == std::vector<int>{1, 0, 0});
    CHECK(results_of(mixed[0]) == std::vector<int>{1, 0, 0});
  }
  // Copies in every iteration cost more than the device gains.
  target = with_devices(1);
  target.devices[0].rates.copy = 1;
  const std::vector<Placement> far = all_placed(kLoop, target, no_reductions);
  CHECK(far[1].devices == std::vector<int>{0, 0, 0});
  CHECK(results_of(far[0]) == std::vector<int>{0, 0, 0});
}

TEST_CASE("a device without threads has no rows that begin between the places of buffers") {
  Target target = with_devices(1);
  target.devices[0].take_all = true;
  const std::vector<Placement> placed = all_placed(kLoop, target, all);
  CHECK(results_of(placed[0]) == std::vector<int>{1, 1, 0});
  CHECK(finds_rows(target.devices[0], Expr(128)));
  CHECK(!finds_rows(target.devices[0], var("n") * 32));
  CHECK(finds_rows(target.devices[0], var("n") * 64));
}

TEST_CASE("a device is asked once for each distinct kernel") {
  Expected<Graph> graph = parse_graph(kChain);
  if (!graph) FAIL(error_text(graph.takeError()));
  const DeviceKernels kernels = lower_for_device({&*graph, fuse_groups(*graph)}, with_devices(2),
                                                 2);
  CHECK(kernels.kernels.size() == 2);  // both products are one kernel
  CHECK(kernels.kernel_of == std::vector<std::optional<size_t>>{0, 1, 0});
}
