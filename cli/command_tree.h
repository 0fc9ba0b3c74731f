// The commands and their flags as data, read from what was declared: for the man page and for what
// shells complete.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tw {

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; of an argument, "MODEL"
  std::string kind;                // what its value is called, "FILE"; "": it takes none
  std::string help;
  std::string group;  // its heading in the help; "": the first one
  bool argument = false;
};
struct CommandEntry {
  std::string name, summary, footer;   // footer: examples and exit codes
  std::vector<CommandOption> options;  // those of a heading together
};
struct CommandTree {
  CommandEntry program;  // with what can stand before a command
  std::vector<CommandEntry> commands;
};
CommandTree command_tree(const CLI::App& program);

}  // namespace tw
