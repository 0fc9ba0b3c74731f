// The template space of a device with a tensor instruction: tiles other than those of the default
// schedule compute the same.
#include <doctest/doctest.h>

#include "autotune/space.h"
#include "backends/vdla/config.h"
#include "backends/vdla/timing.h"
#include "kernels/default_schedule.h"
#include "kernels/device/tensor_form.h"
#include "tests/vdla/layers.h"

using namespace tw;
using namespace tw::vdla;

namespace {

// Returns nullopt if the back end refuses the schedule, as it may all but its own.
std::optional<uint64_t> cycles_of(const LayerCase& layer, LoweredGroup& formed,
                                  const Schedule& schedule, const Target& target) {
  Expected<Kernel> kernel = apply(formed.kernel, schedule, &target);
  if (!kernel) FAIL(error_text(kernel.takeError()));
  Expected<KernelStream> stream = compile_stream(*kernel, llvm::cantFail(device_of(target)),
                                                 target);
  if (!stream) {
    llvm::consumeError(stream.takeError());
    return std::nullopt;
  }
  LayerRun run = placed(layer, formed, *kernel, target);
  Expected<Outcome> outcome = simulate(Config{}, run.dram, run.launch);
  if (!outcome) FAIL(error_text(outcome.takeError()));
  if (!outcome->ok()) FAIL(text_of(describe(*outcome, run.dram, run.launch)));
  CHECK(first_difference(layer, run) == "");
  return llvm::cantFail(predict_cycles(Config{}, run.stream.instructions, DramModel{})).total;
}

// Returns the cycles of the default schedule, divided by those of the best of `samples` points.
double check_points(const LayerCase& layer, int samples) {
  const Target& target = device_target(2);
  Task task;
  task.variants.push_back({Algorithm::direct, layer.group});
  LoweredGroup& formed = task.variants[0].lowered;
  to_tensor_form(formed, target);
  Expected<tw::Space> space = search_space(task, target, {});
  if (!space) FAIL(error_text(space.takeError()));
  Expected<Schedule> usual = default_schedule(formed, target),
                     found = space->schedule(*space->default_point());
  if (!usual || !found) FAIL("the default schedule is illegal");
  CHECK(print(*usual) == print(*found));
  CHECK(space->size() > 8);
  const auto before = static_cast<double>(cycles_of(layer, formed, *usual, target).value());
  double best = before;
  int legal = 0;
  std::mt19937_64 random(2);
  for (int i = 0; i < samples; ++i) {
    Expected<Schedule> schedule = space->schedule(space->sample(random));
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    if (const std::optional<uint64_t> cycles = cycles_of(layer, formed, *schedule, target)) {
      ++legal;
      best = std::min(best, static_cast<double>(*cycles));
    }
  }
  MESSAGE(space->size() << " points, " << legal << " of " << samples << " legal, default " << before
                        << " cycles, best " << best);
  CHECK(legal > samples / 4);
  return before / best;
}

}  // namespace

TEST_CASE("spaces: a product has many legal points") {
  const Target& target = device_target(2);
  Task task;
  task.variants.push_back({Algorithm::direct, product_case(384, 256, 512, 0, 1).group});
  to_tensor_form(task.variants[0].lowered, target);
  Expected<tw::Space> space = search_space(task, target, {});
  if (!space) FAIL(error_text(space.takeError()));
  constexpr int kSamples = 200;
  int legal = 0;
  std::mt19937_64 random(3);
  for (int i = 0; i < kSamples; ++i) {
    Expected<Schedule> schedule = space->schedule(space->sample(random));
    legal += bool(schedule);
    if (!schedule) llvm::consumeError(schedule.takeError());
  }
  MESSAGE(space->size() << " points, " << legal << " of " << kSamples << " legal");
  CHECK(space->size() * legal / kSamples >= 1e4);
}

TEST_CASE("spaces: tiles of a tensor instruction compute the same, and some are faster") {
  Layer strided;
  strided.channels = 64, strided.outputs = 64;
  strided.in = {16, 16}, strided.kernel = {1, 1}, strided.strides = {2, 2},
  strided.before = strided.after = {0, 0};
  CHECK(check_points(conv_case(strided, 3), 24) >= 1);
  Layer usual;
  usual.channels = 32, usual.outputs = 32;
  check_points(conv_case(usual, 4), 16);
  check_points(product_case(24, 64, 32, 7, 2), 16);
}
