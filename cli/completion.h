// Scripts that teach shells to complete Tilewright's commands and flags.
#pragma once
#include "cli/command_tree.h"
#include "support/diag.h"

namespace tw {

// shell: "bash", "zsh" or "fish"
Expected<std::string> completion_script(const CommandTree& tree, const std::string& shell);

}  // namespace tw
