// Helpers for variants of small structs: whether a variant has a kind, and a call of the function
// for the kind that it holds.
#pragma once
#include <type_traits>
#include <utility>
#include <variant>

namespace tw {

// True if T is a kind of the variant.
template <class T, class Variant>
inline constexpr bool kAlternative = false;
template <class T, class... Kinds>
inline constexpr bool kAlternative<T, std::variant<Kinds...>> = (std::is_same_v<T, Kinds> || ...);

// Calls the function for the kind that the variant holds. Each kind has a function, or one function
// takes all other kinds.
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
