// What is common to the rewriting of ONNX graphs: who makes and who reads a value, constants as
// floats, names that are free. Only included by files that know protobuf.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw::onnx_quantize {

// A view of the graph as it is: make a new one after a change.
class GraphIndex {
 public:
  explicit GraphIndex(const onnx::GraphProto& graph);
  const onnx::NodeProto& node(int index) const { return graph_.node(index); }
  std::optional<int> maker(const std::string& value) const;
  // Nodes of this graph that read the value, a node once for each time
  const std::vector<int>& readers(const std::string& value) const;
  // The one node that reads the value; none where it is an output or inner graphs read it, too
  std::optional<int> only_reader(const std::string& value) const;
  const onnx::TensorProto* constant(const std::string& value) const;  // null: computed, or an input
  const onnx::TensorProto* float_constant(const std::string& value) const;  // of f32

 private:
  const onnx::GraphProto& graph_;
  std::map<std::string, int> makers_;
  std::map<std::string, std::vector<int>> readers_;
  std::set<std::string> kept_;  // outputs, and what inner graphs read
  std::map<std::string, const onnx::TensorProto*> constants_;
};

// Names that inner graphs of the node use.
std::set<std::string> inner_names(const onnx::NodeProto& node);

// Gives names that no value has.
class FreeNames {
 public:
  explicit FreeNames(const onnx::GraphProto& graph);
  std::string make(const std::string& wish);

 private:
  std::set<std::string> taken_;
};

std::vector<float> floats_of(const onnx::TensorProto& tensor);  // of f32 and f16
int64_t elements_of(const onnx::TensorProto& tensor);
void add_floats(onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& dims,
                std::span<const float> values);
void add_bytes(onnx::GraphProto& graph, const std::string& name, int type,
               const std::vector<int64_t>& dims, std::string bytes);
onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output);
void set_integer(onnx::NodeProto& node, const std::string& name, int64_t value);
int64_t integer_of(const onnx::NodeProto& node, const std::string& name, int64_t otherwise);
float real_of(const onnx::NodeProto& node, const std::string& name, float otherwise);
bool is_op(const onnx::NodeProto& node, std::string_view op);  // of ai.onnx
// Constants that nothing reads any more go.
void drop_unread(onnx::GraphProto& graph);

}  // namespace tw::onnx_quantize
