// Models of a few nodes whose sizes come from data. The bytes of a fuzzer's input decide about all
// of them.
#pragma once
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace tw::fuzz {

// The bytes of an input, each of which is a choice. Behind them come zeros.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool more() const { return at_ < bytes_.size(); }
  size_t next() { return more() ? bytes_[at_++] : 0; }
  size_t below(size_t count) { return next() % count; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// Returns a number for sizes, places and counts: a small one, or one at the end of a type's range.
int64_t number(Choices& choices);

// Most of these models are valid ONNX; the rest may be anything.
onnx::ModelProto sized_model(Choices& choices);

}  // namespace tw::fuzz
