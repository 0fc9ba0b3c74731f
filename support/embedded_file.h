// A file that is embedded in the program. runtime/embed.cmake writes tables of them.
#pragma once
#include <string_view>
#include <vector>

namespace tw {

struct EmbeddedFile {
  std::string_view name;  // without folder and ending
  std::string_view text;
};

}  // namespace tw
