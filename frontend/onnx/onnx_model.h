// An ONNX model after loading, without protobuf types. Importers read it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/mapped_file.h"
#include "ir/blob.h"
#include "ir/dtype.h"
#include "support/diag.h"

namespace tw::onnx_import {

struct OnnxTensor {
  std::string name;
  int element_type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  Blob data;  // row-major; empty for element types without a DType
  std::optional<DType> dtype() const { return dtype_from_onnx(element_type); }
};

enum class AttributeKind : uint8_t {
  integer,
  real,
  text,
  tensor,
  integers,
  reals,
  texts,
  graph,
  other
};

struct OnnxGraph;

struct OnnxAttribute {
  AttributeKind kind = AttributeKind::other;
  int64_t integer = 0;
  float real = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::shared_ptr<const OnnxTensor> tensor;
  std::shared_ptr<const OnnxGraph> graph;
};

struct OnnxNode {
  // domain: "" is ai.onnx; name: that of the first output if the node has none
  std::string op_type, domain, name;
  // Since-version of the operator at the model's opset; 0: the ONNX library does not know it
  int since_version = 0;
  std::vector<std::string> inputs, outputs;  // "": absent
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
  // Names from graphs around the node that the graphs in its attributes use
  std::vector<std::string> captures;
};

struct OnnxDim {
  int64_t value = -1;  // negative: unknown
  std::string symbol;  // may be empty
};

struct OnnxValueInfo {
  std::string name;
  // "sequence", "optional" and "optional sequence" hold tensors, which the other fields describe;
  // others are "map", "sparse tensor", ...
  std::string kind = "tensor";
  int element_type = 0;
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxGraph {
  std::vector<OnnxValueInfo> inputs;  // without the initializers
  std::vector<std::string> outputs;
  std::vector<OnnxValueInfo> declared;  // declared types of the outputs
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxNode> nodes;  // topologically sorted
};

struct OnnxModel {
  std::string producer;
  std::map<std::string, std::string> metadata;  // properties of the model
  int64_t opset = 0;                            // opset of ai.onnx in the file
  std::map<std::string, int> op_counts;
  OnnxGraph graph;
};

// Parses and checks the model, inlines functions, and converts it to opsets that the importers
// know. `path` is used to find external data. Errors: io, invalid_model, limit.
Expected<OnnxModel> load_model(const std::shared_ptr<const MappedFile>& file,
                               const std::string& path);

int newest_onnx_opset();  // newest opset of the ONNX library

// The files with external data.
Expected<std::vector<std::string>> external_paths(const std::shared_ptr<const MappedFile>& file,
                                                  const std::string& path);

std::string element_type_name(int element_type);  // "float8e4m3fn"

}  // namespace tw::onnx_import
