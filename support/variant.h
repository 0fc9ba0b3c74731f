// Variants of small structs: which kinds one has, and a function for each.
#pragma once
#include <type_traits>
#include <utility>
#include <variant>

namespace tw {

// T is one of the variant's kinds.
template <class T, class Variant>
inline constexpr bool kAlternative = false;
template <class T, class... Kinds>
inline constexpr bool kAlternative<T, std::variant<Kinds...>> = (std::is_same_v<T, Kinds> || ...);

// Calls the function that takes the variant's kind: there is one for each, or one for all others.
template <class... Functions>
struct Match : Functions... {
  using Functions::operator()...;
};
template <class... Kinds, class... Functions>
decltype(auto) match_kind(const std::variant<Kinds...>& variant, Functions&&... functions) {
  return std::visit(Match<std::decay_t<Functions>...>{std::forward<Functions>(functions)...},
                    variant);
}

}  // namespace tw
