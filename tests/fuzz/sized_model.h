// Models of a few nodes whose sizes come from data, made out of bytes.
#pragma once
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace tw::fuzz {

// The bytes of an input, one a choice; zeros behind them.
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

// Numbers for sizes, places and counts: small ones, and ends of what can be counted.
int64_t number(Choices& choices);

// Most are models that ONNX takes; the rest may be anything.
onnx::ModelProto sized_model(Choices& choices);

}  // namespace tw::fuzz
