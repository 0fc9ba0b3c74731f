// Helpers for rewriting ONNX graphs: makers and readers of values, constants as floats, free names.
// Only files that know protobuf include this header.
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
  // The nodes of this graph that read the value, once for each read
  const std::vector<int>& readers(const std::string& value) const;
  // The only node that reads the value; nullopt if it is an output or inner graphs read it too
  std::optional<int> only_reader(const std::string& value) const;
  const onnx::TensorProto* constant(const std::string& value) const;  // null: computed, or an input
  const onnx::TensorProto* float_constant(const std::string& value) const;  // null if not f32

 private:
  const onnx::GraphProto& graph_;
  std::map<std::string, int> makers_;
  std::map<std::string, std::vector<int>> readers_;
  std::set<std::string> kept_;  // outputs, and values that inner graphs read
  std::map<std::string, const onnx::TensorProto*> constants_;
};

// The names that inner graphs of the node use.
std::set<std::string> inner_names(const onnx::NodeProto& node);

// Makes names that no value has.
class FreeNames {
 public:
  explicit FreeNames(const onnx::GraphProto& graph);
  std::string make(const std::string& wish);

 private:
  std::set<std::string> taken_;
};

std::vector<float> floats_of(const onnx::TensorProto& tensor);  // f32 or f16
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
bool is_op(const onnx::NodeProto& node, std::string_view op);  // operator of ai.onnx
// Removes constants that nothing reads.
void drop_unread(onnx::GraphProto& graph);

}  // namespace tw::onnx_quantize
