// The measuring process must survive every candidate: good, wrong, crashing or endless.
#include <doctest/doctest.h>
#include <llvm/TargetParser/Host.h>

#include "autotune/measure/local.h"
#include "autotune/measure/sampler.h"
#include "autotune/measure/session.h"
#include "backends/backend.h"
#include "driver/compile/candidate.h"
#include "ir/target.h"

using namespace tw;

namespace {

const std::string kParameters = "(x: in f32[1024], w: const f32[1024], y: out f32[1024])";

Kernel kernel_of(const std::string& body, const std::string& parameters = kParameters) {
  Expected<Kernel> kernel = parse_kernel("kernel @test" + parameters + " { " + body + " }");
  REQUIRE_MESSAGE(bool(kernel), error_text(kernel.takeError()));
  return *kernel;
}

Kernel good() { return kernel_of("for i in 1024 { y: y[i] = x[i] + w[i] }"); }
Kernel also_good() {
  return kernel_of("for i in 512 { for j in 2 { y: y[i * 2 + j] = w[i * 2 + j] + x[i * 2 + j] } }");
}
Kernel wrong() { return kernel_of("for i in 1024 { y: y[i] = x[i] - w[i] }"); }
// Stores far outside y.
Kernel crashing() { return kernel_of("for i in 1024 { y: y[i + 100000000000] = x[i] }"); }
// Runs for an hour at least.
Kernel endless() {
  return kernel_of("for i in 1024 { for k in 1099511627776 reduce { y: y[i] += x[i] init 0 } }");
}

std::shared_ptr<const RunKernel> shared(const Kernel& kernel) {
  return std::make_shared<const RunKernel>(take_out_constant_stages(kernel));
}

Target this_target() {
  return baseline_target(arch_from_triple(llvm::sys::getProcessTriple()).value_or(Arch::x86_64));
}

std::unique_ptr<CandidateBuilder> made(int threads = 1) {
  Expected<std::unique_ptr<CandidateBuilder>> made = candidate_builder(this_target(), threads);
  REQUIRE_MESSAGE(bool(made), error_text(made.takeError()));
  return std::move(*made);
}

// Compiles without the check of bounds, as the process must survive what gets past it.
class Unchecked : public CandidateBuilder {
 public:
  Unchecked() : CandidateBuilder(made()->symbol, false), linker_(made()) {
    Expected<std::unique_ptr<Backend>> backend = make_backend(this_target());
    REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
    backend_ = std::move(*backend);
  }
  Expected<CandidateObjects> compile(const RunKernel& run) const override {
    Kernel named = run.kernel;
    named.name = symbol;
    TW_ASSIGN(std::string code, backend_->compile_kernel(named, false));
    return CandidateObjects{{symbol, std::move(code)}};
  }
  Expected<std::string> link(const CandidateObjects& objects) const override {
    return linker_->link(objects);
  }

 private:
  std::unique_ptr<CandidateBuilder> linker_;
  std::unique_ptr<Backend> backend_;
};

const CandidateBuilder& builder() {
  static const Unchecked build;
  return build;
}

class NoCompiler : public Unchecked {
  Expected<CandidateObjects> compile(const RunKernel&) const override {
    return make_error(DiagCode::unsupported, "two\nlines");
  }
};
class NoLinker : public Unchecked {
  Expected<std::string> link(const CandidateObjects&) const override {
    return make_error(DiagCode::io, "no linker");
  }
};

std::unique_ptr<LocalTransport> transport() {
  Expected<std::unique_ptr<LocalTransport>> made = LocalTransport::create();
  REQUIRE_MESSAGE(bool(made), error_text(made.takeError()));
  return std::move(*made);
}

MeasureJob job_for(const Kernel& kernel, const Reference& reference = {},
                   const CandidateBuilder& build = builder()) {
  const RunKernel run = take_out_constant_stages(kernel);
  Expected<CandidateObjects> objects = build.compile(run);
  REQUIRE_MESSAGE(bool(objects), error_text(objects.takeError()));
  Expected<MeasureJob> job = job_of(run, reference);
  REQUIRE_MESSAGE(bool(job), error_text(job.takeError()));
  Expected<std::string> library = build.link(*objects);
  REQUIRE_MESSAGE(bool(library), error_text(library.takeError()));
  job->library = *library;
  job->symbol = build.symbol;
  job->expected = reference.outputs;
  return *job;
}

Reference interpreted(const Kernel& kernel) {
  Expected<Reference> reference = reference_outputs(kernel, Reference{});
  REQUIRE_MESSAGE(bool(reference), error_text(reference.takeError()));
  return *reference;
}

MeasureResult run_one(LocalTransport& local, const MeasureJob& job) {
  return local.run({&job, 1}).front();
}

void check_times(const MeasureResult& result) {
  CHECK_MESSAGE(result.status == Status::ok, result.error);
  CHECK(result.seconds.size() >= 1);
  for (const double s : result.seconds) CHECK(s > 0);
  CHECK(!result.device.empty());
}

class Recording : public Transport {  // passes jobs on and keeps a copy
 public:
  explicit Recording(Transport& to) : to_(to) {}
  std::vector<MeasureResult> run(std::span<const MeasureJob> list) override {
    jobs.insert(jobs.end(), list.begin(), list.end());
    return to_.run(list);
  }
  std::vector<MeasureJob> jobs;

 private:
  Transport& to_;
};

}  // namespace

TEST_CASE("outputs may differ by a step of the coarsest float that a kernel rounds to") {
  CHECK(tolerance_of(good()) == 1e-4);
  CHECK(tolerance_of(kernel_of("for i in 1024 { y: y[i] = f32(bf16(x[i] + w[i])) }")) ==
        1e-4 + 0x1p-7);
  CHECK(tolerance_of(kernel_of("for i in 1024 { y: y[i] = f32(f16(x[i] + w[i])) }")) ==
        1e-4 + 0x1p-10);
}

TEST_CASE("measure: a good candidate has times and the outputs of the interpreter") {
  const auto local = transport();
  MeasureJob job = job_for(good(), interpreted(good()));
  job.limits.most_samples = 7;
  job.limits.relative_interval = 0;
  const MeasureResult result = run_one(*local, job);
  check_times(result);
  CHECK(result.seconds.size() == 7);
  CHECK(result.outputs.empty());
  CHECK(local->workers_started() == 1);
}

TEST_CASE("measure: without samples a candidate runs for its outputs only") {
  const auto local = transport();
  MeasureJob job = job_for(good());
  job.limits.most_samples = 0;
  job.return_outputs = true;
  const MeasureResult result = run_one(*local, job);
  CHECK(result.status == Status::ok);
  CHECK(result.seconds.empty());
  CHECK(result.outputs.size() == 4096);
}

TEST_CASE("measure: a wrong candidate is found out before it is timed") {
  const auto local = transport();
  const MeasureResult result = run_one(*local, job_for(wrong(), interpreted(good())));
  CHECK(result.status == Status::wrong_result);
  CHECK(result.seconds.empty());
  CHECK(result.error.find("output 0: element ") == 0);
}

TEST_CASE("measure: crashes and endless loops end their process and nothing else") {
  const auto local = transport();
  const Reference reference = interpreted(good());
  const MeasureResult crashed = run_one(*local, job_for(crashing(), reference));
  CHECK(crashed.status == Status::crashed);
  CHECK(crashed.error.find("SIGSEGV") == 0);
  CHECK(!crashed.device.empty());
  check_times(run_one(*local, job_for(good(), reference)));
  CHECK(local->workers_started() == 2);

  MeasureJob job = job_for(endless(), reference);
  job.limits.timeout = 0.1;
  const MeasureResult late = run_one(*local, job);
  CHECK(late.status == Status::timeout);
  CHECK(late.seconds.empty());
  check_times(run_one(*local, job_for(good(), reference)));
  CHECK(local->workers_started() == 3);
}

TEST_CASE(
    "measure: a process that has served others gets a second chance before its candidate is "
    "blamed") {
  const auto local = transport();
  check_times(run_one(*local, job_for(good())));
  CHECK(run_one(*local, job_for(crashing())).status == Status::crashed);
  CHECK(local->workers_started() == 2);
  check_times(run_one(*local, job_for(good())));
  CHECK(local->workers_started() == 3);
}

TEST_CASE("measure: inputs and constants cannot be written") {
  const auto local = transport();
  MeasureJob job = job_for(good());
  job.buffers[2].input = true;  // the library writes to it all the same
  CHECK(run_one(*local, job).status == Status::crashed);
  job.buffers[2].constant = true;
  CHECK(run_one(*local, job).status == Status::crashed);
}

TEST_CASE("measure: jobs that cannot be run are results too") {
  const auto local = transport();
  MeasureJob job = job_for(good());
  job.symbol = "nobody";
  CHECK(run_one(*local, job).status == Status::compile_error);
  job = job_for(good());
  job.library.resize(100);
  CHECK(run_one(*local, job).status == Status::compile_error);
  job = job_for(good());
  job.buffers[0].bytes = uint64_t{1} << 60;
  CHECK(run_one(*local, job).status == Status::illegal);
  job = job_for(good());
  job.workspace_bytes = uint64_t{1} << 60;
  CHECK(run_one(*local, job).status == Status::illegal);
  job = job_for(good());
  job.expected.resize(3);
  CHECK(run_one(*local, job).status == Status::illegal);
  check_times(run_one(*local, job_for(good())));
}

TEST_CASE("measure: a program that is no measuring process is an error") {
  LocalOptions options;
  options.program = "/bin/true";
  CHECK(!error_text(LocalTransport::create(options).takeError()).empty());
  options.program = "/no/such/program";
  CHECK(!error_text(LocalTransport::create(options).takeError()).empty());
}

TEST_CASE("measure: parallel loops on several threads, each pinned, compute the same") {
  Expected<std::unique_ptr<LocalTransport>> two = LocalTransport::create({.threads = 2});
  if (!two) {  // a machine of one core
    CHECK(error_text(two.takeError()).find("2 threads are to be measured") != std::string::npos);
    return;
  }
  const std::unique_ptr<CandidateBuilder> parallel = made(2);
  const Kernel kernel = kernel_of(
      "for i in 1024 parallel { for k in 4096 reduce { y: y[i] += x[i] * w[k] init 0 } }",
      "(x: in f32[1024], w: const f32[4096], y: out f32[1024])");
  Reference reference = interpreted(kernel);
  reference.threads = 2;
  MeasureJob job = job_for(kernel, reference, *parallel);
  for (const int threads : {1, 2}) {  // the library takes the number of threads from its caller
    job.threads = threads;
    check_times(run_one(**two, job));
  }
  job.threads = 3;
  const MeasureResult many = run_one(**two, job);
  CHECK(many.status == Status::illegal);
  CHECK(many.error.find("3 threads") != std::string::npos);
}

TEST_CASE("measurer: stopped, it gives the results that it has") {
  const auto local = transport();
  Measurer measurer(*local, builder(), {});
  std::vector<std::shared_ptr<const RunKernel>> kernels;
  for (const Kernel& kernel : {good(), also_good()}) kernels.push_back(shared(kernel));
  int asked = 0;
  // The measurer asks twice before compiling, and once before it times each candidate.
  const StopAsked before_the_second = [&] { return ++asked > 3; };
  CHECK(measurer.measure(kernels, {}, before_the_second).size() == 1);
  CHECK(measurer.measure(kernels, {}, [] { return true; }).empty());
  CHECK(measurer.measure(kernels, {}).size() == 2);
}

TEST_CASE("measurer: one result a kernel, the same code timed once, the best one checked") {
  const auto local = transport();
  Recording recording(*local);
  MeasurerOptions options;
  options.jobs = 2;
  Measurer measurer(recording, builder(), options);
  Expected<Reference> outputs = reference_outputs(*shared(good()), Reference{}, builder(), *local);
  REQUIRE_MESSAGE(bool(outputs), error_text(outputs.takeError()));
  const Reference reference = *outputs;
  CHECK(reference.outputs == interpreted(good()).outputs);

  Kernel renamed = good();
  renamed.name = "another";
  std::vector<std::shared_ptr<const RunKernel>> kernels;
  for (const Kernel& kernel : {good(), renamed, also_good(), crashing()})
    kernels.push_back(shared(kernel));
  const std::vector<MeasureResult> results = measurer.measure(kernels, reference);
  REQUIRE(results.size() == 4);
  check_times(results[0]);
  check_times(results[2]);
  CHECK(results[0].seconds == results[1].seconds);
  CHECK(results[3].status == Status::crashed);
  CHECK(measurer.counts().candidates == 4);
  CHECK(measurer.counts().timed == 3);
  CHECK(measurer.counts().same_code == 1);
  CHECK(measurer.counts().checked == 1);
  CHECK(recording.jobs.size() == 4);
  CHECK(recording.jobs[0].limits.best == 0);
  CHECK(recording.jobs[1].limits.best > 0);

  // Nothing is new, so nothing runs.
  CHECK(measurer.measure(kernels, reference)[2].seconds == results[2].seconds);
  CHECK(measurer.counts().timed == 3);
  CHECK(measurer.counts().checked == 1);
  CHECK(recording.jobs.size() == 4);
}

TEST_CASE("measurer: constants in other forms have the same contents") {
  Expected<Kernel> product = parse_kernel(
      "kernel @product(x: in f32[4, 6], w: const f32[6, 8], y: out f32[4, 8]) { temp c: f32[4, 8] "
      "for i in 4 { for j in 8 { for k in 6 reduce { "
      "c: c[i, j] += x[i, k] * w[k, j] init 0.0 } } } "
      "for a in 4 { for b in 8 { y: y[a, b] = c[a, b] } } }");
  REQUIRE_MESSAGE(bool(product), error_text(product.takeError()));
  std::vector<std::shared_ptr<const RunKernel>> kernels;
  for (const char* steps :
       {"", "pack c right -> p constant [j // 4, k, j % 4] pj pk pl",
        "pack c right -> p constant [j // 3, k, j % 3] pj pk pl\npad j 3 repeat"}) {
    Expected<Schedule> schedule = parse_schedule(std::string("schedule {\n") + steps + "\n}\n");
    REQUIRE_MESSAGE(bool(schedule), error_text(schedule.takeError()));
    Expected<RunKernel> run = apply_to_run(*product, *schedule);
    REQUIRE_MESSAGE(bool(run), error_text(run.takeError()));
    kernels.push_back(std::make_shared<const RunKernel>(std::move(*run)));
  }
  CHECK(kernels[1]->kernel.buffers[1].name == "p");
  const std::unique_ptr<CandidateBuilder> checked = made();
  const auto local = transport();
  const Reference reference = interpreted(*product);
  for (const auto& kernel : kernels) {  // each is the best of a measurer of its own, so compared
    Measurer measurer(*local, *checked, {});
    check_times(measurer.measure({&kernel, 1}, reference).front());
    CHECK(measurer.counts().checked == 1);
  }
}

TEST_CASE("measurer: a wrong candidate does not become the best") {
  const auto local = transport();
  Measurer measurer(*local, builder(), {});
  const std::vector one = {shared(wrong())};
  const std::vector<MeasureResult> results = measurer.measure(one, interpreted(good()));
  CHECK(results[0].status == Status::wrong_result);
  CHECK(results[0].seconds.empty());
  CHECK(measurer.best_seconds() > 1e300);
  CHECK(measurer.measure(one, interpreted(good()))[0].status == Status::wrong_result);
}

TEST_CASE(
    "measurer: when the fastest are wrong, twice the same code too, the best right one is found") {
  const auto local = transport();
  Measurer measurer(*local, builder(), {});
  const Kernel less = kernel_of("for i in 16 { y: y[i] = x[i] }");
  std::vector<std::shared_ptr<const RunKernel>> kernels;
  for (const Kernel& kernel : {less, less, good()}) kernels.push_back(shared(kernel));
  const std::vector<MeasureResult> results = measurer.measure(kernels, interpreted(good()));
  CHECK(results[0].status == Status::wrong_result);
  CHECK(results[1].status == Status::wrong_result);
  check_times(results[2]);
  CHECK(measurer.best_seconds() == median_of(results[2].seconds));
}

TEST_CASE("candidates: a kernel that leaves its buffers gets no code") {
  Expected<CandidateObjects> objects = made()->compile(*shared(crashing()));
  REQUIRE(!objects);
  CHECK(error_text(objects.takeError()).find("is not shown to lie in [0, 1024)") !=
        std::string::npos);
}

TEST_CASE("measurer: a kernel that does not compile is one result") {
  const auto local = transport();
  const NoCompiler failing;
  Measurer measurer(*local, failing, {});
  const std::vector one = {shared(good())};
  const MeasureResult result = measurer.measure(one, {}).front();
  CHECK(result.status == Status::compile_error);
  CHECK(result.error == "two lines");
  const NoLinker unlinked;
  CHECK(Measurer(*local, unlinked, {}).measure(one, {}).front().error == "no linker");
}
