// Depthwise convolutions and groups of few channels on GPUs: kernels with the window in each
// possible place, in the emulator and through ptxas, and the tiles that the model chooses.
#include <doctest/doctest.h>

#include "kernels/device/bank_conflicts.h"
#include "kernels/device/window_model.h"
#include "tests/cuda/run_jobs.h"

using namespace tw;

namespace {

using test::Case, test::chip, test::graph_of, test::kChips, test::run_jobs;

const Case kWindows[] = {
#include "tests/opencl/window_cases.inc"
};

// A depthwise convolution of one image, in blocks of four channels.
WindowProblem depthwise(int64_t channels, int64_t extent, int64_t taps, int64_t stride) {
  WindowProblem p;
  p.line = p.row = {extent / stride, extent, taps, stride, 1};
  p.channels = channels / 4, p.lanes = p.loaded = 4;
  p.inputs = channels * extent * extent;
  return p;
}

WindowTile usual(const WindowProblem& problem, const Target& device) {
  const std::optional<WindowTile> tile = window_tile(problem, device);
  REQUIRE(tile);
  return *tile;
}

}  // namespace

TEST_CASE("convolutions in windows in the emulator equal the interpreter") {
  for (const char* name : {"80", "75"}) {
    const Target device = chip(name);
    const std::vector<test::Job> jobs = test::jobs_of_cases(kWindows, device);
    for (const Case& one : kWindows)
      CHECK_MESSAGE(std::ranges::any_of(jobs,
                                        [&](const test::Job& job) {
                                          return job.name == one.name &&
                                                 print(job.kernel).find("for x1 in") !=
                                                     std::string::npos;
                                        }),
                    one.name);
    run_jobs(test::distinct(jobs), device);
  }
}

TEST_CASE("convolutions in windows pass ptxas for every chip, with no spill and no note") {
  test::pass_ptxas_of_all_chips(
      [](const Target& device) { return test::distinct(test::jobs_of_cases(kWindows, device)); });
}

TEST_CASE("a window lies in registers, line by line, or in the memory of a block") {
  const Target device = test::emulated().main_device();
  std::vector<test::Job> jobs;
  for (const size_t one : {0, 1})
    for (const WindowPlace place : kWindowPlaces) {
      const test::Job job = test::job_at(kWindows[one].name, graph_of(kWindows[one]), device,
                                         {{"window", static_cast<int64_t>(place)}, {"pixels", 2}});
      const std::string text = print(job.kernel);
      CHECK((text.find("bind thread.x") != std::string::npos));
      CHECK((text.find(" shared per") != std::string::npos) == (place == WindowPlace::block));
      jobs.push_back(job);
    }
  run_jobs(jobs, device);
}

TEST_CASE("threads that read a window of the block together find it in different banks") {
  const Target device = chip("80");
  for (const char* name : {"depthwise", "depthwise of every other pixel, odd sizes"})
    for (const int64_t pixels : {1, 2, 4})
      for (const int64_t across : {4, 7, 8}) {
        CAPTURE(std::string(name));
        CAPTURE(pixels);
        CAPTURE(across);
        const Case& one = *std::ranges::find(kWindows, std::string(name), &Case::name);
        const test::Job job = test::job_at(name, graph_of(one), device,
                                           {{"window", static_cast<int64_t>(WindowPlace::block)},
                                            {"pixels", pixels},
                                            {"threads_across", across}});
        int64_t reads = 0, copies = 0;  // turns that an access takes
        for (const BankAccess& access : bank_accesses(job.kernel, device))
          (access.stores ? copies : reads) = access.turns;
        // With seven threads across, the eighth one of an access reads another line.
        CHECK(reads >= 1);
        CHECK(reads <= (across == 7 ? 2 : 1));
        CHECK(copies >= 1);
        CHECK(copies <= 3);
      }
}

TEST_CASE("points of convolutions' spaces in the emulator, and there are many") {
  const Target device = test::emulated().main_device();
  for (const char* name : {"depthwise", "two outputs of a channel", "groups of four channels"}) {
    const Case& one = *std::ranges::find(kWindows, std::string(name), &Case::name);
    const test::SpaceJobs drawn = test::jobs_of_points(one, device, 8, 1);
    MESSAGE("nvidia-sm80, " << std::string(one.name) << ": " << drawn.legal_points
                            << " legal points");
    CHECK(drawn.jobs.size() == 8);
    CHECK(drawn.legal_points >= 1000);
    run_jobs(drawn.jobs, device);
  }
}

TEST_CASE("the usual tiles keep to the limits of every chip") {
  for (const char* name : kChips)
    for (const int64_t extent : {7, 14, 56, 112, 1024})
      for (const int64_t taps : {3, 5, 7})
        for (const int64_t stride : {1, 2}) {
          CAPTURE(name);
          const Target device = chip(name);
          const WindowProblem problem = depthwise(32, extent, taps, stride);
          const WindowTile tile = usual(problem, device);
          CHECK(window_fault(tile, problem, device) == "");
          CHECK(tile.threads() <= device.max_group);
          CHECK(window_registers(tile, problem) <= 255);
          CHECK(window_weights(tile, problem) <= kMostWindowWeights);
          CHECK(window_bytes(tile, problem) <= device.local_bytes);
        }
}

TEST_CASE("where there are outputs enough, a thread makes several, and else one") {
  for (const char* name : kChips) {
    CAPTURE(name);
    const Target device = chip(name);
    const WindowTile large = usual(depthwise(256, 224, 3, 1), device),
                     small = usual(depthwise(32, 7, 3, 1), device);
    CHECK(large.pixels * large.lines >= 2);
    CHECK(small.pixels * small.lines == 1);
    CHECK(large.threads() >= 64);
  }
}

TEST_CASE("what a window costs grows with its taps, and falls with more multiprocessors") {
  Target device = chip("80");
  const WindowTile tile{2, 2, 8, 4, 1, WindowPlace::registers};
  const auto cycles = [&](const WindowProblem& problem) {
    const std::optional<int64_t> found = window_cycles(tile, problem, device);
    REQUIRE(found);
    return *found;
  };
  const int64_t three = cycles(depthwise(512, 112, 3, 1));
  CHECK(cycles(depthwise(512, 112, 5, 1)) > three);
  device.multiprocessors.count /= 4;
  CHECK(cycles(depthwise(512, 112, 3, 1)) > three);
}

TEST_CASE("what has more weights for an output than registers is not made in windows") {
  WindowProblem problem = depthwise(32, 56, 3, 1);
  CHECK(window_tile(problem, chip("80")));
  problem.depth = 32, problem.lanes = problem.loaded = problem.step = 8;  // f16 with one group
  CHECK(!window_tile(problem, chip("80")));
}

TEST_CASE("tiles that a device does not run are refused in words") {
  const Target device = chip("80");
  WindowProblem problem = depthwise(32, 56, 3, 1);
  WindowTile tile{1, 1, 64, 64, 1, WindowPlace::registers};
  CHECK(window_fault(tile, problem, device) == "the tile has more threads than a block");
  tile = {8, 8, 16, 16, 1, WindowPlace::block};
  CHECK(window_fault(tile, problem, device) == "the window does not fit the block's memory");
  problem.depth = 8;
  tile.across = tile.down = 1;
  CHECK(window_fault(tile, problem, device) == "a window of the block holds one step of channels");
  problem.line.taps = 1;
  tile.place = WindowPlace::line;
  CHECK(window_fault(tile, problem, device) == "there is one line of taps");
}
