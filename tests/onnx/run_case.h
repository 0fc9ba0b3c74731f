// One case in one mode: compiled for this machine in this process, loaded, run on every data set,
// compared.
#pragma once
#include "ir/graph/tensor.h"
#include "ir/target.h"
#include "tests/onnx/cases.h"

namespace tw::onnx_suite {

// Times of the last case, in seconds
struct CaseTimes {
  double compile = 0, load = 0, run = 0;
  std::string stages;
};

class CaseRunner {
 public:
  explicit CaseRunner(std::string folder);  // the folder of the artifacts
  // Succeeds if each output of each data set equals the stored one, by the rule of the ONNX backend
  // runner.
  Error run(const Case& c, Mode mode, CaseTimes& times);

 private:
  std::string folder_;
  Target target_;
  int count_ = 0;  // dlopen takes libraries of equal names for one
};

// Succeeds if |got - want| <= atol + rtol * |want| for all elements, with NaN equal to NaN, and
// dtype and shape are the same. For bf16, rtol is two units of its last place at least.
Error compare_tensors(const Tensor& got, const Tensor& want, double rtol, double atol);

}  // namespace tw::onnx_suite
