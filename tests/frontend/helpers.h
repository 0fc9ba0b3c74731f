// Models for tests: written in ONNX's text form, stored in a temporary folder, imported, evaluated.
#pragma once
#include <string>
#include <vector>

#include "frontend/frontend.h"

namespace tw::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

// Serializes a model in ONNX's text form, as `<ir_version: 8, opset_import: ["": 17]> g (float[N,2]
// x) => (float[N,2] y) { y = Relu(x) }`.
std::string onnx_bytes(const std::string& text);
// Serializes a graph in text form as a model of opset `opset`.
std::string graph_bytes(const std::string& graph, int opset = 17);

void write_file(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);

Expected<Model> import_bytes(const std::string& bytes, const ImportOptions& options = {});
Expected<std::vector<Gap>> gaps_of(const std::string& bytes, const ImportOptions& options = {});
// Returns the error of the import, "" on success.
std::string error_of(const std::string& bytes, const ImportOptions& options = {});

Tensor floats(std::vector<int64_t> shape, std::vector<float> values);
Tensor ints(std::vector<int64_t> shape, std::vector<int64_t> values);
// Imports and evaluates; an error fails the test. Returns the elements of all outputs as doubles,
// one vector an output.
std::vector<std::vector<double>> run_model(const std::string& bytes,
                                           const std::vector<Tensor>& inputs);
std::vector<double> run_graph(const std::string& graph, const std::vector<Tensor>& inputs,
                              int opset = 17);

}  // namespace tw::test
