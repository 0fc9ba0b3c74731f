// Winograd's convolutions on GPUs: in the emulator and through ptxas, points of their space, and
// the cases where they are chosen.
#include <doctest/doctest.h>

#include "autotune/space.h"
#include "kernels/arranged.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "tests/cli/compiled.h"
#include "tests/cuda/run_jobs.h"
#include "tests/ir/graph_testing.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

using test::chip, test::must, test::run_jobs;

Algorithm chosen(const test::ConvSizes& sizes, const Target& device,
                 const AlgorithmOptions& options = {}) {
  const Graph graph = test::conv_graph(sizes);
  std::vector<Group> groups = fuse_groups(graph, &device);
  choose_algorithms(graph, groups, device, options);
  REQUIRE(groups.size() == 1);
  return groups[0].algorithm;
}

class RefusingSchedules final : public ModelSchedules {
 public:
  Expected<ChosenSchedule> choose(const LoweredKernel& kernel, const Target& place) const override {
    if (kernel.lowered.kernel.name.find("winograd") != std::string::npos)
      return make_error(DiagCode::unsupported, "no such kernel here");
    return ModelSchedules::choose(kernel, place);
  }
};
class RefusingSource final : public ScheduleSource {
 public:
  Expected<std::unique_ptr<ModelSchedules>> open(const std::string&,
                                                 const std::map<std::string, int64_t>&,
                                                 const SymbolLimitsOf&,
                                                 const Target&) const override {
    return std::make_unique<RefusingSchedules>();
  }
};

AlgorithmOptions roomy() {
  AlgorithmOptions options;
  options.max_weight_growth = 100;
  return options;
}

}  // namespace

TEST_CASE("Winograd's convolutions in the emulator equal the interpreter") {
  const Target device = test::emulated().main_device();
  const std::vector<test::Job> jobs = test::winograd_jobs(device);
  CHECK(std::ranges::any_of(jobs, [](const test::Job& job) {  // blocks split the depth
    return std::ranges::any_of(job.kernel.buffers, [](const Buffer& buffer) {
      return buffer.name == "part" && buffer.shape.size() == 5;
    });
  }));
  run_jobs(jobs, device);
}

TEST_CASE("Winograd's convolutions pass ptxas for every chip, with no spill and no note") {
  test::pass_ptxas_of_all_chips([](const Target& device) { return test::winograd_jobs(device); });
}

TEST_CASE("the transforms' threads are a choice of the space") {
  const Target device = test::emulated().main_device();
  AlgorithmOptions only;
  only.only = Algorithm::winograd_f2;
  const Graph whole = test::conv_graph({{1, 8, 12, 12}, 32, 1});
  Graph graph = whole;
  PassContext context{device};
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph, &device);
  choose_algorithms(graph, groups, device, only);
  Task task;
  for (Task& one : must(tasks_of(graph, groups, device)))
    if (one.variants.size() > 1) task = std::move(one);
  // The task has the direct kernel and Winograd's as variants, which a log can compare.
  CHECK(std::ranges::count(task.variants, Algorithm::direct, &Variant::algorithm) == 1);
  const auto found = std::ranges::find(task.variants, Algorithm::winograd_f2, &Variant::algorithm);
  REQUIRE(found != task.variants.end());
  const LoweredGroup lowered = found->lowered;
  std::erase_if(task.variants,
                [](const Variant& v) { return v.algorithm != Algorithm::winograd_f2; });
  const Space space = must(search_space(task, device, {}));
  const std::optional<Point> usual = space.default_point();
  REQUIRE(usual);
  const std::string text = space.print(*usual);
  for (const char* knob : {"threads_in=64", "threads_out=64", "tile_rows="})
    CHECK(text.find(knob) != std::string::npos);
  std::string other = text;
  other.replace(other.find("threads_in=64"), 13, "threads_in=128");
  const std::optional<Point> point = space.parse(other);
  REQUIRE(point);
  std::vector<test::Job> jobs = test::jobs_of("point", whole, test::inputs_of(whole, 1), device, 1,
                                              only);
  const auto job = std::ranges::find_if(jobs, [](const test::Job& one) {
    return one.kernel.name.find("winograd") != std::string::npos;
  });
  REQUIRE(job != jobs.end());
  job->kernel = must(scheduled_run(lowered, must(space.schedule(*point)), device)).kernel;
  run_jobs({*job}, device);
}

TEST_CASE("a layer by Winograd's runs whole on the fake driver, and the report says so") {
  test::FakeCuda& fake = test::FakeCuda::get();
  const Graph graph = test::conv_graph({{1, 24, 25, 24}, 32, 1});
  AlgorithmOptions only;
  only.only = Algorithm::winograd_f4;
  const std::vector<Tensor> inputs = test::inputs_of(graph, 1),
                            exact = must(evaluate(graph, inputs));
  const test::FakeCounts before = fake.counts();
  const std::vector<Tensor> got = test::run_compiled(graph, inputs, exact, test::emulated(), 1,
                                                     only);
  CHECK(test::relative_difference(exact[0], got[0]) < 1e-5);
  CHECK(fake.counts().launches - before.launches >= 3);
  CHECK(fake.breaches() == "");
  const CompileReport report = test::report_of(graph, test::emulated(), Emit::scheduled, only);
  CHECK(report.host_reasons.empty());
  CHECK(report.text.find("kernel @winograd_f4") != std::string::npos);
  REQUIRE(report.algorithms.size() == 1);
  CHECK(report.algorithms.begin()->second == Algorithm::winograd_f4);
}

TEST_CASE("what a chip cannot make by Winograd's algorithm it makes directly, and a note says so") {
  CompileOptions options;
  options.emit = Emit::scheduled;
  options.algorithms.only = Algorithm::winograd_f4;
  const Graph graph = test::conv_graph({{1, 24, 25, 24}, 32, 1});
  CHECK(test::report_of(graph, test::emulated(), options).notes.empty());
  options.schedules = std::make_shared<RefusingSource>();
  const CompileReport report = test::report_of(graph, test::emulated(), options);
  CHECK(report.host_reasons.empty());
  CHECK(report.text.find("winograd") == std::string::npos);
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes.front().find(": direct, not winograd_f4: no such kernel here") !=
        std::string::npos);
}

TEST_CASE("a chip takes Winograd's where the model says that it is faster") {
  const Target device = chip("80");
  const test::ConvSizes large{{8, 128, 28, 28}, 128, 1};
  CHECK(winograd_tile(chosen(large, device, roomy())) >= 4);
  // Budgets hold: no growth of weights, or hardly any error.
  AlgorithmOptions small;
  small.max_weight_growth = 1;
  CHECK(chosen(large, device, small) == Algorithm::direct);
  Target exact = device;
  exact.accuracy = 1e-9;
  CHECK(chosen(large, exact, roomy()) == Algorithm::direct);
  // Tensor cores multiply f16 directly, and a few pixels do not fill tiles.
  test::ConvSizes half = large;
  half.type = DType::f16;
  CHECK(chosen(half, device, roomy()) == Algorithm::direct);
  CHECK(chosen({{1, 512, 7, 7}, 512, 1}, device, roomy()) == Algorithm::direct);
  // A device whose threads share no memory computes directly.
  Target apart = device;
  apart.scopes.clear();
  CHECK(chosen(large, apart, roomy()) == Algorithm::direct);
}
