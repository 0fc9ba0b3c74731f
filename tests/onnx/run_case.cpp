#include "tests/onnx/run_case.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "driver/compile/compile.h"
#include "driver/run/model_run.h"
#include "packager/loaded_model.h"

namespace tw::onnx_suite {
namespace {

constexpr int64_t kMostOfEmpty = 1024;  // largest size of a free dim that may be 0

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool close(double got, double want, double rtol, double atol) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

// Reads a case's tensors. Sequences and optionals give the tensors that they hold, as in the
// interface of the compiled model.
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

// Adds the items of a list that a run returned as rows and sizes (docs/reference/c-interface.md). A
// row holds an item of its sizes, which end with -1.
void add_items(const Tensor& rows, const Tensor& sizes, std::vector<Tensor>& tensors) {
  const auto rank = static_cast<size_t>(sizes.shape[1]);
  const int64_t row = rows.shape[0] == 0 ? 0 : rows.size() / rows.shape[0],
                width = static_cast<int64_t>(rows.bytes.size()) / std::max<int64_t>(rows.size(), 1);
  for (int64_t i = 0; i < sizes.shape[0]; ++i) {
    std::vector<int64_t> shape;
    for (size_t axis = 0;
         axis < rank && sizes.int_at(i * sizes.shape[1] + static_cast<int64_t>(axis)) >= 0; ++axis)
      shape.push_back(sizes.int_at(i * sizes.shape[1] + static_cast<int64_t>(axis)));
    Tensor item = Tensor::zeros(rows.dtype, shape);
    for (int64_t k = 0; k < item.size(); ++k) {
      int64_t from = 0, rest = k, stride = 1;
      for (size_t axis = rank; axis-- > 0;) {
        const int64_t extent = axis < shape.size() ? shape[axis] : 1;
        from += rest % extent * stride;
        rest /= extent;
        stride *= rows.shape[axis + 1];
      }
      std::copy_n(rows.bytes.begin() + (i * row + from) * width, width,
                  item.bytes.begin() + k * width);
    }
    tensors.push_back(std::move(item));
  }
}

// Returns the outputs, with lists of data-dependent length replaced by the tensors that they hold.
std::vector<Tensor> held_tensors(const tw_api& api, const std::vector<Tensor>& outputs) {
  std::vector<Tensor> tensors;
  const auto name_of = [&](size_t i) { return std::string_view(api.outputs[i].name); };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool optional = name_of(i).ends_with("_there"),
               there = !optional || outputs[i].int_at(0) != 0;
    if (optional) ++i;
    const bool rows = name_of(i).ends_with("_rows");
    if (there && rows) add_items(outputs[i], outputs[i + 1], tensors);
    if (there && !rows) tensors.push_back(outputs[i]);
    i += rows;
  }
  return tensors;
}

Error run_set(const tw_api& api, const std::string& folder, Mode mode, const Case& c) {
  Inputs inputs;
  if (mode != Mode::constant) { TW_ASSIGN(inputs.tensors, stored_tensors(folder, "input")); }
  const std::vector<TensorSpec> specs = input_specs(api);
  if (specs.size() != inputs.tensors.size())
    return make_error(DiagCode::mismatch, "{0} inputs, the case has {1}", specs.size(),
                      inputs.tensors.size());
  for (size_t i = 0; i < specs.size(); ++i)
    TW_TRY(bind_shape(specs[i], inputs.tensors[i], specs[i].name, inputs.symbols));
  TW_ASSIGN(ModelRun run, ModelRun::create(api, std::move(inputs), 1));
  TW_TRY(run.run());
  TW_ASSIGN(const std::vector<Tensor> want, stored_tensors(folder, "output"));
  const std::vector<Tensor> got = held_tensors(api, run.outputs());
  if (got.size() != want.size())
    return make_error(DiagCode::mismatch, "{0} outputs, the case has {1}", got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (Error error = compare_tensors(got[i], want[i], c.rtol, c.atol))
      return make_error(DiagCode::mismatch, "output {0}: {1}", i, error_text(std::move(error)));
  return Error::success();
}

}  // namespace

Error compare_tensors(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype != want.dtype)
    return make_error(DiagCode::mismatch, "dtype {0}, expected {1}", dtype_name(got.dtype),
                      dtype_name(want.dtype));
  if (got.shape != want.shape)
    return make_error(DiagCode::mismatch, "shape {0}, expected {1}", shape_text(got.shape),
                      shape_text(want.shape));
  if (want.dtype == DType::bf16) rtol = std::max(rtol, 0x1p-6);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.size(); ++i) {
    const bool same = got.dtype == DType::string ? got.int_at(i) == want.int_at(i)
                      : got.dtype == DType::i64 || got.dtype == DType::u64
                          ? got.int_at(i) == want.int_at(i) ||
                                close(got.at(i), want.at(i), rtol, atol)
                          : close(got.at(i), want.at(i), rtol, atol);
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong == 0) return Error::success();
  return make_error(DiagCode::mismatch,
                    "{0} of {1} elements differ, the first at {2}: {3}, expected {4}", wrong,
                    want.size(), first, llvm::formatv("{0:f9}", got.at(first)).str(),
                    llvm::formatv("{0:f9}", want.at(first)).str());
}

CaseRunner::CaseRunner(std::string folder) : folder_(std::move(folder)), target_(host_target()) {}

Error CaseRunner::run(const Case& c, Mode mode, CaseTimes& times) {
  const std::string stem = folder_ + "/case-" + std::to_string(getpid()) + "-" +
                           std::to_string(count_++);
  CompileOptions options;
  options.model = c.model(mode);
  options.output = stem + ".so";
  options.header = stem + ".h";
  options.name = "onnx_case";
  options.jobs = 1;
  if (mode != Mode::constant) options.dims = c.dims;
  if (mode == Mode::fixed)
    for (const std::string& name : c.empty) options.limits[name] = {0, kMostOfEmpty};
  const double begin = now();
  auto report = compile_model(options, target_);
  times.compile = now() - begin;
  if (!report) return report.takeError();
  for (const StageReport& stage : report->stages)
    times.stages += llvm::formatv(" {0} {1:f1}", stage.name, stage.seconds * 1000).str();
  auto loaded = LoadedModel::open(options.output);
  unlink(options.output.c_str());
  unlink(options.header.c_str());
  if (!loaded) return loaded.takeError();
  times.load = now() - begin - times.compile;
  for (int n = 0;; ++n) {
    const std::string set = c.folder + "/test_data_set_" + std::to_string(n);
    // The constants are the inputs of the first set.
    if (!std::filesystem::exists(set) || (n > 0 && mode == Mode::constant)) break;
    TW_TRY(run_set(loaded->api(), set, mode, c));
  }
  times.run = now() - begin - times.compile - times.load;
  return Error::success();
}

}  // namespace tw::onnx_suite
