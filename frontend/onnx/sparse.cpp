#include "frontend/onnx/sparse.h"

#include <cstring>
#include <set>

#include "frontend/onnx/proto_read.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 28;  // for all dense tensors made here

class Densifier {
 public:
  explicit Densifier(ExternalData& external) : external_(external) {}

  Error graph(onnx::GraphProto& graph) {
    for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer())
      TW_TRY(fill(sparse, sparse.values().name(), *graph.add_initializer()));
    graph.clear_sparse_initializer();
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.type() != onnx::AttributeProto::SPARSE_TENSOR ||
            attribute.name() != "sparse_value" || !attribute.has_sparse_tensor())
          continue;
        const std::string name = node.output_size() > 0 ? node.output(0) : node.name();
        TW_TRY(fill(attribute.sparse_tensor(), name, *attribute.mutable_t()));
        attribute.clear_sparse_tensor();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
      }
      for (onnx::GraphProto* inner : inner_graphs(node)) TW_TRY(this->graph(*inner));
    }
    return Error::success();
  }

 private:
  // Indices are flat, or have a row of coordinates for each value.
  Error fill(const onnx::SparseTensorProto& sparse, const std::string& name,
             onnx::TensorProto& dense) {
    TW_ASSIGN(const OnnxTensor values, read_tensor(sparse.values(), external_));
    TW_ASSIGN(const OnnxTensor indices, read_tensor(sparse.indices(), external_));
    const std::optional<DType> dtype = values.dtype();
    if (!dtype || *dtype == DType::string || dtype_bits(*dtype) < 8)
      return make_error(DiagCode::unsupported, "sparse tensor '{0}' has elements of {1}", name,
                        element_type_name(values.element_type));
    const std::vector<int64_t> dims(sparse.dims().begin(), sparse.dims().end());
    const auto size = static_cast<int64_t>(dtype_bytes(*dtype));
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (dim < 0)
        return make_error(DiagCode::invalid_model, "sparse tensor '{0}' has a negative dimension",
                          name);
      if (dim > 0 && count > (kMaxBytes - bytes_) / size / dim)
        return make_error(DiagCode::limit,
                          "sparse tensor '{0}' is too large to be made dense: all of a model's may "
                          "have {1} bytes",
                          name, kMaxBytes);
      count *= dim;
    }
    bytes_ += count * size;
    TW_ASSIGN(const std::vector<int64_t> places, places_of(values, indices, dims, count, name));
    std::string data(static_cast<size_t>(count * size), '\0');
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(data.data() + static_cast<size_t>(places[i] * size),
                  values.data.bytes.data() + i * static_cast<size_t>(size),
                  static_cast<size_t>(size));
    dense.Clear();
    dense.set_name(name);
    dense.set_data_type(values.element_type);
    for (const int64_t dim : dims) dense.add_dims(dim);
    dense.set_raw_data(std::move(data));
    return Error::success();
  }

  // The flat positions of the values.
  static Expected<std::vector<int64_t>> places_of(const OnnxTensor& values,
                                                  const OnnxTensor& indices,
                                                  const std::vector<int64_t>& dims, int64_t count,
                                                  const std::string& name) {
    const auto wrong = [&](const char* what) {
      return make_error(DiagCode::invalid_model, "sparse tensor '{0}' {1}", name, what);
    };
    const bool rows = indices.dims.size() == 2;
    const int64_t given = values.dims.size() == 1 ? values.dims[0] : -1;
    const auto rank = static_cast<int64_t>(dims.size());
    if (indices.dtype() != DType::i64 || given < 0 || indices.dims.empty() ||
        indices.dims.size() > 2 || indices.dims[0] != given || (rows && indices.dims[1] != rank))
      return wrong("needs a list of values, and as many indices of type int64");
    const auto index = [&](int64_t i) {
      int64_t at = 0;
      std::memcpy(&at, indices.data.bytes.data() + static_cast<size_t>(i) * sizeof(at), sizeof(at));
      return at;
    };
    std::vector<int64_t> places;
    for (int64_t i = 0; i < given; ++i) {
      int64_t place = rows ? 0 : index(i);
      for (int64_t axis = 0; axis < (rows ? rank : 0); ++axis) {
        const int64_t at = index(i * rank + axis), extent = dims[static_cast<size_t>(axis)];
        if (at < 0 || at >= extent) return wrong("has an index beyond its shape");
        place = place * extent + at;
      }
      if (place < 0 || place >= count) return wrong("has an index beyond its shape");
      places.push_back(place);
    }
    if (std::set<int64_t>(places.begin(), places.end()).size() != places.size())
      return wrong("has an index twice");
    return places;
  }

  ExternalData& external_;
  int64_t bytes_ = 0;
};

}  // namespace

Error make_dense(onnx::ModelProto& model, ExternalData& external) {
  return Densifier(external).graph(*model.mutable_graph());
}

}  // namespace tw::onnx_import
