// The words of an enum. Its values count from 0, and a function beside it has a word for each:
//   static constexpr const char* word(E e) {
//     switch (e) {
//       case E::first: return "first";
//     }
//     return nullptr;
//   }
// A value without a word does not compile, as the switch has no default.
#pragma once
#include <array>
#include <cstddef>

namespace tw {

template <class E>
consteval size_t enum_count() {
  size_t count = 0;
  while (word(static_cast<E>(count))) ++count;
  return count;
}

template <class E>
consteval std::array<const char*, enum_count<E>()> enum_words() {
  std::array<const char*, enum_count<E>()> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = word(static_cast<E>(i));
  return words;
}

}  // namespace tw
