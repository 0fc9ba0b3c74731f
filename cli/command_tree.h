// The commands and their flags as data, read from their declarations. The man page and the
// completion of shells are made of it.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tw {

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; for an argument, "MODEL"
  std::string kind;                // name of its value, "FILE"; "": it takes none
  std::string help;
  std::string group;  // heading in the help; "": the first one
  bool argument = false;
};
struct CommandEntry {
  std::string name, summary, footer;   // footer: examples and exit codes
  std::vector<CommandOption> options;  // the options of a heading stand together
};
struct CommandTree {
  CommandEntry program;  // options that can stand before a command
  std::vector<CommandEntry> commands;
};
CommandTree command_tree(const CLI::App& program);

}  // namespace tw
