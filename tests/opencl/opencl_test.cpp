// Kernels of the operators' cases and of random graphs, as OpenCL C on the machine's OpenCL (PoCL
// in CI), against the interpreter. Without OpenCL, only their text is made, and the test prints a
// note.
#include <doctest/doctest.h>

#include <algorithm>

#include "ir/storage_types.h"
#include "tests/opencl/jobs.h"
#include "tests/opencl/session.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

using test::Case, test::jobs_of_cases;

const Case kCases[] = {
#include "tests/cli/operator_cases.inc"
};

const Case kAttention[] = {
#include "tests/opencl/attention_cases.inc"
};

const Case kTiled[] = {
#include "tests/opencl/tiled_cases.inc"
};

const Case kWindows[] = {
#include "tests/opencl/window_cases.inc"
};

const Case kRows[] = {
    {"softmax of long rows", "%x: f32[5, 300] = input", "%y: f32[5, 300] = softmax(%x) axis=1"},
    {"log softmax of long rows, free batch", "%x: f32[batch, 4, 130] = input",
     "%y: f32[batch, 4, 130] = softmax(%x) axis=2 log=true"},
    {"layer norm of long rows",
     "%x: f32[2, 3, 256] = input\n%s: f32[256] = input\n%b: f32[256] = input",
     "%y: f32[2, 3, 256] = layer_norm(%x, %s, %b) axis=2"},
    {"layer norm of half precision", "%x: f16[3, 200] = input\n%s: f16[200] = input",
     "%y: f16[3, 200] = layer_norm(%x, %s) axis=1"},
};

constexpr size_t kBatch = 24;  // kernels of one program: compiling has a fixed cost

// True for a kernel that the processor must run: OpenCL C has no form for storage types, in buffers
// or in between.
bool is_processors(const test::Job& job, const Target& target) {
  const std::string problem = error_text(emit_opencl(job.kernel, target, "k").takeError());
  for (int t = kArithmeticDTypeCount; t < kDTypeCount; ++t)
    if (problem.find(std::string(dtype_name(static_cast<DType>(t))) + " has no form in OpenCL C") !=
        std::string::npos)
      return true;
  return false;
}

void run_jobs(std::vector<test::Job> jobs, const Target& target) {
  jobs = test::distinct(std::move(jobs));
  std::erase_if(jobs, [&](const test::Job& job) { return is_processors(job, target); });
  std::vector<OpenClSource> sources;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Expected<OpenClSource> source = emit_opencl(jobs[i].kernel, target, "k" + std::to_string(i));
    if (!source)
      FAIL(jobs[i].name << ": " << error_text(source.takeError()) << "\n" << print(jobs[i].kernel));
    sources.push_back(std::move(*source));
  }
  test::OpenClHost* device = test::shared_host();
  for (size_t first = 0; device && first < jobs.size(); first += kBatch) {
    const size_t count = std::min(kBatch, jobs.size() - first);
    const std::string text = opencl_program(std::span(sources).subspan(first, count));
    std::string log;
    const auto built = device->build(text, log);
    if (!built) FAIL(log << "\n" << text);
    for (size_t i = first; i < first + count; ++i) {
      CAPTURE(jobs[i].name);
      std::vector<std::vector<std::byte>> buffers = jobs[i].arguments;
      const std::string problem = device->run(*built, jobs[i].kernel, sources[i], buffers,
                                              jobs[i].symbols);
      const std::string wrong = problem.empty() ? test::difference(jobs[i], buffers) : problem;
      if (!wrong.empty())
        FAIL_CHECK(wrong << "\n" << print(jobs[i].kernel) << "\n" << sources[i].text);
    }
  }
}

}  // namespace

TEST_CASE("kernels of operators on OpenCL equal the interpreter") {
  const Target target = test::device_target("opencl-generic");
  run_jobs(jobs_of_cases(kCases, target, 1), target);
}

TEST_CASE("kernels for a device without local memory") {
  const Target target = test::device_target("opencl-mali-midgard");
  run_jobs(jobs_of_cases(kCases, target, 7), target);
}

TEST_CASE("tiles of several rows a thread") {
  const Target target = test::device_target("opencl-generic");
  std::vector<test::Job> jobs = jobs_of_cases(kTiled, target, 1);
  CHECK(print(jobs.front().kernel).find("for y_row in 4 unroll") != std::string::npos);
  size_t shared = 0;
  for (const test::Job& job : jobs)
    shared += print(job.kernel).find(" local per tile") != std::string::npos;
  CHECK(shared == std::size(kTiled) - 1);
  run_jobs(std::move(jobs), target);
}

TEST_CASE("depthwise convolutions and groups of few channels in windows") {
  for (const char* name : {"opencl-generic", "opencl-mali-midgard"}) {
    const Target target = test::device_target(name);
    const std::vector<test::Job> jobs = jobs_of_cases(kWindows, target, 1);
    CHECK(std::ranges::any_of(jobs, [](const test::Job& job) {
      return print(job.kernel).find("for x1 in") != std::string::npos;
    }));
    run_jobs(jobs, target);
  }
}

TEST_CASE("Winograd's convolutions") {
  const Target target = test::device_target("opencl-generic");
  run_jobs(test::winograd_jobs(target), target);
}

TEST_CASE("attention in blocks, its steps in local memory") {
  const Target target = test::device_target("opencl-generic");
  std::vector<test::Job> jobs = jobs_of_cases(kAttention, target, 1);
  CHECK(std::ranges::count_if(jobs, [](const test::Job& job) {
          return print(job.kernel).find(" local per block") != std::string::npos;
        }) == std::ssize(kAttention));
  run_jobs(std::move(jobs), target);
}

TEST_CASE("a work-group a row, with memory of its own") {
  const Target target = test::device_target("opencl-generic");
  std::vector<test::Job> jobs = jobs_of_cases(kRows, target, 1);
  for (const test::Job& job : jobs) {
    CAPTURE(job.name);
    CAPTURE(print(job.kernel));
    Expected<OpenClSource> source = emit_opencl(job.kernel, target, "f");
    REQUIRE(bool(source));
    CHECK(source->launches.size() == 1);
    CHECK(source->launches.front().local_bytes > 0);
  }
  run_jobs(std::move(jobs), target);
}

TEST_CASE("threads add parts of long sums with few points") {
  const Case cases[] = {{"product", "%x: f32[1, 4096] = input\n%w: f32[4096, 16] = input",
                         "%y: f32[1, 16] = matmul(%x, %w)"},
                        {"rest", "%x: f32[2, 301] = input\n%w: f32[301, 5] = input",
                         "%y: f32[2, 5] = matmul(%x, %w)"}};
  for (const char* name : {"opencl-generic", "opencl-mali-midgard"}) {
    const Target target = test::device_target(name);
    for (const Case& c : cases) {
      test::SpaceJobs drawn = test::jobs_of_points(c, target, 60, 7);
      std::erase_if(drawn.jobs, [](const test::Job& job) {
        return job.name.find("parts_acc=1,") != std::string::npos;
      });
      drawn.jobs.resize(std::min<size_t>(drawn.jobs.size(), 5));
      REQUIRE(drawn.jobs.size() == 5);
      for (const test::Job& job : drawn.jobs)
        CHECK(print(job.kernel).find("temp acc_pieces") != std::string::npos);
      run_jobs(std::move(drawn.jobs), target);
    }
  }
}

TEST_CASE("points of a product's space compute the same, and there are many") {
  const Case product = {"product", "%x: f32[192, 64] = input\n%w: f32[64, 128] = input",
                        "%y: f32[192, 128] = matmul(%x, %w)"};
  const Case edges = {"edges", "%x: f32[67, 40] = input\n%w: f32[40, 72] = input",
                      "%p: f32[67, 72] = matmul(%x, %w)\n%y: f32[67, 72] = unary(%p) function=abs"};
  for (const char* name : {"opencl-generic", "opencl-mali-midgard"}) {
    CAPTURE(name);
    const Target target = test::device_target(name);
    test::SpaceJobs drawn = test::jobs_of_points(product, target, 10, 1);
    MESSAGE(std::string(name) << ": " << drawn.legal_points << " legal points, of 600 "
                              << drawn.repeated << " repeat another one");
    CHECK(drawn.legal_points >= 1e4);
    CHECK(drawn.repeated < 18);  // 600^2 / (2 * 1e4)
    run_jobs(std::move(drawn.jobs), target);
    run_jobs(test::jobs_of_points(edges, target, 6, 2).jobs, target);
  }
}

TEST_CASE("a wrong program is noticed") {
  const Target target = test::device_target("opencl-generic");
  std::vector<test::Job> jobs = jobs_of_cases(std::span(kCases).first(1), target, 1);
  Expected<OpenClSource> source = emit_opencl(jobs.front().kernel, target, "wrong");
  REQUIRE(bool(source));
  const size_t at = source->text.find("tanh");
  REQUIRE(at != std::string::npos);
  source->text.replace(at, 4, "fabs");
  test::OpenClHost* device = test::shared_host();
  if (!device) return;
  std::string log;
  const auto built = device->build(opencl_program(std::span(&*source, 1)), log);
  REQUIRE(built);
  std::vector<std::vector<std::byte>> buffers = jobs.front().arguments;
  CHECK(device->run(*built, jobs.front().kernel, *source, buffers, {}) == "");
  CHECK(test::difference(jobs.front(), buffers) != "");
}

TEST_CASE("kernels of random graphs on OpenCL equal the interpreter") {
  const Target target = test::device_target("opencl-generic");
  std::vector<test::Job> jobs;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    for (test::Job& job :
         test::jobs_of("seed " + std::to_string(seed), std::move(graph), inputs, target, 1))
      jobs.push_back(std::move(job));
  }
  run_jobs(std::move(jobs), target);
}
