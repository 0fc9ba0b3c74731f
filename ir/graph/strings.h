// Tensors of strings. Their elements are pointers to interned strings, which stay until the program
// ends and are equal where the strings are.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/tensor.h"

namespace tw {

const char* interned(std::string_view text);  // without zero bytes

// texts: as many as the shape has elements.
Tensor string_tensor(std::vector<int64_t> shape, const std::vector<std::string>& texts);
std::string_view string_at(const Tensor& tensor, int64_t flat);
// A tensor of strings keeps those that its pointers show, which may go. No other tensor changes.
void intern_strings(Tensor& tensor);
// Packed text: the strings with a zero byte behind each; none where one has such a byte in it.
template <class Texts>
std::optional<std::string> packed_strings(const Texts& texts) {
  std::string packed;
  for (const std::string& text : texts) {
    if (text.find('\0') != std::string::npos) return std::nullopt;
    packed += text + '\0';
  }
  return packed;
}
std::vector<std::string> unpacked_strings(std::span<const std::byte> packed);

}  // namespace tw
