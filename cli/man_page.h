// The manual page, in the language of man(7).
#pragma once
#include "cli/command_tree.h"

namespace tw {

std::string man_page(const CommandTree& tree, const std::string& version);

}  // namespace tw
