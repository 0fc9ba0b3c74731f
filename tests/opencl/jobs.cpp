#include "tests/opencl/jobs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "autotune/explorers/seen.h"
#include "autotune/space.h"
#include "ir/kernel/interpreter.h"
#include "kernels/arranged.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "program/plan_program.h"
#include "program/schedules.h"
#include "tests/backends/read_element.h"
#include "tests/ir/graph_testing.h"
#include "tests/passes/random_graph.h"

namespace tw::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kSmall = 6400;  // bytes of a small output

struct Run {
  std::vector<Bytes> inputs, outputs;
  Bytes arena, weights;
  int64_t symbol = 1;

  int64_t value(const Expr& e) const {
    return eval_int(e, [&](std::string_view) { return symbol; });
  }
  size_t bytes_of(const Buffer& buffer) const {
    int64_t bytes = dtype_bytes(buffer.dtype);
    for (const Expr& extent : buffer.shape) bytes *= value(extent);
    return static_cast<size_t>(bytes);
  }
  std::byte* at(const Operand& operand) {
    const int64_t offset = value(operand.offset);
    switch (operand.place) {
      case Place::input: return inputs[static_cast<size_t>(operand.index)].data() + offset;
      case Place::output: return outputs[static_cast<size_t>(operand.index)].data() + offset;
      case Place::arena: return arena.data() + offset;
      case Place::weights: return weights.data() + offset;
      case Place::growable: break;  // data-dependent sizes, which these graphs lack
    }
    TW_UNREACHABLE("bad place");
  }
  // Returns the arguments before and after the call.
  std::pair<std::vector<Bytes>, std::vector<Bytes>> call(
      const Kernel& kernel, const std::vector<std::byte*>& pointers) const {
    std::vector<KernelArgument> arguments;
    std::vector<Bytes> before, after;
    std::map<std::string, int64_t> symbols;
    for (const std::string& name : kernel.symbols) symbols[name] = symbol;
    for (size_t i = 0; i < pointers.size(); ++i)
      arguments.push_back({Bytes(pointers[i], pointers[i] + bytes_of(kernel.buffers[i]))});
    for (const KernelArgument& a : arguments) before.push_back(a.bytes);
    REQUIRE(error_text(interpret(kernel, arguments, symbols)) == "");
    for (size_t i = 0; i < pointers.size(); ++i) {
      if (kernel.buffers[i].role == BufferRole::output)
        std::memcpy(pointers[i], arguments[i].bytes.data(), arguments[i].bytes.size());
      after.push_back(arguments[i].bytes);
    }
    return {before, after};
  }
};

// Returns the step of tf32 or bf16 if the kernel rounds exponentials to that type, or 0. The
// weights of attention may then round to either neighbour.
double exponentials_step(const Kernel& kernel) {
  double step = 0;
  bool exponentials = false;
  for (const StoreRef& store : stores_of(kernel.body))
    visit(store->value, [&](const Expr& e) {
      if (as_unary(e, UnaryOp::tf32)) step = std::max(step, 1e-3);
      if (is<expr::Cast>(e) && e.type() == DType::bf16) step = std::max(step, 1e-2);
      if (as_unary(e, UnaryOp::exp2)) exponentials = true;
    });
  return exponentials ? step : 0;
}

double tolerance(const Kernel& kernel, DType t) {
  if (const double step = exponentials_step(kernel); step > 0 && t == DType::f32) return step;
  return t == DType::f16 ? 2e-3 : t == DType::bf16 ? 2e-2 : is_float(t) ? 2e-5 : 0;
}

}  // namespace

std::vector<Job> jobs_of(const std::string& name, Graph graph, const std::vector<Tensor>& inputs,
                         const Target& target, int64_t symbol, const AlgorithmOptions& algorithms) {
  if (!graph.data_symbols.empty()) return {};  // these runs know no sizes from data
  PassContext context{target};
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph, &target);
  choose_algorithms(graph, groups, target, algorithms);
  std::vector<Kernel> lowered;
  std::vector<RunKernel> scheduled_kernels;
  std::vector<FusedGraph> fused = {{&graph, groups}};
  for (const Graph* region : regions_within(graph)) fused.push_back({region, fuse_groups(*region)});
  LoweredProgram before_schedules = must(lower_program(fused, {}, target));
  for (const LoweredKernel& kernel : before_schedules.kernels) {
    lowered.push_back(must(arranged(kernel.lowered, target)).run.kernel);
    scheduled_kernels.push_back(must(ModelSchedules().choose(kernel, target)).run);
  }
  const PlannedProgram planned = must(
      plan_program(std::move(before_schedules), std::move(scheduled_kernels), target));
  const Program* program = &planned.program;
  Run run;
  run.symbol = symbol;
  for (const Tensor& tensor : inputs) run.inputs.push_back(tensor.bytes);
  for (const TensorSpec& spec : program->outputs)
    run.outputs.emplace_back(run.bytes_of({"", spec.dtype, spec.dims}));
  run.arena.resize(static_cast<size_t>(run.value(program->arena_bytes)));
  run.weights.resize(program->weight_bytes);
  for (const WeightPiece& piece : program->weights) {
    Bytes source(piece.source.bytes.begin(), piece.source.bytes.end());
    if (piece.pack) run.call(*piece.pack, {source.data(), run.weights.data() + piece.offset});
    else
      std::memcpy(run.weights.data() + piece.offset, source.data(),
                  std::min(source.size(), static_cast<size_t>(piece.size)));
  }
  std::vector<Job> jobs;
  for (const KernelCall& call : program->calls) {
    if (call.function) return jobs;  // later calls lack their inputs
    std::vector<std::byte*> pointers;
    for (const Operand& operand : call.arguments) pointers.push_back(run.at(operand));
    const auto index = static_cast<size_t>(call.kernel);
    std::vector<KernelArgument> scheduled;  // the interpreter finds races
    for (size_t i = 0; i < pointers.size(); ++i)
      scheduled.push_back(
          {Bytes(pointers[i], pointers[i] + run.bytes_of(lowered[index].buffers[i]))});
    const bool small = scheduled.back().bytes.size() <= kSmall;
    auto [before, after] = run.call(lowered[index], pointers);
    std::map<std::string, int64_t> symbols;
    for (const std::string& symbol_name : lowered[index].symbols) symbols[symbol_name] = symbol;
    const std::string wrong =
        small ? error_text(interpret(program->kernels[index], scheduled, symbols)) : "";
    // The interpreter limits the number of threads.
    if (wrong.find("threads at one time") == std::string::npos) CHECK(wrong == "");
    jobs.push_back({name, program->kernels[index],
                    std::vector<int64_t>(lowered[index].symbols.size(), symbol), std::move(before),
                    std::move(after)});
  }
  return jobs;
}

std::vector<Tensor> inputs_of(const Graph& graph, int64_t symbol) {
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs()) {
    std::vector<int64_t> shape;
    for (const Expr& e : graph.value(v).type.shape)
      shape.push_back(eval_int(e, [&](std::string_view) { return symbol; }));
    inputs.push_back(Tensor::zeros(graph.value(v).type.dtype, shape));
    uint64_t state = (inputs.size() + 7) * 0x9e3779b97f4a7c15ull + 1;
    for (int64_t i = 0; i < inputs.back().size(); ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const auto r = static_cast<int64_t>(state >> 40 & 0xffff);
      if (is_float(inputs.back().dtype))
        inputs.back().set(i, static_cast<double>(r - 0x8000) / 0x4000);
      else inputs.back().set_int(i, inputs.back().dtype == DType::boolean ? r & 1 : r % 3);
    }
  }
  return inputs;
}

namespace {

// Returns the task of a graph with one kernel, besides kernels that convert layouts.
Task only_task(Graph graph, const Target& target) {
  PassContext context{target};
  REQUIRE(error_text(run_passes(graph, context, default_pipeline())) == "");
  std::vector<Group> groups = fuse_groups(graph, &target);
  choose_algorithms(graph, groups, target, {});
  std::vector<Task> tasks = must(tasks_of(graph, groups, target));
  if (tasks.size() > 1)
    std::erase_if(tasks, [](const Task& task) {
      return std::holds_alternative<ElementwiseStages>(task.variants.front().lowered.stages);
    });
  REQUIRE(tasks.size() == 1);
  return std::move(tasks.front());
}

Kernel scheduled(const Task& task, const Space& space, const Point& point, const Schedule& schedule,
                 const Target& target) {
  const Sketch& sketch = space.sketches()[static_cast<size_t>(point.sketch)];
  const Variant& variant = task.variants[static_cast<size_t>(sketch.variant)];
  return must(apply_to_run(variant.lowered.kernel, schedule, &target)).kernel;
}

Job only_job(const std::vector<Job>& jobs, const Task& task) {
  const std::string family = family_name(task.variants.front().lowered.stages);
  std::vector<Job> found;
  for (const Job& job : jobs)
    if (jobs.size() == 1 || job.kernel.name.starts_with(family)) found.push_back(job);
  REQUIRE(found.size() == 1);
  return found.front();
}

// All points are equally likely, as the counts of repeated schedules suppose.
Point drawn(const Space& space, std::mt19937_64& random) {
  return space.at(std::floor(unit(random) * space.size()));
}

}  // namespace

Job job_at(const std::string& name, const Graph& graph, const Target& target,
           const std::map<std::string, int64_t>& knobs) {
  const Task task = only_task(graph, target);
  Job job = only_job(jobs_of(name, graph, inputs_of(graph, 1), target, 1), task);
  const Space space = must(search_space(task, target, {}));
  const std::optional<Point> point = space.default_point();
  REQUIRE(point);
  std::string text = space.print(*point);
  for (const auto& [knob, value] : knobs) {
    const std::regex said("\\b" + knob + "=[0-9]+");
    CAPTURE(text);
    CAPTURE(knob);
    REQUIRE(std::regex_search(text, said));
    text = std::regex_replace(text, said, knob + "=" + std::to_string(value));
  }
  const std::optional<Point> changed = space.parse(text);
  CAPTURE(text);
  REQUIRE(changed);
  job.kernel = scheduled(task, space, *changed, must(space.schedule(*changed)), target);
  return job;
}

SpaceJobs jobs_of_points(const Case& one, const Target& target, size_t points, unsigned seed) {
  const Graph graph = graph_of(one);
  const std::vector<Tensor> inputs = inputs_of(graph, 3);
  const Task task = only_task(graph, target);
  const Job usual = only_job(jobs_of(one.name, graph, inputs, target, 3), task);
  const Space space = must(search_space(task, target, {}));
  SpaceJobs out;
  std::mt19937_64 random(seed);
  double tries = 0;
  constexpr double kMostTries = 4000;
  for (; out.jobs.size() < points && tries < kMostTries; ++tries) {
    const Point point = drawn(space, random);
    Expected<Schedule> schedule = space.schedule(point);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    Job job = usual;
    job.name = std::string(one.name) + " " + space.print(point);
    job.kernel = scheduled(task, space, point, *schedule, target);
    out.jobs.push_back(std::move(job));
  }
  // Counts points that share their schedule with another point. Chance alone makes kCounted^2 / (2
  // n) of them if there are n equally likely schedules.
  constexpr int kCounted = 600;
  std::map<std::string, std::set<std::string>> points_of;  // by schedule
  int legal = 0;
  double counted = 0;
  for (; legal < kCounted && counted < 20 * kCounted; ++counted) {
    const Point point = drawn(space, random);
    Expected<Schedule> schedule = space.schedule(point);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    ++legal;
    points_of[print(*schedule)].insert(space.print(point));
  }
  for (const auto& [schedule, points] : points_of)
    out.repeated += static_cast<int>(points.size()) - 1;
  out.legal_points = space.size() * legal / counted;
  return out;
}

std::vector<Job> jobs_of_cases(std::span<const Case> cases, const Target& target, size_t every) {
  std::vector<Job> jobs;
  for (size_t i = 0; i < cases.size(); i += every) {
    const Case& c = cases[i];
    CAPTURE(c.name);
    Graph graph = graph_of(c);
    const std::vector<Tensor> inputs = inputs_of(graph, 3);
    for (Job& job : jobs_of(c.name, std::move(graph), inputs, target, 3))
      jobs.push_back(std::move(job));
  }
  return jobs;
}

Graph conv_graph(const ConvSizes& sizes) {
  Graph graph;
  const auto numbers = [&](std::vector<int64_t> shape, double scale) {
    Tensor t = Tensor::zeros(sizes.type, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, scale * static_cast<double>(i * 7 % 23 - 11));
    return t;
  };
  const Shape shape(sizes.in.begin(), sizes.in.end());
  const ValueId x = graph.add_input("x", {sizes.type, shape, {}}),
                w = graph.add_constant("w", numbers({sizes.out, sizes.in[1], 3, 3}, 0x1p-4)),
                bias = graph.add_constant("b", numbers({sizes.out}, 0x1p-3));
  const Ints strides = {sizes.stride, sizes.stride};
  const ValueId sums = must(graph.add(op::Conv{strides, {1, 1}, {1, 1, 1, 1}, 1}, {x, w, bias})),
                y = must(graph.add(op::Unary{UnaryOp::abs}, {sums}));
  graph.add_output(y, "y");
  return graph;
}

std::vector<Job> winograd_jobs(const Target& target) {
  const std::pair<ConvSizes, Algorithm> cases[] = {
      {{{1, 8, 12, 12}, 32, 1}, Algorithm::winograd_f2},
      {{{2, 9, 23, 14}, 26, 1}, Algorithm::winograd_f4},
      {{{1, 40, 31, 29}, 33, 1}, Algorithm::winograd_f6},
      {{{1, 8, 22, 23}, 24, 2}, Algorithm::winograd_f2},
      {{{2, 8, 27, 30}, 24, 2}, Algorithm::winograd_f4},
      {{{1, 256, 14, 14}, 24, 1}, Algorithm::winograd_f2}};
  std::vector<Job> jobs;
  for (const auto& [sizes, algorithm] : cases) {
    Graph graph = conv_graph(sizes);
    const std::vector<Tensor> inputs = inputs_of(graph, 1), exact = must(evaluate(graph, inputs));
    AlgorithmOptions options;
    options.only = algorithm;
    const std::string name = std::string(algorithm_name(algorithm)) + ", stride " +
                             std::to_string(sizes.stride);
    CAPTURE(name);
    std::vector<Job> made = jobs_of(name, std::move(graph), inputs, target, 1, options);
    CHECK(std::ranges::count_if(made, [&](const Job& job) {  // other jobs convert layouts
            return job.kernel.name.find(algorithm_name(algorithm)) != std::string::npos;
          }) == 1);
    Tensor got = exact[0];
    got.bytes = made.back().expected.back();
    const double bound = rounding_error(
        winograd_kappa(winograd_tile(algorithm), static_cast<int>(sizes.stride)),
        static_cast<double>(sizes.in[1]));
    // Room for the evaluator's own error, and for outputs that are not distributed as in the error
    // model
    constexpr double kRoom = 4;
    CHECK(relative_difference(exact[0], got) < kRoom * bound + 1e-6);
    jobs.insert(jobs.end(), std::make_move_iterator(made.begin()),
                std::make_move_iterator(made.end()));
  }
  return jobs;
}

std::vector<Job> distinct(std::vector<Job> jobs) {
  std::set<std::string> seen;
  std::erase_if(jobs, [&](const Job& job) { return !seen.insert(kernel_hash(job.kernel)).second; });
  return jobs;
}

std::string difference(const Job& job, const std::vector<Bytes>& got) {
  for (size_t i = 0; i < got.size(); ++i) {
    const Buffer& buffer = job.kernel.buffers[i];
    if (buffer.role != BufferRole::output) continue;
    const size_t size = static_cast<size_t>(dtype_bytes(buffer.dtype)),
                 count = got[i].size() / size;
    const double limit = tolerance(job.kernel, buffer.dtype);
    double span = 1;
    for (size_t j = 0; j < count; ++j)
      if (const double want = read_element(buffer.dtype, job.expected[i].data() + j * size);
          std::isfinite(want))
        span = std::max(span, std::fabs(want));
    for (size_t j = 0; j < count; ++j) {
      const double want = read_element(buffer.dtype, job.expected[i].data() + j * size),
                   is = read_element(buffer.dtype, got[i].data() + j * size);
      const bool same = want == is || (std::isnan(want) && std::isnan(is)) ||
                        std::fabs(want - is) <= limit * span;
      if (!same)
        return buffer.name + "[" + std::to_string(j) + "] is " + std::to_string(is) + ", not " +
               std::to_string(want);
    }
  }
  return "";
}

}  // namespace tw::test
