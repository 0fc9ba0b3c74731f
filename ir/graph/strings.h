// Tensors of strings. Their elements point to interned strings. These live until the program ends,
// and equal strings have equal pointers.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/tensor.h"

namespace tw {

const char* interned(std::string_view text);  // text must not contain a zero byte

// `texts` has one string for each element of the shape.
Tensor string_tensor(std::vector<int64_t> shape, const std::vector<std::string>& texts);
std::string_view string_at(const Tensor& tensor, int64_t flat);
// Points a string tensor at interned copies, since the original strings may go. Other tensors stay
// unchanged.
void intern_strings(Tensor& tensor);
// Joins the strings, each followed by a zero byte. nullopt: a string contains a zero byte.
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
