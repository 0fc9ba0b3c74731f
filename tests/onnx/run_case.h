// One case in one way: compiled for this machine in this process, loaded, run on every data set,
// compared.
#pragma once
#include "ir/graph/tensor.h"
#include "ir/target.h"
#include "tests/onnx/cases.h"

namespace tw::onnx_suite {

// Where the time of the last case went, in seconds.
struct CaseTimes {
  double compile = 0, load = 0, run = 0;
  std::string stages;
};

class CaseRunner {
 public:
  explicit CaseRunner(std::string folder);  // for artifacts, which are gone after their run
  // Success when every output of every data set is what is stored, by the rule of the ONNX backend
  // runner.
  Error run(const Case& c, Mode mode, CaseTimes& times);

 private:
  std::string folder_;
  Target target_;
  int count_ = 0;  // dlopen takes a library of the same name for the same
};

// |got - want| <= atol + rtol * |want|, NaN equal to NaN; same dtype, same shape. bf16 has two
// units of its last place at least.
Error compare_tensors(const Tensor& got, const Tensor& want, double rtol, double atol);

}  // namespace tw::onnx_suite
