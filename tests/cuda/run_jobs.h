// For tests: kernels as code for the emulator or a chip, and their runs in the emulator.
#pragma once
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "tests/cuda/fake.h"
#include "tests/opencl/jobs.h"

namespace tw::test {

inline cuda::CudaCode code_of(const std::vector<Job>& jobs, const Target& device,
                              const cuda::CudaForm& form) {
  std::vector<const Kernel*> kernels;
  for (const Job& job : jobs) kernels.push_back(&job.kernel);
  Expected<cuda::CudaCode> code = cuda::cuda_code(kernels, device, form);
  if (!code) FAIL(error_text(code.takeError()));
  return std::move(*code);
}

// Their outputs are compared with what is expected.
inline void run_jobs(const std::vector<Job>& jobs, const Target& device) {
  const cuda::CudaCode code = code_of(jobs, device, {});
  FakeCuda& fake = FakeCuda::get();
  REQUIRE(fake.load(code.bytes) == "");
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::vector<std::byte>> buffers = jobs[i].arguments;
    const std::string problem = fake.run(jobs[i].kernel, code.launches[i], buffers,
                                         jobs[i].symbols);
    const std::string wrong = problem.empty() ? difference(jobs[i], buffers) : problem;
    if (!wrong.empty()) FAIL_CHECK(jobs[i].name << ": " << wrong << "\n" << print(jobs[i].kernel));
  }
}

}  // namespace tw::test
