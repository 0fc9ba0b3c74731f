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

Placement placed(const Target& target, const Runs& runs) {
  Expected<Graph> graph = parse_graph(kChain);
  if (!graph) FAIL(error_text(graph.takeError()));
  return place_groups(*graph, fuse_groups(*graph), target, runs);
}

std::vector<std::string> all(const std::vector<LoweredGroup>& groups, int) {
  return std::vector<std::string>(groups.size());
}
std::vector<std::string> no_reductions(const std::vector<LoweredGroup>& groups, int) {
  std::vector<std::string> problems;
  for (const LoweredGroup& group : groups)
    problems.push_back(std::holds_alternative<ReduceStages>(group.stages) ? "no rows here" : "");
  return problems;
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

TEST_CASE("a device is asked once, for each distinct kernel") {
  std::vector<size_t> asked;
  placed(with_devices(2), [&](const std::vector<LoweredGroup>& groups, int device) {
    asked.push_back(groups.size());
    CHECK(device == static_cast<int>(asked.size()));
    return all(groups, device);
  });
  CHECK(asked == std::vector<size_t>{2, 2});  // the products are one kernel
}
