#include <algorithm>
#include <cmath>

#include "frontend/quantize/refine.h"

namespace tw::onnx_quantize {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

struct PackedMatrix {
  std::string bytes;          // [columns, blocks, block * bits / 8], low bits first
  std::vector<float> scales;  // [columns, blocks]
};

// w: [rows, columns]. A block is `block` rows of one column. The number of largest magnitude is
// exact, and 0 is the middle of the integers.
PackedMatrix pack(const std::vector<float>& w, int64_t rows, int64_t columns, int bits, int block) {
  const int64_t blocks = (rows + block - 1) / block;
  const int middle = 1 << (bits - 1);
  PackedMatrix packed;
  packed.bytes.assign(static_cast<size_t>(columns * blocks * block * bits / 8), '\0');
  for (int64_t n = 0; n < columns; ++n)
    for (int64_t b = 0; b < blocks; ++b) {
      const auto at = [&](int64_t k) {
        const int64_t row = b * block + k;
        return row < rows ? w[static_cast<size_t>(row * columns + n)] : 0.0f;
      };
      float extreme = 0;
      for (int64_t k = 0; k < block; ++k)
        if (std::abs(at(k)) > std::abs(extreme)) extreme = at(k);
      const float made = extreme / static_cast<float>(-middle);
      const float scale = std::isnormal(made) ? made : 1.0f;
      packed.scales.push_back(scale);
      for (int64_t k = 0; k < block; ++k) {
        const int q = std::clamp(static_cast<int>(std::nearbyint(at(k) / scale)) + middle, 0,
                                 2 * middle - 1);
        const int64_t bit = ((n * blocks + b) * block + k) * bits;
        char& byte = packed.bytes[static_cast<size_t>(bit / 8)];
        byte = static_cast<char>(static_cast<unsigned char>(byte) | q << bit % 8);
      }
    }
  return packed;
}

void name_domain(onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& opset : model.opset_import())
    if (opset.domain() == kMicrosoft) return;
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(kMicrosoft);
  opset.set_version(1);
}

}  // namespace

int pack_weights(onnx::ModelProto& model, int bits, int block) {
  onnx::GraphProto& graph = *model.mutable_graph();
  const onnx::GraphProto before = graph;
  const GraphIndex index(before);
  FreeNames names(graph);
  int count = 0;
  std::map<std::string, std::pair<std::string, std::string>> done;  // a matrix may be read twice
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!is_op(node, "MatMul") || index.constant(node.input(0))) continue;
    const onnx::TensorProto* matrix = index.float_constant(node.input(1));
    if (!matrix || matrix->dims_size() != 2 || elements_of(*matrix) == 0) continue;
    const int64_t rows = matrix->dims(0), columns = matrix->dims(1);
    auto& [bytes, scales] = done[matrix->name()];
    if (bytes.empty()) {
      const PackedMatrix packed = pack(floats_of(*matrix), rows, columns, bits, block);
      const int64_t blocks = (rows + block - 1) / block;
      bytes = names.make(matrix->name() + "_packed");
      scales = names.make(matrix->name() + "_scales");
      add_bytes(graph, bytes, onnx::TensorProto::UINT8, {columns, blocks, block * bits / 8},
                packed.bytes);
      add_floats(graph, scales, {columns * blocks}, packed.scales);
    }
    node.set_op_type("MatMulNBits");
    node.set_domain(kMicrosoft);
    node.set_input(1, bytes);
    node.add_input(scales);
    set_integer(node, "K", rows);
    set_integer(node, "N", columns);
    set_integer(node, "bits", bits);
    set_integer(node, "block_size", block);
    ++count;
  }
  if (count > 0) name_domain(model);
  drop_unread(graph);
  return count;
}

}  // namespace tw::onnx_quantize
