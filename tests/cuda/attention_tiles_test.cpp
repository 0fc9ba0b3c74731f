// Attention on GPUs in tiles other than the usual one: variants of its task, and a log that prefers
// one of them.
#include <doctest/doctest.h>

#include <set>

#include "autotune/log.h"
#include "autotune/task.h"
#include "driver/tune/tuned_schedules.h"
#include "kernels/default_schedule.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "tests/cli/compiled.h"
#include "tests/cuda/run_jobs.h"
#include "tests/ir/graph_testing.h"
#include "tests/ir/parsed.h"
#include "tests/passes/random_graph.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

using test::must, test::run_jobs;

Graph attention(const std::string& type) {
  std::string text =
      "graph @attention() {\n%q: T[2, 2, 40, 32] = input\n%k: T[2, 2, 70, 32] = input\n"
      "%v: T[2, 2, 70, 32] = input\n%a: T[2, 2, 40, 70] = matmul(%q, %k) trans_b=true\n"
      "%p: T[2, 2, 40, 70] = softmax(%a) axis=3\n%y: T[2, 2, 40, 32] = matmul(%p, %v)\n"
      "output %y\n}\n";
  for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, type);
  return test::parsed_graph(text);
}

Task task_of(const Graph& graph, const Target& device) {
  Graph passed = graph;
  PassContext context{device};
  REQUIRE(error_text(run_passes(passed, context, default_pipeline())) == "");
  std::vector<Task> tasks = must(tasks_of(passed, fuse_groups(passed, &device), device));
  REQUIRE(tasks.size() == 1);
  return std::move(tasks[0]);
}

Kernel scheduled(const Variant& variant, const Target& device) {
  const LoweredGroup& lowered = variant.lowered;
  return must(apply(lowered.kernel, must(default_schedule(lowered, device)), &device));
}

// The kernel that a compile takes by the log, and the outputs it computes
struct Compiled {
  Pin pin;
  std::vector<Tensor> outputs;
};
Compiled compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                  const std::vector<Tensor>& like, const TestFolder& folder,
                  const std::string& log) {
  Model model;
  model.graph = graph, model.name = "attention";
  CompileOptions options;
  static int count = 0;  // dlopen takes libraries of equal names for one
  options.output = folder / ("attention" + std::to_string(count++) + ".so");
  options.name = "attention";
  options.schedules = tuned_schedules({.log = log});
  const CompileReport report = must(compile_graph(std::move(model), options, test::emulated()));
  CHECK(report.warnings.empty());
  Compiled out{{}, {}};
  for (const Pin& pin : report.schedules)
    if (!pin.task.empty()) out.pin = pin;
  const LoadedModel loaded = must(LoadedModel::open(options.output));
  tw_context* context = nullptr;
  REQUIRE(loaded.api().create(nullptr, &context) == TW_OK);
  std::vector<Tensor> given = inputs;
  std::vector<tw_tensor> in, made;
  for (Tensor& t : given) in.push_back(test::describe(t));
  for (const Tensor& t : like) out.outputs.push_back(Tensor::zeros(t.dtype, t.shape));
  for (Tensor& t : out.outputs) made.push_back(test::describe(t));
  CHECK(loaded.api().run(context, in.data(), made.data()) == TW_OK);
  loaded.api().destroy(context);
  return out;
}

}  // namespace

TEST_CASE("attention in other tiles is a variant of its task, each right in the emulator") {
  const Target device = test::emulated().main_device();
  for (const char* type : {"f32", "f16"}) {
    const Graph graph = attention(type);
    const Task task = task_of(graph, device);
    CHECK(task.variants.size() >= 4);
    std::vector<test::Job> jobs = test::jobs_of(type, graph, test::inputs_of(graph, 1), device, 1);
    REQUIRE(jobs.size() == 1);
    test::Job job = jobs[0];
    // The usual tile comes first, and all kernels differ.
    CHECK(kernel_hash(scheduled(task.variants[0], device)) == kernel_hash(job.kernel));
    std::set<std::string> hashes;
    jobs.clear();
    for (const Variant& variant : task.variants) {
      CHECK(variant.algorithm == Algorithm::direct);
      CHECK(hashes.insert(definition_hash(variant.lowered)).second);
      job.kernel = scheduled(variant, device);
      jobs.push_back(job);
    }
    run_jobs(jobs, device);
  }
}

TEST_CASE("single threads may share the rows of attention in other ways") {
  const Target device = test::emulated().main_device();
  const Graph graph = attention("f32");
  std::vector<test::Job> jobs;
  for (const auto& [rows, across] : {std::pair(1, 8), std::pair(2, 16), std::pair(4, 32)})
    jobs.push_back(
        test::job_at("attention", graph, device, {{"thread_rows", rows}, {"across", across}}));
  CHECK(kernel_hash(jobs[0].kernel) != kernel_hash(jobs[1].kernel));
  run_jobs(jobs, device);
}

TEST_CASE("a log's fastest kernel of attention decides about its tile") {
  test::FakeCuda::get();
  const Target device = test::emulated().main_device();
  const Graph graph = attention("f32");
  const Task task = task_of(graph, device);
  REQUIRE(task.variants.size() >= 3);
  const TestFolder folder;
  const std::string path = folder / "tuned.db";
  const auto record = [&](size_t variant, double seconds, int64_t time = 1'763'800'000) {
    const LoweredGroup& lowered = task.variants[variant].lowered;
    Record r;
    r.key = {task.key, target_key(device), 1};
    r.algorithm = "direct", r.kernel_hash = definition_hash(lowered);
    r.schedule = print(must(default_schedule(lowered, device)));
    r.seconds = {seconds}, r.device = "by hand", r.tool = "test", r.time = time;
    return r;
  };
  {
    TuningLog log = must(TuningLog::open(path, TuningLog::Mode::write));
    must(log.add_all({record(0, 3e-6), record(1, 2e-6), record(2, 1e-6)}));
  }
  const std::vector<Tensor> inputs = test::inputs_of(graph, 1),
                            exact = must(evaluate(graph, inputs));
  const Compiled tuned = compiled(graph, inputs, exact, folder, path);
  CHECK(tuned.pin.kernel_hash == definition_hash(task.variants[2].lowered));
  CHECK(tuned.pin.tuned);
  CHECK(test::relative_difference(exact[0], tuned.outputs[0]) < 1e-5);
  {
    TuningLog log = must(TuningLog::open(path, TuningLog::Mode::write));
    must(log.add(record(0, 5e-7, 1'763'900'000)));  // the usual tile, measured again
  }
  const Compiled usual = compiled(graph, inputs, exact, folder, path);
  CHECK(usual.pin.kernel_hash == definition_hash(task.variants[0].lowered));
}
