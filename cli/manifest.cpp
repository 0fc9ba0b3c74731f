#include "cli/manifest.h"

#include <nlohmann/json.hpp>

#include "support/hash.h"

namespace tw {
namespace {
using Json = nlohmann::ordered_json;

Json tensor(const TensorSpec& spec) {
  Json dims = Json::array();
  for (const Expr& dim : spec.dims) {
    if (auto extent = as_const(dim)) dims.push_back(*extent);
    else dims.push_back(to_string(dim));
  }
  return {{"name", spec.name}, {"dtype", dtype_name(spec.dtype)}, {"dims", dims}};
}
}  // namespace

std::string make_manifest(const Model& model, const Program& program, const Target& target, const std::string& symbol, const CompileReport& report) {
  Json j;
  j["tilewright"] = "0.1.0";
  j["abi"] = 1;
  j["name"] = symbol;
  j["model"] = {{"sha256", model.sha256}, {"bytes", model.file_bytes}, {"opset", model.opset}, {"producer", model.producer}};
  j["target"] = {{"name", target.name}, {"triple", target.triple}, {"cpu", target.cpu}, {"codegen", codegen_hash(target)}};
  j["symbols"] = program.symbols;
  j["inputs"] = Json::array();
  for (const TensorSpec& spec : program.inputs) j["inputs"].push_back(tensor(spec));
  j["outputs"] = Json::array();
  for (const TensorSpec& spec : program.outputs) j["outputs"].push_back(tensor(spec));
  j["memory"] = {{"arena", to_string(program.arena_bytes)}, {"naive", program.naive_arena_bytes}, {"weights", program.weight_bytes}};
  j["kernels"] = Json::array();
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    Json kernel = {{"name", program.kernels[i].name}, {"hash", kernel_hash(program.kernels[i]).substr(0, 16)}};
    if (i < report.kernel_reports.size()) {
      kernel["code_bytes"] = report.kernel_reports[i].code_bytes;
      kernel["spills"] = report.kernel_reports[i].spills;
    }
    j["kernels"].push_back(std::move(kernel));
  }
  j["calls"] = Json::array();
  for (const KernelCall& call : program.calls) j["calls"].push_back({{"kernel", program.kernels[static_cast<size_t>(call.kernel)].name}, {"nodes", call.name}});
  return j.dump(1);
}

}  // namespace tw
