// Packs constant matrices into blocks of few bits: those of MatMul and Gemm as MatMulNBits, tables
// of Gather as GatherBlockQuantized, both of com.microsoft.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/proto_read.h"
#include "frontend/quantize/refine.h"
#include "ir/dtype.h"

namespace tw::onnx_quantize {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// Rows of numbers in blocks. Each block has a scale and, if it is asymmetric, a zero point.
struct PackedRows {
  std::string bytes;          // [rows, numbers a row * bits / 8], low bits first
  std::vector<float> scales;  // [rows, blocks]
  std::string zeros;          // [rows, blocks * bits / 8 rounded up]; empty: the middle
};

void put_bits(std::string& bytes, int64_t bit, int number) {
  char& byte = bytes[static_cast<size_t>(bit / 8)];
  byte = static_cast<char>(static_cast<unsigned char>(byte) | number << bit % 8);
}

struct ScaleOfBlock {
  float scale = 1;
  int zero = 0;
};

// If symmetric, the number of largest magnitude is exact, and 0 is the middle of the integers.
// Otherwise the least number, the largest one and 0 are exact but for rounding.
ScaleOfBlock scale_of_block(const std::vector<float>& numbers, const BlockForm& form) {
  const int levels = 1 << form.bits;
  float least = 0, most = 0;
  for (const float x : numbers) least = std::min(least, x), most = std::max(most, x);
  const float made = form.asymmetric
                         ? (most - least) / static_cast<float>(levels - 1)
                         : (most > -least ? most : least) / static_cast<float>(-(levels / 2));
  if (!std::isnormal(made)) return {1, form.asymmetric ? 0 : levels / 2};
  if (!form.asymmetric) return {made, levels / 2};
  return {made, std::clamp(static_cast<int>(std::nearbyint(-least / made)), 0, levels - 1)};
}

// at(row, k) is number k of a row. A row has `length` numbers, and `padded` ones are stored.
template <class At>
PackedRows pack(int64_t rows, int64_t length, int64_t padded, const BlockForm& form, At at) {
  const int64_t blocks = (length + form.block - 1) / form.block;
  const int64_t row_bytes = padded * form.bits / 8, zero_bytes = (blocks * form.bits + 7) / 8;
  PackedRows packed;
  packed.bytes.assign(static_cast<size_t>(rows * row_bytes), '\0');
  if (form.asymmetric) packed.zeros.assign(static_cast<size_t>(rows * zero_bytes), '\0');
  std::vector<float> numbers(static_cast<size_t>(form.block));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t k = 0; k < form.block; ++k)
        numbers[static_cast<size_t>(k)] = b * form.block + k < length ? at(row, b * form.block + k)
                                                                      : 0.0f;
      const ScaleOfBlock of = scale_of_block(numbers, form);
      packed.scales.push_back(of.scale);
      if (form.asymmetric) put_bits(packed.zeros, row * zero_bytes * 8 + b * form.bits, of.zero);
      for (int64_t k = 0; k < std::min<int64_t>(form.block, padded - b * form.block); ++k) {
        const float x = numbers[static_cast<size_t>(k)];
        const int q = std::clamp(static_cast<int>(std::nearbyint(x / of.scale)) + of.zero, 0,
                                 (1 << form.bits) - 1);
        put_bits(packed.bytes, row * row_bytes * 8 + (b * form.block + k) * form.bits, q);
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

class WeightPacker {
 public:
  WeightPacker(onnx::GraphProto& graph, const BlockForm& form)
      : graph_(graph), before_(graph), index_(before_), form_(form), names_(graph) {}

  PackedWeights run() {
    graph_.clear_node();
    for (const onnx::NodeProto& node : before_.node()) {
      result_.inside += count_inside(node);
      if (!pack_product(node) && !pack_table(node)) *graph_.add_node() = node;
    }
    drop_unread(graph_);
    return result_;
  }

 private:
  // Names of initializers
  struct Names {
    std::string bytes, scales, zeros;
  };

  // The constant, if it is f32 or f16 and has two axes; else null.
  const onnx::TensorProto* matrix(const std::string& value) const {
    const onnx::TensorProto* tensor = index_.constant(value);
    if (!tensor || tensor->dims_size() != 2 || elements_of(*tensor) == 0 ||
        (tensor->data_type() != onnx::TensorProto::FLOAT &&
         tensor->data_type() != onnx::TensorProto::FLOAT16))
      return nullptr;
    return tensor;
  }

  // Adds the packed rows; the scales have the type of the matrix.
  Names add(const onnx::TensorProto& of, const PackedRows& packed, std::vector<int64_t> shape) {
    Names names{names_.make(of.name() + "_packed"), names_.make(of.name() + "_scales"), ""};
    const int64_t rows = shape[0],
                  blocks = static_cast<int64_t>(packed.scales.size()) / std::max<int64_t>(rows, 1);
    add_bytes(graph_, names.bytes, onnx::TensorProto::UINT8, shape, packed.bytes);
    if (of.data_type() == onnx::TensorProto::FLOAT) {
      add_floats(graph_, names.scales, {rows, blocks}, packed.scales);
    } else {
      std::string halves(packed.scales.size() * 2, '\0');
      for (size_t i = 0; i < packed.scales.size(); ++i) {
        const uint16_t half = f32_to_f16(packed.scales[i]);
        halves[2 * i] = static_cast<char>(half & 0xff),
                   halves[2 * i + 1] = static_cast<char>(half >> 8);
      }
      add_bytes(graph_, names.scales, onnx::TensorProto::FLOAT16, {rows, blocks}, halves);
    }
    if (!packed.zeros.empty()) {
      names.zeros = names_.make(of.name() + "_zeros");
      add_bytes(graph_, names.zeros, onnx::TensorProto::UINT8,
                {rows, (blocks * form_.bits + 7) / 8}, packed.zeros);
    }
    return names;
  }

  // Packs each matrix once, even if several nodes read it. If `columns_first`, it is stored as
  // [columns, rows].
  const Names& product_matrix(const onnx::TensorProto& w, bool columns_first, int64_t rows,
                              int64_t columns) {
    auto [entry, is_new] = products_.try_emplace({w.name(), columns_first});
    if (is_new) {
      const std::vector<float> values = floats_of(w);
      const int64_t blocks = (rows + form_.block - 1) / form_.block;
      const PackedRows packed = pack(
          columns, rows, blocks * form_.block, form_, [&](int64_t n, int64_t k) {
            return values[static_cast<size_t>(columns_first ? n * rows + k : k * columns + n)];
          });
      entry->second = add(w, packed, {columns, blocks, form_.block * form_.bits / 8});
    }
    return entry->second;
  }

  bool pack_product(const onnx::NodeProto& node) {
    const bool gemm = is_op(node, "Gemm");
    if ((!is_op(node, "MatMul") && !gemm) || index_.constant(node.input(0))) return false;
    const onnx::TensorProto* w = matrix(node.input(1));
    if (!w) return false;
    if (gemm && (integer_of(node, "transA", 0) != 0 || real_of(node, "alpha", 1) != 1 ||
                 real_of(node, "beta", 1) != 1)) {
      ++result_.other_gemms;
      return false;
    }
    const bool columns_first = gemm && integer_of(node, "transB", 0) != 0;
    const int64_t rows = w->dims(columns_first ? 1 : 0), columns = w->dims(columns_first ? 0 : 1);
    const Names& names = product_matrix(*w, columns_first, rows, columns);
    std::vector<std::string> inputs = {node.input(0), names.bytes, names.scales};
    if (!names.zeros.empty()) inputs.push_back(names.zeros);
    const bool biased = node.input_size() > 2 && !node.input(2).empty();
    const std::string product = biased ? names_.make(node.output(0) + "_product") : node.output(0);
    onnx::NodeProto packed = make_node("MatMulNBits", inputs, product);
    packed.set_domain(kMicrosoft);
    if (!node.name().empty()) packed.set_name(node.name());
    set_integer(packed, "K", rows);
    set_integer(packed, "N", columns);
    set_integer(packed, "bits", form_.bits);
    set_integer(packed, "block_size", form_.block);
    *graph_.add_node() = packed;
    if (biased) *graph_.add_node() = make_node("Add", {product, node.input(2)}, node.output(0));
    ++result_.matrices;
    return true;
  }

  // GatherBlockQuantized takes tables of 4 and 8 bits.
  bool pack_table(const onnx::NodeProto& node) {
    if (!is_op(node, "Gather") || index_.constant(node.input(1)) ||
        integer_of(node, "axis", 0) != 0)
      return false;
    const onnx::TensorProto* table = matrix(node.input(0));
    if (!table) return false;
    const int64_t rows = table->dims(0), columns = table->dims(1);
    if (form_.bits == 2 || columns * form_.bits % 8 != 0) {
      ++result_.other_tables;
      return false;
    }
    auto [entry, is_new] = tables_.try_emplace(table->name());
    if (is_new) {
      const std::vector<float> values = floats_of(*table);
      const PackedRows packed = pack(rows, columns, columns, form_, [&](int64_t row, int64_t k) {
        return values[static_cast<size_t>(row * columns + k)];
      });
      entry->second = add(*table, packed, {rows, columns * form_.bits / 8});
    }
    const Names& names = entry->second;
    std::vector<std::string> inputs = {names.bytes, node.input(1), names.scales};
    if (!names.zeros.empty()) inputs.push_back(names.zeros);
    onnx::NodeProto packed = make_node("GatherBlockQuantized", inputs, node.output(0));
    packed.set_domain(kMicrosoft);
    if (!node.name().empty()) packed.set_name(node.name());
    set_integer(packed, "gather_axis", 0);
    set_integer(packed, "quantize_axis", 1);
    set_integer(packed, "block_size", form_.block);
    set_integer(packed, "bits", form_.bits);
    *graph_.add_node() = packed;
    ++result_.tables;
    return true;
  }

  // The number of products in inner graphs of the node, which stay as they are.
  static int count_inside(const onnx::NodeProto& node) {
    int count = 0;
    for (const onnx::GraphProto* graph : onnx_import::inner_graphs(node))
      for (const onnx::NodeProto& inner : graph->node())
        count += (is_op(inner, "MatMul") || is_op(inner, "Gemm") ? 1 : 0) + count_inside(inner);
    return count;
  }

  onnx::GraphProto& graph_;
  const onnx::GraphProto before_;
  const GraphIndex index_;
  const BlockForm form_;
  FreeNames names_;
  std::map<std::pair<std::string, bool>, Names> products_;
  std::map<std::string, Names> tables_;
  PackedWeights result_;
};

}  // namespace

PackedWeights pack_weights(onnx::ModelProto& model, const BlockForm& form) {
  const PackedWeights packed = WeightPacker(*model.mutable_graph(), form).run();
  if (packed.matrices + packed.tables > 0) name_domain(model);
  return packed;
}

}  // namespace tw::onnx_quantize
