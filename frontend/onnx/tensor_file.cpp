// Reading of ONNX TensorProto files, in which the node tests store inputs and outputs.
#include "frontend/frontend.h"
#include "frontend/onnx/proto_read.h"
#include "ir/graph/strings.h"

namespace tw {

using namespace onnx_import;

Expected<Tensor> read_tensor_proto(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  onnx::TensorProto proto;
  bool parsed = false;
  try {
    parsed = proto.ParseFromArray(
        file->bytes().data(), static_cast<int>(std::min<size_t>(file->bytes().size(), INT32_MAX)));
  } catch (const std::exception&) {
    parsed = false;  // protobuf throws past 2 GiB
  }
  const Location where{path, 0, 0};
  if (!parsed || file->bytes().size() > INT32_MAX)
    return make_error({DiagCode::parse, "not an ONNX tensor file", where, {}});
  ExternalData external(file, path);
  Expected<OnnxTensor> tensor = read_tensor(proto, external);
  if (!tensor) return tensor.takeError();
  const std::optional<DType> dtype = tensor->dtype();
  if (!dtype)
    return make_error(
        {DiagCode::unsupported, "dtype " + element_type_name(tensor->element_type), where, {}});
  if (*dtype == DType::string)
    return string_tensor(tensor->dims, unpacked_strings(tensor->data.bytes));
  return Tensor{*dtype, tensor->dims, {tensor->data.bytes.begin(), tensor->data.bytes.end()}};
}

}  // namespace tw
