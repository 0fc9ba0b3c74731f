#include "tests/onnx/run_case.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/compile.h"
#include "cli/model_run.h"
#include "packager/loaded_model.h"

namespace tw::onnx_suite {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool close(double got, double want, double rtol, double atol) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

// Sequences and optionals are the tensors that they hold, as in the interface of the compiled model.
Expected<std::vector<Tensor>> stored_tensors(const std::string& folder, const char* stem) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::string& path) -> Error {
    TW_ASSIGN(Tensor tensor, read_tensor_proto(path + ".pb"));
    tensors.push_back(std::move(tensor));
    return Error::success();
  };
  for (size_t i = 0;; ++i) {
    const std::string path = folder + "/" + stem + "_" + std::to_string(i);
    if (!std::filesystem::exists(path + ".pb")) return tensors;
    if (std::ifstream list(path + ".count"); list) {
      int count = 0;
      list >> count;
      for (int k = 0; k < count; ++k) TW_TRY(add(path + "_" + std::to_string(k)));
    } else {
      TW_TRY(add(path));
    }
  }
}

Error run_set(const tw_api& api, const std::string& folder, Mode mode, const Case& c) {
  Inputs inputs;
  if (mode != Mode::constant) {
    TW_ASSIGN(inputs.tensors, stored_tensors(folder, "input"));
  }
  const std::vector<TensorSpec> specs = input_specs(api);
  if (specs.size() != inputs.tensors.size())
    return make_error(DiagCode::mismatch, "{0} inputs, the case has {1}", specs.size(), inputs.tensors.size());
  for (size_t i = 0; i < specs.size(); ++i) TW_TRY(bind_shape(specs[i], inputs.tensors[i], specs[i].name, inputs.symbols));
  TW_ASSIGN(ModelRun run, ModelRun::create(api, std::move(inputs), 1));
  TW_TRY(run.run());
  TW_ASSIGN(const std::vector<Tensor> want, stored_tensors(folder, "output"));
  if (run.outputs().size() != want.size()) return make_error(DiagCode::mismatch, "{0} outputs, the case has {1}", run.outputs().size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (Error error = compare_tensors(run.outputs()[i], want[i], c.rtol, c.atol))
      return make_error(DiagCode::mismatch, "output {0}: {1}", i, error_text(std::move(error)));
  return Error::success();
}

}  // namespace

Error compare_tensors(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype != want.dtype) return make_error(DiagCode::mismatch, "dtype {0}, expected {1}", dtype_name(got.dtype), dtype_name(want.dtype));
  if (got.shape != want.shape) return make_error(DiagCode::mismatch, "shape {0}, expected {1}", shape_text(got.shape), shape_text(want.shape));
  if (want.dtype == DType::bf16) rtol = std::max(rtol, 0x1p-6);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.size(); ++i) {
    const bool same = got.dtype == DType::i64 || got.dtype == DType::u64
                          ? got.int_at(i) == want.int_at(i) || close(got.at(i), want.at(i), rtol, atol)
                          : close(got.at(i), want.at(i), rtol, atol);
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong == 0) return Error::success();
  return make_error(DiagCode::mismatch, "{0} of {1} elements differ, the first at {2}: {3}, expected {4}", wrong, want.size(), first,
                    llvm::formatv("{0:f9}", got.at(first)).str(), llvm::formatv("{0:f9}", want.at(first)).str());
}

CaseRunner::CaseRunner(std::string folder) : folder_(std::move(folder)), target_(host_target()) {}

Error CaseRunner::run(const Case& c, Mode mode, CaseTimes& times) {
  const std::string stem = folder_ + "/case-" + std::to_string(getpid()) + "-" + std::to_string(count_++);
  CompileOptions options;
  options.model = c.model(mode);
  options.output = stem + ".so";
  options.header = stem + ".h";
  options.name = "onnx_case";
  options.jobs = 1;
  if (mode != Mode::constant) options.dims = c.dims;
  const double begin = now();
  auto report = compile_model(options, target_);
  times.compile = now() - begin;
  if (!report) return report.takeError();
  for (const StageReport& stage : report->stages) times.stages += llvm::formatv(" {0} {1:f1}", stage.name, stage.seconds * 1000).str();
  auto loaded = LoadedModel::open(options.output);
  unlink(options.output.c_str());
  unlink(options.header.c_str());
  if (!loaded) return loaded.takeError();
  times.load = now() - begin - times.compile;
  for (int n = 0;; ++n) {
    const std::string set = c.folder + "/test_data_set_" + std::to_string(n);
    // Constants are the inputs of the first set.
    if (!std::filesystem::exists(set) || (n > 0 && mode == Mode::constant)) break;
    TW_TRY(run_set(loaded->api(), set, mode, c));
  }
  times.run = now() - begin - times.compile - times.load;
  return Error::success();
}

}  // namespace tw::onnx_suite
