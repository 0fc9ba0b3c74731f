#include "frontend/onnx/skeleton.h"

#include <cstdint>

namespace tw::onnx_import {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxSkeleton = (size_t{1} << 31) - 1;  // protobuf's own limit

constexpr const char* kTooLarge = "more than 2 GiB besides raw tensor data";

// The messages on the way to a tensor; a `leaf` is copied as it is.
enum class Message : uint8_t { leaf, model, graph, node, attribute, tensor, function, training };

struct Child {
  Message parent;
  uint32_t field;
  Message message;
};
// Field numbers of onnx.proto3. Sparse tensors stay whole, as the ONNX checker reads their indices.
constexpr Child kChildren[] = {
    {Message::model, 7, Message::graph},       {Message::model, 20, Message::training},
    {Message::model, 25, Message::function},   {Message::graph, 1, Message::node},
    {Message::graph, 5, Message::tensor},      {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},  {Message::attribute, 6, Message::graph},
    {Message::attribute, 10, Message::tensor}, {Message::attribute, 11, Message::graph},
    {Message::function, 7, Message::node},     {Message::function, 11, Message::attribute},
    {Message::training, 1, Message::graph},    {Message::training, 2, Message::graph},
};
constexpr uint32_t kRawData = 9, kExternalData = 13, kDataLocation = 14;  // fields of TensorProto
// A value of TensorProto.DataLocation
constexpr char kExternal = 1;

Message child_of(Message parent, uint32_t field) {
  for (const Child& child : kChildren)
    if (child.parent == parent && child.field == field) return child.message;
  return Message::leaf;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, uint64_t{field} << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_entry(std::string& out, std::string_view key, std::string_view value) {
  std::string entry;
  put_bytes(entry, 1, key);
  put_bytes(entry, 2, value);
  put_bytes(out, kExternalData, entry);
}

class Copier {
 public:
  explicit Copier(std::string_view file) : file_(file) {}

  // Appends the fields of file[begin, end) as a message of this kind; returns false after a
  // failure.
  bool copy(size_t begin, size_t end, Message message, int depth, std::string& out) {
    if (depth > kMaxDepth) return stop(begin, "messages nest deeper than 64");
    size_t position = begin;
    Payload raw;
    while (position < end) {
      const size_t start = position;
      uint64_t tag = 0, length = 0;
      if (!varint(position, end, tag)) return false;
      const auto field = static_cast<uint32_t>(tag >> 3);
      if (field == 0) return stop(start, "not an ONNX (protobuf) file: a field with number 0");
      switch (tag & 7) {
        case 0:
          if (!varint(position, end, length)) return false;
          break;
        case 1: length = 8; break;
        case 2:
          if (!varint(position, end, length)) return false;
          break;
        case 5: length = 4; break;
        default: return stop(start, "not an ONNX (protobuf) file: bad wire type");
      }
      if ((tag & 7) == 0) length = 0;
      if (length > end - position) return stop(start, "the file is cut short");
      const size_t payload = position;
      position += length;
      if ((tag & 7) == 2 && message == Message::tensor && field == kRawData) {
        raw = {payload, length};
      } else if (const Message child = child_of(message, field);
                 (tag & 7) == 2 && child != Message::leaf) {
        std::string inner;
        if (!copy(payload, position, child, depth + 1, inner)) return false;
        put_bytes(out, field, inner);
      } else {
        if (position - start > kMaxSkeleton) return stop(start, kTooLarge);
        out.append(file_, start, position - start);
      }
      if (out.size() > kMaxSkeleton) return stop(start, kTooLarge);
    }
    if (raw.begin > 0) put_raw(raw, out);
    return true;
  }

  const std::string& problem() const { return problem_; }

 private:
  struct Payload {
    size_t begin = 0, length = 0;  // begin 0: no payload
  };

  // Writes the payload as the tensor's last fields: of repeated fields the last one counts. So a
  // data location in the file does not apply to a payload that stays in the message.
  void put_raw(const Payload& raw, std::string& out) {
    if (raw.length <= kInlineBytes)
      return put_bytes(out, kRawData, file_.substr(raw.begin, raw.length));
    put_entry(out, "location", kModelLocation);
    put_entry(out, "offset", std::to_string(raw.begin));
    put_entry(out, "length", std::to_string(raw.length));
    put_varint(out, uint64_t{kDataLocation} << 3);
    out += kExternal;
  }

  bool varint(size_t& position, size_t end, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position >= end) return stop(position, "the file is cut short");
      const auto byte = static_cast<uint8_t>(file_[position++]);
      value |= shift < 64 ? uint64_t{byte & 127u} << shift : 0;
      if (byte < 128) return true;
    }
    return stop(position, "not an ONNX (protobuf) file: bad integer");
  }
  bool stop(size_t position, const char* what) {
    problem_ = llvm::formatv("{0}, at byte {1} of {2}", what, position, file_.size()).str();
    return false;
  }

  std::string_view file_;
  std::string problem_;
};

}  // namespace

Expected<std::string> copy_skeleton(std::string_view file) {
  if (file.empty()) return make_error(DiagCode::invalid_model, "the file is empty");
  std::string out;
  Copier copier(file);
  if (!copier.copy(0, file.size(), Message::model, 0, out))
    return make_error(DiagCode::invalid_model, "{0}", copier.problem());
  return out;
}

}  // namespace tw::onnx_import
