// For tests: kernels as code for the emulator or a chip, and their runs in the emulator.
#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <iostream>

#include "backends/cuda/cuda.h"
#include "backends/cuda/ptxas.h"
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

// Runs the jobs, and compares their outputs with the expected ones.
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

inline constexpr const char* kChips[] = {"75", "80", "86", "89", "90a", "120"};
inline Target chip(const std::string& name) {
  return cuda_target("nvidia-sm" + name).main_device();
}

// Checks that ptxas takes the kernels for each chip, with no spill and no note.
inline void pass_ptxas_of_all_chips(
    const std::function<std::vector<Job>(const Target& device)>& jobs) {
  const std::string program = cuda::find_ptxas();
  if (program.empty()) {
    std::cout << "SKIPPED: no ptxas on this machine (scripts/setup.sh cuda)" << std::endl;
    return;
  }
  for (const char* name : kChips) {
    CAPTURE(name);
    const Target device = chip(name);
    cuda::CudaForm form;
    for (const std::string& feature : device.features)
      (feature.starts_with("sm_") ? form.chip : form.level) = feature;
    const cuda::CudaCode code = code_of(jobs(device), device, form);
    Expected<cuda::PtxasResult> result = cuda::run_ptxas(program, code.bytes, form.chip);
    if (!result) FAIL(error_text(result.takeError()));
    CHECK(result->functions.size() >= code.launches.size());
  }
}

}  // namespace tw::test
