// Lists of names, for help texts and errors.
#pragma once
#include <string>

namespace tw {

// All names in the order of the list: "so, obj, graph".
template <class List, class NameOf>
std::string names_text(const List& list, const NameOf& name_of) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + std::string(name_of(item));
  return text;
}
template <class Kind>
std::string names_text(int count, const char* (*name_of)(Kind)) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (text.empty() ? "" : ", ") + std::string(name_of(static_cast<Kind>(i)));
  return text;
}

}  // namespace tw
