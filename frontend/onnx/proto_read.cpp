#include "frontend/onnx/proto_read.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "frontend/onnx/import_table.h"
#include "ir/graph/strings.h"
#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw::onnx_import {
namespace {

constexpr int64_t kMaxTensorElements = int64_t{1} << 40;
constexpr size_t kMaxRank = 64;  // the limit of all types (ir/graph/types.cpp)

Expected<int64_t> checked_elements(const OnnxTensor& tensor) {
  if (tensor.dims.size() > kMaxRank)
    return make_error(DiagCode::limit, "tensor '{0}' has rank {1}, above the limit of {2}",
                      tensor.name, tensor.dims.size(), kMaxRank);
  int64_t count = 1;
  bool zero = false;
  for (int64_t dim : tensor.dims) {
    if (dim < 0)
      return make_error(DiagCode::invalid_model, "tensor '{0}' has a negative dimension",
                        tensor.name);
    zero = zero || dim == 0;
    if (dim > 0 && count > kMaxTensorElements / dim)
      return make_error(DiagCode::limit, "tensor '{0}' has more than 2^40 elements", tensor.name);
    if (dim > 0) count *= dim;
  }
  return zero ? 0 : count;
}

Expected<uint64_t> parse_number(const std::string& text, const std::string& tensor) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return make_error(DiagCode::invalid_model,
                      "external data of tensor '{0}' has the bad offset or length '{1}'", tensor,
                      text);
  return value;
}

Expected<Blob> read_external(const onnx::TensorProto& proto, uint64_t expected,
                             ExternalData& external) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : proto.external_data())
    if (!entries.emplace(entry.key(), entry.value()).second)
      return make_error(DiagCode::invalid_model, "external data of tensor '{0}' gives '{1}' twice",
                        proto.name(), entry.key());
  uint64_t offset = 0, length = expected;
  if (entries.count("offset")) { TW_ASSIGN(offset, parse_number(entries["offset"], proto.name())); }
  if (entries.count("length")) { TW_ASSIGN(length, parse_number(entries["length"], proto.name())); }
  if (length != expected)
    return make_error(DiagCode::invalid_model,
                      "tensor '{0}' has {1} bytes of data but its shape and type need {2}",
                      proto.name(), length, expected);
  return external.range(entries["location"], offset, length, proto.name());
}

Blob own(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {owner, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}};
}

// Narrows the wider words of typed fields; T is the stored type.
template <class T, class Field>
std::string narrowed(const Field& field) {
  std::string bytes(static_cast<size_t>(field.size()) * sizeof(T), '\0');
  for (int i = 0; i < field.size(); ++i) {
    const T value = static_cast<T>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

std::string typed_bytes(const onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::f32: return narrowed<float>(proto.float_data());
    case DType::f64: return narrowed<double>(proto.double_data());
    case DType::f16:
    case DType::bf16:
    case DType::u16: return narrowed<uint16_t>(proto.int32_data());
    case DType::i8: return narrowed<int8_t>(proto.int32_data());
    case DType::i16: return narrowed<int16_t>(proto.int32_data());
    case DType::i32: return narrowed<int32_t>(proto.int32_data());
    case DType::i64: return narrowed<int64_t>(proto.int64_data());
    case DType::u8: return narrowed<uint8_t>(proto.int32_data());
    case DType::u32: return narrowed<uint32_t>(proto.uint64_data());
    case DType::u64: return narrowed<uint64_t>(proto.uint64_data());
    case DType::boolean: {
      std::string bytes = narrowed<uint8_t>(proto.int32_data());
      for (char& byte : bytes) byte = byte != 0;
      return bytes;
    }
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return narrowed<uint8_t>(proto.int32_data());  // a byte each, packed ones too
    case DType::string: break;                                     // read_strings
  }
  TW_UNREACHABLE("bad element type");
}

// Unpacks numbers narrower than a byte, which are packed from the low bits up, to one byte each.
std::string unpacked(std::span<const std::byte> packed, DType dtype, int64_t elements) {
  const int bits = dtype_bits(dtype), each = 8 / bits;
  std::string out(static_cast<size_t>(elements), '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t value = std::to_integer<int64_t>(packed[static_cast<size_t>(i / each)]) >>
                              (i % each * bits) &
                          ((1 << bits) - 1);
    out[static_cast<size_t>(i)] = static_cast<char>(is_int(dtype) ? wrap_to(dtype, value) : value);
  }
  return out;
}

using Opsets = std::map<std::string, int64_t>;

Expected<OnnxAttribute> read_attribute(onnx::AttributeProto& proto, const Opsets& opsets,
                                       ExternalData& external) {
  OnnxAttribute out;
  switch (proto.type()) {
    case onnx::AttributeProto::INT: out.kind = AttributeKind::integer; break;
    case onnx::AttributeProto::FLOAT: out.kind = AttributeKind::real; break;
    case onnx::AttributeProto::STRING: out.kind = AttributeKind::text; break;
    case onnx::AttributeProto::TENSOR: out.kind = AttributeKind::tensor; break;
    case onnx::AttributeProto::INTS: out.kind = AttributeKind::integers; break;
    case onnx::AttributeProto::FLOATS: out.kind = AttributeKind::reals; break;
    case onnx::AttributeProto::STRINGS: out.kind = AttributeKind::texts; break;
    case onnx::AttributeProto::GRAPH:
    case onnx::AttributeProto::GRAPHS: out.kind = AttributeKind::graph; break;
    default: out.kind = AttributeKind::other; break;  // protobuf's open enum
  }
  // It refers to an attribute of a function that does not exist
  if (!proto.ref_attr_name().empty()) out.kind = AttributeKind::other;
  out.integer = proto.i();
  out.real = proto.f();
  out.text = proto.s();
  out.integers.assign(proto.ints().begin(), proto.ints().end());
  out.reals.assign(proto.floats().begin(), proto.floats().end());
  out.texts.assign(std::move_iterator(proto.mutable_strings()->begin()),
                   std::move_iterator(proto.mutable_strings()->end()));
  if (out.kind == AttributeKind::tensor) {
    TW_ASSIGN(OnnxTensor tensor, read_tensor(proto.t(), external));
    out.tensor = std::make_shared<const OnnxTensor>(std::move(tensor));
  }
  if (out.kind == AttributeKind::graph) {
    if (!proto.has_g())
      return make_error(DiagCode::unsupported, "attribute '{0}' is a list of graphs", proto.name());
    TW_ASSIGN(OnnxGraph graph, read_graph(*proto.mutable_g(), opsets, external));
    out.graph = std::make_shared<const OnnxGraph>(std::move(graph));
  }
  return out;
}

// The type that a sequence or an optional holds. `kind` gets the names of the holders, outermost
// first: "optional sequence".
const onnx::TypeProto& held_type(const onnx::TypeProto& type, std::string& kind) {
  if (type.value_case() == onnx::TypeProto::kOptionalType && kind.empty()) {
    kind = "optional";
    return held_type(type.optional_type().elem_type(), kind);
  }
  if (type.value_case() == onnx::TypeProto::kSequenceType &&
      kind.find("sequence") == std::string::npos) {
    kind += kind.empty() ? "sequence" : " sequence";
    return held_type(type.sequence_type().elem_type(), kind);
  }
  return type;
}

// True for symbols that exporters write for a dimension without a name: each is a size of its own.
bool names_no_size(const std::string& symbol) { return symbol == "?" || symbol == "-1"; }

OnnxValueInfo read_value_info(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo out;
  out.name = proto.name();
  std::string holders;
  const onnx::TypeProto& type = held_type(proto.type(), holders);
  const char* what = "tensor";
  switch (type.value_case()) {
    case onnx::TypeProto::kSequenceType: what = "sequence"; break;
    case onnx::TypeProto::kMapType: what = "map"; break;
    case onnx::TypeProto::kOptionalType: what = "optional"; break;
    case onnx::TypeProto::kSparseTensorType: what = "sparse tensor"; break;
    case onnx::TypeProto::kOpaqueType: what = "opaque"; break;
    case onnx::TypeProto::kTensorType: break;
    case onnx::TypeProto::VALUE_NOT_SET: what = "untyped value"; break;
  }
  if (type.value_case() != onnx::TypeProto::kTensorType) {
    out.kind = holders.empty() ? what : holders + " of " + what;
    return out;
  }
  if (!holders.empty()) out.kind = holders;
  out.element_type = type.tensor_type().elem_type();
  out.has_shape = type.tensor_type().has_shape();
  for (const auto& dim : type.tensor_type().shape().dim())
    out.dims.push_back({dim.has_dim_value() ? dim.dim_value() : -1,
                        names_no_size(dim.dim_param()) ? "" : dim.dim_param()});
  return out;
}

// The names that the graph uses and does not make.
std::set<std::string> free_names(const OnnxGraph& graph) {
  std::set<std::string> made = {""}, free;
  for (const OnnxValueInfo& input : graph.inputs) made.insert(input.name);
  for (const OnnxTensor& tensor : graph.initializers) made.insert(tensor.name);
  const auto use = [&](const std::string& name) {
    if (!made.count(name)) free.insert(name);
  };
  for (const OnnxNode& node : graph.nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), use);
    std::for_each(node.captures.begin(), node.captures.end(), use);
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  std::for_each(graph.outputs.begin(), graph.outputs.end(), use);
  return free;
}

Expected<OnnxNode> read_node(onnx::NodeProto& proto, const Opsets& opsets, ExternalData& external) {
  OnnxNode node;
  node.op_type = proto.op_type();
  node.domain = proto.domain();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  node.name = !proto.name().empty()  ? proto.name()
              : node.outputs.empty() ? node.op_type
                                     : node.outputs.front();
  node.since_version = since_version(proto, opsets);
  for (auto& attribute : *proto.mutable_attribute()) {
    TW_ASSIGN(OnnxAttribute& read = node.attributes[attribute.name()],
              read_attribute(attribute, opsets, external));
    onnx::AttributeProto().Swap(&attribute);
    if (!read.graph) continue;
    const std::set<std::string> names = free_names(*read.graph);
    node.captures.insert(node.captures.end(), names.begin(), names.end());
  }
  return node;
}

}  // namespace

// Reads strings; a zero byte follows each.
static Expected<Blob> read_strings(const onnx::TensorProto& proto, int64_t elements) {
  if (proto.string_data_size() != elements || proto.data_location() == onnx::TensorProto::EXTERNAL)
    return make_error(DiagCode::invalid_model,
                      "tensor '{0}' has {1} strings in it but its shape needs {2}", proto.name(),
                      proto.string_data_size(), elements);
  std::optional<std::string> packed = packed_strings(proto.string_data());
  if (!packed)
    return make_error(DiagCode::unsupported, "tensor '{0}' has a string with a zero byte",
                      proto.name());
  return own(std::move(*packed));
}

Expected<OnnxTensor> read_tensor(const onnx::TensorProto& proto, ExternalData& external) {
  OnnxTensor out;
  out.name = proto.name();
  out.element_type = proto.data_type();
  out.dims.assign(proto.dims().begin(), proto.dims().end());
  TW_ASSIGN(const int64_t elements, checked_elements(out));
  const std::optional<DType> dtype = out.dtype();
  if (!dtype) return out;
  if (proto.has_segment())
    return make_error(DiagCode::unsupported, "tensor '{0}' is stored in segments", out.name);
  if (*dtype == DType::string) {
    TW_ASSIGN(out.data, read_strings(proto, elements));
    return out;
  }
  const bool packed = is_storage_only(*dtype) && dtype_bits(*dtype) < 8;
  const auto count = static_cast<uint64_t>(elements);
  const uint64_t expected = packed ? (count * static_cast<uint64_t>(dtype_bits(*dtype)) + 7) / 8
                                   : count * static_cast<uint64_t>(dtype_bytes(*dtype));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    TW_ASSIGN(out.data, read_external(proto, expected, external));
  } else {
    out.data = own(proto.has_raw_data() ? proto.raw_data() : typed_bytes(proto, *dtype));
  }
  if (out.data.bytes.size() != expected)
    return make_error(DiagCode::invalid_model,
                      "tensor '{0}' has {1} bytes of data but its shape and type need {2}",
                      out.name, out.data.bytes.size(), expected);
  if (packed) out.data = own(unpacked(out.data.bytes, *dtype, elements));
  return out;
}

int since_version(const onnx::NodeProto& node, const std::map<std::string, int64_t>& opsets) {
  const auto opset = opsets.find(node.domain());
  if (opset == opsets.end()) return 0;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(
      node.op_type(), static_cast<int>(std::min<int64_t>(opset->second, INT32_MAX)), node.domain());
  if (schema) return schema->since_version();
  const ImportRow* row = find_importer_any_version(node.domain(), node.op_type());
  const bool known_to_onnx = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain()) !=
                             nullptr;
  return row && !known_to_onnx ? row->first : 0;
}

Expected<OnnxGraph> read_graph(onnx::GraphProto& graph, const Opsets& opsets,
                               ExternalData& external) {
  OnnxGraph out;
  std::set<std::string> constants;
  for (const auto& proto : graph.initializer()) {
    TW_ASSIGN(OnnxTensor tensor, read_tensor(proto, external));
    constants.insert(tensor.name);
    out.initializers.push_back(std::move(tensor));
  }
  for (const auto& proto : graph.input())
    if (!constants.count(proto.name())) out.inputs.push_back(read_value_info(proto));
  for (const auto& proto : graph.output()) {
    out.outputs.push_back(proto.name());
    out.declared.push_back(read_value_info(proto));
  }
  for (auto& proto : *graph.mutable_node()) {
    TW_ASSIGN(OnnxNode node, read_node(proto, opsets, external));
    out.nodes.push_back(std::move(node));
  }
  return out;
}

std::string element_type_name(int element_type) {
  if (element_type == 0) return "sparse or undefined";
  if (const std::optional<DType> dtype = dtype_from_onnx(element_type)) return dtype_name(*dtype);
  std::string name = onnx::TensorProto_DataType_Name(
      static_cast<onnx::TensorProto_DataType>(element_type));
  if (name.empty()) return "unknown type " + std::to_string(element_type);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<const onnx::GraphProto*> inner_graphs(const onnx::NodeProto& node) {
  std::vector<const onnx::GraphProto*> graphs;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) graphs.push_back(&attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) graphs.push_back(&graph);
  }
  return graphs;
}

std::vector<onnx::GraphProto*> inner_graphs(onnx::NodeProto& node) {
  std::vector<onnx::GraphProto*> graphs;
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) graphs.push_back(attribute.mutable_g());
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) graphs.push_back(&graph);
  }
  return graphs;
}

}  // namespace tw::onnx_import
