// The CUDA path without a GPU: kernels of the operators' cases run in the emulator against the
// interpreter, and pass ptxas where there is one. Whole models run on a fake libcuda.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "backends/cuda/cuda.h"
#include "backends/cuda/ptxas.h"
#include "driver/compile/compile.h"
#include "frontend/frontend.h"
#include "kernels/device/bank_conflicts.h"
#include "tests/cli/compiled.h"
#include "tests/cuda/run_jobs.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

using test::Case, test::code_of, test::cuda_target, test::emulated, test::inputs_of, test::run_jobs;

std::vector<test::Job> kernels_of_cases(std::span<const Case> cases, const Target& device) {
  return test::distinct(test::jobs_of_cases(cases, device));
}

const Case kCases[] = {
#include "tests/cli/operator_cases.inc"
};

const Case kTiled[] = {
#include "tests/opencl/tiled_cases.inc"
};

const Case kAttention[] = {
#include "tests/opencl/attention_cases.inc"
};

// Compiles the kernels of the cases with ptxas, if there is one. Returns their PTX.
std::string passes_ptxas(std::span<const Case> cases, const std::string& chip) {
  const Target device = cuda_target("nvidia-sm" + chip).main_device();
  const cuda::CudaCode code = code_of(kernels_of_cases(cases, device), device,
                                      {"sm_" + chip, "ptx80"});
  CHECK(code.bytes.find(".version 8.0") != std::string::npos);
  CHECK(code.bytes.find("mul.f32") == std::string::npos);  // ptxas could contract it
  const std::string program = cuda::find_ptxas();
  if (program.empty())
    return std::cout << "SKIPPED: no ptxas on this machine (scripts/setup.sh cuda)" << std::endl,
           code.bytes;
  Expected<cuda::PtxasResult> result = cuda::run_ptxas(program, code.bytes, "sm_" + chip);
  if (!result) FAIL(error_text(result.takeError()));
  CHECK(result->functions.size() >= code.launches.size());
  CHECK(result->functions.begin()->second.registers > 0);
  return code.bytes;
}

std::string said_by(const Target& target, const char* chip) {
  Expected<Graph> graph = parse_graph(
      "graph @g() {\n%x: f32[4] = input\n%y: f32[4] = unary(%x) function=abs\noutput %y\n}\n");
  REQUIRE(bool(graph));
  const LoadedModel loaded = test::compile_for(*graph, target);
  setenv("TW_FAKE_CUDA_CHIP", chip, 1);
  tw_context* context = nullptr;
  const tw_status status = loaded.api().create(nullptr, &context);
  unsetenv("TW_FAKE_CUDA_CHIP");
  const std::string text = status == TW_OK ? "" : loaded.api().last_error(nullptr);
  if (context) loaded.api().destroy(context);
  return text;
}

}  // namespace

TEST_CASE("kernels of operators in the emulator equal the interpreter") {
  const Target device = emulated().main_device();
  run_jobs(kernels_of_cases(kCases, device), device);
}

TEST_CASE("tiles of a block in the emulator equal the interpreter") {
  const Target device = emulated().main_device();
  run_jobs(kernels_of_cases(kTiled, device), device);
}

TEST_CASE("groups and phases of convolutions with channels enough are tiles of batches") {
  const Target device = cuda_target().main_device();
  std::set<std::string> groups, phases;
  for (const test::Job& job : kernels_of_cases(kTiled, device)) {
    if (!job.kernel.find_buffer("xt")) continue;
    if (job.name.find("groups") != std::string::npos) groups.insert(job.name);
    if (job.name.starts_with("transposed convolution")) phases.insert(job.name);
  }
  CHECK(groups.size() == 6);
  CHECK(phases.size() == 4);
}

TEST_CASE("attention in blocks in the emulator equals the interpreter") {
  for (const char* chip : {"80", "75"}) {
    const Target device = cuda_target("nvidia-sm" + std::string(chip)).main_device();
    run_jobs(kernels_of_cases(kAttention, device), device);
  }
}

TEST_CASE("attention of f32 multiplies bf16 where the precision says so, few queries too") {
  Target device = emulated().main_device();
  device.precision = Precision::bf16;
  const std::vector<test::Job> jobs = kernels_of_cases(kAttention, device);
  const auto multiplies = [&](const char* name, const char* instruction) {
    return std::ranges::any_of(jobs, [&](const test::Job& job) {
      return job.name == name && print(job.kernel).find(instruction) != std::string::npos;
    });
  };
  for (const char* name : {"attention in blocks", "attention in blocks, causal",
                           "attention in blocks, added mask, other values' width",
                           "attention in blocks, heads that share keys, a mask of bool, values "
                           "that lie across"})
    CHECK_MESSAGE(multiplies(name, "by mma.m16n8k16.bf16"), name);
  CHECK(multiplies("attention in blocks, f16", "by mma.m16n8k16.f16"));
  run_jobs(jobs, device);
}

TEST_CASE("points of a product's space in the emulator, and there are many") {
  const Target device = emulated().main_device();
  const Case product = {"product", "%x: f32[192, 64] = input\n%w: f32[64, 128] = input",
                        "%y: f32[192, 128] = matmul(%x, %w)"};
  const test::SpaceJobs drawn = test::jobs_of_points(product, device, 6, 1);
  MESSAGE("nvidia-sm80: " << drawn.legal_points << " legal points");
  CHECK(drawn.legal_points >= 1e4);
  run_jobs(drawn.jobs, device);
}

TEST_CASE("instructions of other shapes, by their semantics alone") {
  Target device = emulated().main_device();
  const auto half = std::ranges::find(device.intrinsics, "mma.m16n8k16.f16", &Intrinsic::name);
  REQUIRE(half != device.intrinsics.end());
  Intrinsic shallow = *half;  // half the depth, in the layout of the PTX manual
  shallow.name = "mma.m16n8k8.f16";
  shallow.semantics =
      "kernel @mma(a: in f16[32, 4], b: in f16[32, 2], c: out f32[32, 4]) {\n"
      "  for i in 16 { for j in 8 { for k in 8 reduce {\n"
      "    c: c[i % 8 * 4 + j // 2, i // 8 * 2 + j % 2] += f32(a[i % 8 * 4 + k // 2, i // 8 * 2 + "
      "k "
      "% 2]) * f32(b[j * 4 + k // 2, k % 2])\n"
      "  } } }\n}\n";
  shallow.kernel = nullptr;  // it belongs to the old semantics
  shallow.emit = llvm::cantFail(
      parse_emit({"llvm.nvvm.mma.m16n8k8.row.col.f32.f32(a, b, c) over 32"}));
  const Case product = {"halves", "%x: f16[64, 64] = input\n%w: f16[64, 64] = input",
                        "%y: f16[64, 64] = matmul(%x, %w)"};
  std::set<std::string> used;
  for (const bool first : {true, false}) {
    Target target = device;
    if (first) target.intrinsics.insert(target.intrinsics.begin(), shallow);
    else target.intrinsics.push_back(shallow);
    std::vector<test::Job> jobs = test::jobs_of_points(product, target, 6, 3).jobs;
    for (test::Job& usual : kernels_of_cases(std::span(&product, 1), target))
      jobs.push_back(std::move(usual));
    for (const test::Job& job : jobs)
      visit(job.kernel.body, [&](const Stmt& s) {
        const auto* block = as<stmt::Block>(s);
        if (block && block->intrinsic.starts_with("mma")) used.insert(block->intrinsic);
      });
    run_jobs(jobs, target);
  }
  CHECK(used == std::set<std::string>{"mma.m16n8k16.f16", "mma.m16n8k8.f16"});
}

TEST_CASE("products of bytes by an instruction, with a zero point and without") {
  const Target device = emulated().main_device();
  const Case plain = {"two inputs", "%x: i8[40, 64] = input\n%w: i8[64, 48] = input",
                      "%y: i32[40, 48] = matmul(%x, %w)"};
  std::vector<test::Job> jobs = kernels_of_cases(std::span(&plain, 1), device);
  const auto add = [&](const char* name, const Shape& x, const std::vector<int64_t>& w,
                       const OpAttrs& product) {
    Graph graph;
    Tensor weights = Tensor::zeros(DType::i8, w);
    for (int64_t i = 0; i < weights.size(); ++i) weights.set_int(i, i * 7 % 23 - 11);
    const ValueId in = graph.add_input("x", {DType::i8, x, {}});
    Expected<ValueId> y = graph.add(product, {in, graph.add_constant("w", weights)});
    REQUIRE(bool(y));
    graph.add_output(*y, "y");
    const std::vector<Tensor> inputs = inputs_of(graph, 1);
    for (test::Job& job : test::jobs_of(name, std::move(graph), inputs, device, 1))
      jobs.push_back(std::move(job));
  };
  add("zero point", {33, 24}, {24, 40}, op::MatMul{false, false, -5});
  add("convolution", {2, 4, 7, 6}, {32, 4, 3, 3}, op::Conv{{1, 1}, {1, 1}, {1, 1, 1, 1}, 1, 3});
  add("groups", {2, 8, 7, 6}, {64, 4, 3, 3}, op::Conv{{1, 1}, {1, 1}, {1, 1, 1, 1}, 2, 3});
  CHECK(std::ranges::count_if(jobs, [](const test::Job& job) {
          return print(job.kernel).find("by mma.m16n8k32.s8") != std::string::npos;
        }) == 4);
  run_jobs(jobs, device);
  for (const char* chip : {"80", "90a"})
    CHECK(passes_ptxas(std::span(&plain, 1), chip)
              .find("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32") != std::string::npos);
}

TEST_CASE("threads that multiply together find their operands in different banks") {
  const Target device = cuda_target().main_device();
  int instructions = 0;
  for (const test::Job& job : kernels_of_cases(kTiled, device))
    for (const BankAccess& access : bank_accesses(job.kernel, device)) {
      if (access.stage != "xf" && access.stage != "wf") continue;
      CAPTURE(job.name);
      CAPTURE(access.stage);
      CHECK(access.turns == 1);
      ++instructions;
    }
  CHECK(instructions >= 14);
}

TEST_CASE("threads that multiply attention together find their operands in different banks") {
  const Target device = cuda_target().main_device();
  int instructions = 0;
  for (const test::Job& job : kernels_of_cases(kAttention, device))
    for (const BankAccess& access : bank_accesses(job.kernel, device)) {
      const bool operand = access.stage == "qf" || access.stage == "kf" || access.stage == "pf" ||
                           access.stage == "vf";
      if (!operand) continue;
      CAPTURE(job.name);
      CAPTURE(access.stage);
      CAPTURE(access.buffer);
      CHECK(access.turns == 1);
      ++instructions;
    }
  CHECK(instructions >= 25);
}

TEST_CASE("kernels of random graphs in the emulator equal the interpreter") {
  const Target device = emulated().main_device();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    run_jobs(test::jobs_of("seed " + std::to_string(seed), std::move(graph), inputs, device, 1),
             device);
  }
}

TEST_CASE("kernels of operators pass ptxas, with no spill and no note") {
  for (const char* chip : {"80", "90a"}) passes_ptxas(kCases, chip);
}

TEST_CASE("tiles of a block pass ptxas, with no spill and no note") {
  for (const char* chip : {"80", "90a"}) {
    const std::string ptx = passes_ptxas(kTiled, chip);
    for (const char* instruction : {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                                    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                                    "cvt.rna.tf32.f32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                    "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
                                    "cp.async.ca.shared.global", "cp.async.wait_group"})
      CHECK(ptx.find(instruction) != std::string::npos);
  }
}

TEST_CASE("attention in blocks passes ptxas, with no spill and no note") {
  for (const char* chip : {"75", "80", "86", "89", "90a"}) {
    const std::string ptx = passes_ptxas(kAttention, chip);
    const bool turing = std::string(chip) == "75";
    CHECK(ptx.find(turing
                       ? "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                       : "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") != std::string::npos);
    CHECK((ptx.find("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") != std::string::npos) ==
          !turing);
  }
}

TEST_CASE("rows as long as an instruction's lie side by side, and are loaded like others") {
  const Case shallow = {"shallow", "%x: f16[64, 8] = input\n%w: f16[8, 64] = input",
                        "%y: f16[64, 64] = matmul(%x, %w)"};
  CHECK(
      passes_ptxas(std::span(&shallow, 1), "75").find("ldmatrix.sync.aligned.m8n8.x2.shared.b16") !=
      std::string::npos);
}

TEST_CASE("threads that meet share memory") {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @meet(x: in f32[3, 32], y: out f32[3, 32]) {\n  temp s: f32[32] shared per b\n  for "
      "b in 3 bind block.x {\n"
      "    for t in 32 bind thread.x { s: s[t] = x[b, t] * 2.0 }\n    for u in 32 bind thread.x { "
      "y: y[b, u] = s[31 - u] }\n  }\n}\n");
  if (!kernel) FAIL(error_text(kernel.takeError()));
  REQUIRE(error_text(verify(*kernel)) == "");
  test::Job job{
      "meet", *kernel, {}, {std::vector<std::byte>(384), std::vector<std::byte>(384)}, {}};
  for (int i = 0; i < 96; ++i)
    reinterpret_cast<float*>(job.arguments[0].data())[i] = static_cast<float>(i);
  job.expected = job.arguments;
  for (int i = 0; i < 96; ++i)
    reinterpret_cast<float*>(job.expected[1].data())[i] = static_cast<float>(
        2 * (i / 32 * 32 + 31 - i % 32));
  const test::FakeCounts before = test::FakeCuda::get().counts();
  run_jobs({job}, emulated().main_device());
  CHECK(test::FakeCuda::get().counts().barriers - before.barriers == 96);
  const std::string ptx = code_of({job}, cuda_target().main_device(), {"sm_80", "ptx80"}).bytes;
  CHECK(ptx.find("st.shared") != std::string::npos);
  CHECK(ptx.find("bar.sync") != std::string::npos);
}

TEST_CASE("random graphs run whole on the fake driver, and nothing is left") {
  const test::FakeCounts before = test::FakeCuda::get().counts();
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Graph graph = test::random_graph(seed);
    const std::vector<Tensor> inputs = test::random_inputs(graph, seed);
    Expected<std::vector<Tensor>> expected = evaluate(graph, inputs);
    REQUIRE(bool(expected));
    const std::vector<Tensor> got = test::run_compiled(graph, inputs, *expected, emulated(), 1);
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(test::relative_difference((*expected)[i], got[i]) < 1e-4);
  }
  const test::FakeCounts after = test::FakeCuda::get().counts();
  CHECK(after.launches > before.launches);
  CHECK(after.same_objects(before));
  CHECK(test::FakeCuda::get().breaches() == "");
}

TEST_CASE("the digits model runs whole on the fake driver") {
  test::FakeCuda::get();
  Expected<Model> model = import_onnx(std::string(TW_SOURCE_DIR) + "/examples/digits/digits.onnx");
  if (!model) FAIL(error_text(model.takeError()));
  const std::vector<Tensor> inputs = inputs_of(model->graph, 1);
  Expected<std::vector<Tensor>> expected = evaluate(model->graph, inputs);
  REQUIRE(bool(expected));
  const std::vector<Tensor> device = test::run_compiled(model->graph, inputs, *expected, emulated(),
                                                        1);
  Target processor = emulated();
  processor.devices.clear();
  const std::vector<Tensor> host = test::run_compiled(model->graph, inputs, *expected, processor,
                                                      1);
  REQUIRE(device.size() == host.size());
  for (size_t i = 0; i < host.size(); ++i) {
    CHECK(test::relative_difference((*expected)[i], device[i]) < 1e-4);
    CHECK(test::relative_difference(host[i], device[i]) < 1e-4);
  }
}

TEST_CASE("what does not run is said in words") {
  test::FakeCuda::get();
  CHECK(said_by(emulated(), "80") == "");
  CHECK(said_by(emulated(), "86") == "");
  CHECK(
      said_by(emulated(), "75")
          .find(
              "device gpu: the library has no code for this GPU's compute capability: error 75") !=
      std::string::npos);
  CHECK(
      said_by(emulated(), "90")
          .find(
              "device gpu: the kernels do not load: error 200 (device kernel image is invalid)") !=
      std::string::npos);
}

TEST_CASE("ptxas' report") {
  const std::string head =
      "ptxas info    : Compiling entry function 'k1' for 'sm_80'\nptxas info    : Function "
      "properties for k1\n";
  auto good = cuda::read_ptxas_report(
      head +
      "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill "
      "loads\nptxas info    : Used 22 registers, 384 bytes cmem[0]\n");
  REQUIRE(bool(good));
  CHECK(good->at("k1").registers == 22);
  CHECK(good->at("k1").stack_bytes == 16);
  auto spills = cuda::read_ptxas_report(
      head + "    24 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads\n");
  REQUIRE_FALSE(spills);
  CHECK(error_text(spills.takeError()).find("'k1' spills registers: 32 bytes") !=
        std::string::npos);
  auto note = cuda::read_ptxas_report(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized\n");
  REQUIRE_FALSE(note);
  CHECK(error_text(note.takeError()).find("C7510") != std::string::npos);
}

TEST_CASE("a device needs a chip and a PTX level") {
  for (const auto& [features, words] :
       {std::pair{std::vector<std::string>{"sm_80"}, "needs a chip and a PTX level"},
        {std::vector<std::string>{"sm_80", "ptx80", "fp64"}, "unknown feature 'fp64'"}}) {
    Target device = cuda_target().main_device();
    device.features = features;
    auto backend = make_device_backend(device);
    REQUIRE_FALSE(backend);
    CHECK(error_text(backend.takeError()).find(words) != std::string::npos);
  }
}
