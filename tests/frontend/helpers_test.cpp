#include "tests/frontend/helpers.h"

#include <doctest/doctest.h>
#include <onnx/defs/parser.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tw::test {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tw_frontend_XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

TempDir::~TempDir() { std::filesystem::remove_all(folder_); }

std::string onnx_bytes(const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  REQUIRE_MESSAGE(status.IsOK(), status.ErrorMessage());
  return model.SerializeAsString();
}

std::string graph_bytes(const std::string& graph, int opset) {
  return onnx_bytes("<ir_version: 8, opset_import: [\"\": " + std::to_string(opset) + "]> " +
                    graph);
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Expected<Model> import_bytes(const std::string& bytes, const ImportOptions& options) {
  const TempDir folder;
  write_file(folder.path("m.onnx"), bytes);
  return import_onnx(folder.path("m.onnx"), options);
}

Expected<std::vector<Gap>> gaps_of(const std::string& bytes, const ImportOptions& options) {
  const TempDir folder;
  write_file(folder.path("m.onnx"), bytes);
  return gap_report(folder.path("m.onnx"), options);
}

std::string error_of(const std::string& bytes, const ImportOptions& options) {
  Expected<Model> model = import_bytes(bytes, options);
  return model ? "" : error_text(model.takeError());
}

Tensor floats(std::vector<int64_t> shape, std::vector<float> values) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape));
  REQUIRE(static_cast<size_t>(tensor.size()) == values.size());
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

Tensor ints(std::vector<int64_t> shape, std::vector<int64_t> values) {
  Tensor tensor = Tensor::zeros(DType::i64, std::move(shape));
  REQUIRE(static_cast<size_t>(tensor.size()) == values.size());
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}

std::vector<std::vector<double>> run_model(const std::string& bytes,
                                           const std::vector<Tensor>& inputs) {
  Expected<Model> model = import_bytes(bytes);
  if (!model) FAIL(error_text(model.takeError()));
  if (Error error = verify(model->graph)) FAIL(error_text(std::move(error)));
  Expected<std::vector<Tensor>> outputs = evaluate(model->graph, inputs);
  if (!outputs) FAIL(error_text(outputs.takeError()));
  std::vector<std::vector<double>> values;
  for (const Tensor& tensor : *outputs) {
    values.emplace_back();
    for (int64_t i = 0; i < tensor.size(); ++i) values.back().push_back(tensor.at(i));
  }
  return values;
}

std::vector<double> run_graph(const std::string& graph, const std::vector<Tensor>& inputs,
                              int opset) {
  return run_model(graph_bytes(graph, opset), inputs).front();
}

}  // namespace tw::test
