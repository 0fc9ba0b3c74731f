// The device as a source of measurements: predicted cycles of scheduled kernels.
#include <doctest/doctest.h>

#include "autotune/measure/cycles.h"
#include "backends/vdla/timing.h"
#include "tests/vdla/layers.h"

using namespace tw;
using namespace tw::vdla;

namespace {

std::vector<Constant> constants_of(const LoweredGroup& group) {
  std::vector<Constant> constants;
  for (const LoweredArgument& argument : group.arguments)
    constants.push_back(argument.constant ? Constant{argument.blob, argument.pack} : Constant{});
  return constants;
}

}  // namespace

TEST_CASE("a kernel's time on the device is the cycles of its stream") {
  Layer layer;
  layer.channels = layer.outputs = 32;
  const LayerCase data = conv_case(layer, 1);
  std::vector<double> times;
  for (int threads : {1, 2}) {
    const Target& target = device_target(threads);
    LoweredGroup formed = data.group;
    const auto kernel = std::make_shared<const RunKernel>(
        take_out_constant_stages(scheduled(formed, target)));
    Expected<std::unique_ptr<DeviceBackend>> backend = make_device_backend(target);
    REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
    Expected<std::unique_ptr<CycleMeasurer>> measurer = CycleMeasurer::create(
        std::move(*backend), target, constants_of(formed), 2);
    REQUIRE_MESSAGE(bool(measurer), error_text(measurer.takeError()));
    const auto unscheduled = std::make_shared<const RunKernel>(
        take_out_constant_stages(formed.kernel));
    const std::vector<MeasureResult> results = (*measurer)->measure(
        std::vector{kernel, unscheduled, kernel}, {});
    REQUIRE(results.size() == 3);
    CHECK_MESSAGE(results[0].status == Status::ok, results[0].error);
    REQUIRE(results[0].seconds.size() == 1);
    const LayerRun run = placed(data, formed, kernel->kernel, target);
    Expected<Cycles> cycles = predict_cycles(Config{}, run.stream.instructions, DramModel{});
    REQUIRE_MESSAGE(bool(cycles), error_text(cycles.takeError()));
    CHECK(results[0].seconds[0] ==
          doctest::Approx(static_cast<double>(cycles->total) * CycleMeasurer::kCycleSeconds));
    CHECK(results[1].status == Status::compile_error);
    CHECK(!results[1].error.empty());
    CHECK(results[2].seconds == results[0].seconds);
    CHECK(results[0].device.find(target.name) == 0);
    times.push_back(results[0].seconds[0]);
  }
  CHECK(times[0] > times[1]);  // virtual threads hide latency
}
