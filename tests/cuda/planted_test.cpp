// Six bugs of GPU kernels, planted one at a time in good ones, and the part that catches each. The
// interpreter knows about order, the emulator sees numbers.
//   missing barrier                      emulator (the code's barriers are not the schedule's)
//   wait off by one                      emulator; a wait left out: verifier
//   slot released early, order, parity   interpreter and emulator
//   untied accumulator                   interpreter and emulator
//   operands in the wrong places         the code generator
// tests/ir/kernel/text_kernels_test.cpp has bugs of rings between roles, for the verifier and the
// interpreter.
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "frontend/frontend.h"
#include "ir/kernel/interpreter.h"
#include "tests/cuda/fake.h"
#include "tests/opencl/jobs.h"

using namespace tw;

namespace {

Target device_of(const char* name) {
  Expected<Target> target = load_target(name, {std::string(TW_SOURCE_DIR) + "/configs"});
  if (!target) FAIL(error_text(target.takeError()));
  return target->main_device();
}

// A product with constant weights of 64 columns, in one block with three stages of copies under way
test::Job job_of(DType type, int64_t depth) {
  Graph graph;
  const ValueId x = graph.add_input("x", {type, {Expr(64), Expr(depth)}, {}});
  Tensor weights = Tensor::zeros(type, {depth, 64});
  for (int64_t i = 0; i < weights.size(); ++i)
    weights.set(i, static_cast<double>(i * 37 % 61 - 30) / 32);
  Expected<ValueId> y = graph.add(op::MatMul{}, {x, graph.add_constant("w", weights)});
  if (!y) FAIL(error_text(y.takeError()));
  graph.add_output(*y, "y");
  std::map<std::string, int64_t> knobs = {{"tile_rows", 64}, {"tile_columns", 64}, {"stages", 3}};
  if (type == DType::f32) {
    knobs.insert({{"tile_depth", 16}, {"thread_rows", 8}, {"thread_columns", 4}});
  } else {
    knobs.insert({{"tile_depth", 32}, {"warp_rows", 32}, {"warp_columns", 32}});
  }
  return test::job_at("planted", graph, device_of("nvidia-sm80"), knobs);
}

// Applies the edits in order, each behind the one before. Each text must be there.
std::string changed(std::string text,
                    const std::vector<std::pair<std::string, std::string>>& edits) {
  size_t behind = 0;  // end of the last edit
  for (const auto& [from, to] : edits) {
    const size_t at = text.find(from, behind);
    CAPTURE(from);
    CAPTURE(text);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    behind = at + to.size();
  }
  return text;
}

Kernel parsed(const std::string& text) {
  Expected<Kernel> kernel = parse_kernel(text);
  if (!kernel) FAIL(error_text(kernel.takeError()) << text);
  return std::move(*kernel);
}

std::string verified(const Kernel& kernel) { return error_text(verify(kernel)); }

std::string interpreted(test::Job job, const Kernel& kernel) {
  std::vector<KernelArgument> arguments;
  for (const auto& bytes : job.arguments) arguments.push_back({bytes});
  if (const std::string problem = error_text(interpret(kernel, arguments, {})); !problem.empty())
    return problem;
  for (size_t i = 0; i < arguments.size(); ++i) job.arguments[i] = arguments[i].bytes;
  return test::difference(job, job.arguments);
}

std::string emulated(const test::Job& job, const Kernel& kernel,
                     const test::EmulatorChoices& choices = {}) {
  const Kernel* one = &kernel;
  Expected<cuda::CudaCode> code = cuda::cuda_code({&one, 1}, device_of("nvidia-sm80"), {});
  if (!code) return error_text(code.takeError());
  test::FakeCuda& fake = test::FakeCuda::get();
  REQUIRE(fake.load(code->bytes) == "");
  std::vector<std::vector<std::byte>> buffers = job.arguments;
  fake.choose(choices);
  const std::string problem = fake.run(kernel, code->launches[0], buffers, {});
  fake.choose({});
  return problem.empty() ? test::difference(job, buffers) : problem;
}

void says(const std::string& text, const char* what) {
  CHECK_MESSAGE(text.find(what) != std::string::npos, text);
}

}  // namespace

TEST_CASE("the kernels without bugs pass every check") {
  for (const test::Job& job : {job_of(DType::f32, 96), job_of(DType::f16, 160)}) {
    const std::string text = print(job.kernel);
    CAPTURE(text);
    CHECK(text.find(" async") != std::string::npos);
    CHECK(verified(job.kernel) == "");
    CHECK(interpreted(job, job.kernel) == "");
    for (const uint64_t seed : {0, 1, 2, 3}) CHECK(emulated(job, job.kernel, {seed}) == "");
  }
}

TEST_CASE(
    "a slot released early, the wrong order, the wrong parity: the interpreter names the copy, the "
    "emulator's numbers differ") {
  const test::Job job = job_of(DType::f32, 96);
  const std::string text = print(job.kernel);
  const std::string steady = "if k0 < 4 {\n";
  const struct {
    const char* bug;
    std::vector<std::pair<std::string, std::string>> edits;
    const char* interpreter;
  } planted[] = {
      {"a slot is filled again while it is read",
       {{steady, steady}, {"wt[(k0 + 2) % 3", "wt[k0 % 3"}},
       "with nothing to order them"},
      {"the copies come behind the end of their group",
       {{steady, steady},
        {"signal wt.done async\n", "signal wt.done async\nsignal xt.done async\n"},
        {"signal xt.done async\n", ""}},
       "is read before it is written"},
      {"the sums read the next slot",
       {{"+= xt[k0 % 3", "+= xt[(k0 + 1) % 3"}},
       "is read before it is written"},
  };
  for (const auto& p : planted) {
    CAPTURE(std::string(p.bug));
    const Kernel kernel = parsed(changed(text, p.edits));
    says(interpreted(job, kernel), p.interpreter);
    CHECK(emulated(job, kernel) != "");
  }
}

TEST_CASE("a missing wait: the verifier counts") {
  const std::string text = print(job_of(DType::f32, 96).kernel);
  says(verified(parsed(changed(text, {{"wait wt.done\n", ""}}))), "token queue 'wt.done' is given");
}

TEST_CASE("a missing barrier and a wait off by one: the emulator's numbers differ") {
  for (const test::Job& job : {job_of(DType::f32, 96), job_of(DType::f16, 160)}) {
    const test::EmulatorCounts before = test::FakeCuda::get().emulated();
    REQUIRE(emulated(job, job.kernel) == "");
    CHECK(test::FakeCuda::get().emulated().copies > before.copies);
    const int32_t met = test::FakeCuda::get().emulated().barriers - before.barriers;
    int64_t caught = 0, missed = 0;
    for (int64_t place = 0;; ++place) {  // every barrier in the code
      const int32_t all = test::FakeCuda::get().emulated().barriers;
      const std::string problem = emulated(job, job.kernel, {0, place, 0});
      // The code has no barrier of this number.
      if (problem.empty() && test::FakeCuda::get().emulated().barriers - all == met) break;
      ++(problem.empty() ? missed : caught);
    }
    CHECK(caught == 2);  // behind the wait, and before the slot is filled again
    // The barriers around the plain stores of the first stages are not needed.
    CHECK(missed == (job.kernel.buffers[0].dtype == DType::f32 ? 0 : 2));
    CHECK(emulated(job, job.kernel, {0, -1, 1}) != "");
  }
}

TEST_CASE(
    "an untied accumulator: the interpreter's and the emulator's numbers differ, or the "
    "instruction does not match") {
  const test::Job job = job_of(DType::f16, 160);
  const std::string text = print(job.kernel);
  CHECK(text.find("block product by mma.m16n8k16.f16") != std::string::npos);
  const Kernel other = parsed(changed(text, {{"block product", "block product"},
                                             {"acc: acc[ag_warp, am,", "acc: acc[ag_warp, 0,"}}));
  CHECK(interpreted(job, other) != "");
  CHECK(emulated(job, other) != "");
  const Kernel shifted = parsed(
      changed(text, {{"block product", "block product"},
                     {"aj // 2 + ai % 8 * 4", "aj // 2 + (ai + 1) % 8 * 4"}}));
  says(emulated(job, shifted), "does not store as the instruction does");
}
