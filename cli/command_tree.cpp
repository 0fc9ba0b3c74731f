#include "cli/command_tree.h"

#include <CLI/CLI.hpp>

namespace tw {
namespace {

constexpr const char* kFirstGroup = "Options";  // CLI11's default

CommandOption option_entry(const CLI::Option& option) {
  CommandOption out;
  out.help = option.get_description();
  out.argument = option.get_positional();
  if (option.get_group() != kFirstGroup) out.group = option.get_group();
  if (out.argument) {
    out.names = {option.get_name(true)};
    return out;
  }
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) out.kind = option.get_type_name();
  return out;
}

CommandEntry entry(const CLI::App& app) {
  CommandEntry out{app.get_name(), app.get_description(), app.get_footer(), {}};
  for (const std::string& group : app.get_groups())
    for (const CLI::Option* option : app.get_options())
      if (option->get_group() == group) out.options.push_back(option_entry(*option));
  return out;
}

}  // namespace

CommandTree command_tree(const CLI::App& program) {
  CommandTree tree{entry(program), {}};
  for (const CLI::App* command : program.get_subcommands(nullptr))
    tree.commands.push_back(entry(*command));
  return tree;
}

}  // namespace tw
