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

using Refuses = std::string (*)(const LoweredGroup& kernel);

Placement placed(const Target& target, Refuses refuses) {
  Expected<Graph> graph = parse_graph(kChain);
  if (!graph) FAIL(error_text(graph.takeError()));
  const FusedGraph fused{&*graph, fuse_groups(*graph)};
  std::vector<DeviceKernels> devices;
  for (size_t d = 0; d < target.devices.size(); ++d) {
    devices.push_back(lower_for_device(fused, target, static_cast<int>(d) + 1));
    for (const LoweredKernel& kernel : devices.back().kernels)
      devices.back().refusals.push_back(refuses(kernel.lowered));
  }
  return place_groups(fused, target, devices);
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

TEST_CASE("a device is asked once for each distinct kernel") {
  Expected<Graph> graph = parse_graph(kChain);
  if (!graph) FAIL(error_text(graph.takeError()));
  const DeviceKernels kernels = lower_for_device({&*graph, fuse_groups(*graph)}, with_devices(2),
                                                 2);
  CHECK(kernels.kernels.size() == 2);  // the products are one kernel
  CHECK(kernels.kernel_of == std::vector<std::optional<size_t>>{0, 1, 0});
}
