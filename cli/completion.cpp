#include "cli/completion.h"

#include <array>

#include "cli/flags.h"

namespace tw {
namespace {

// Completions that a shell offers behind a flag
enum class Offer { nothing, files, folders, targets };

Offer offer_of(const CommandOption& option) {
  if (option.argument) return Offer::files;
  if (option.names.back() == "--target") return Offer::targets;
  if (option.kind == "DIR") return Offer::folders;
  return option.kind.find("FILE") != std::string::npos ? Offer::files : Offer::nothing;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> flags_of(const CommandEntry& entry) {
  std::vector<std::string> names;
  for (const CommandOption& o : entry.options)
    if (!o.argument) names.insert(names.end(), o.names.begin(), o.names.end());
  return names;
}

std::vector<std::string> command_names(const CommandTree& tree) {
  std::vector<std::string> names;
  for (const CommandEntry& c : tree.commands) names.push_back(c.name);
  return names;
}

// The text in single quotes; `apostrophe` is the shell's way to write one inside.
std::string quoted(const std::string& text, const char* apostrophe) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(apostrophe) : std::string(1, c);
  return out + "'";
}

constexpr const char* kTargetNames = "tilewright targets 2>/dev/null | cut -d' ' -f1";

// A line for each flag with values, of a case on "COMMAND FLAG"
std::string bash_values(const CommandEntry& entry) {
  std::string text;
  for (const CommandOption& o : entry.options) {
    if (o.argument || o.kind.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : o.names) patterns.push_back("'" + entry.name + " " + name + "'");
    std::string action;
    switch (offer_of(o)) {
      case Offer::nothing: action = "return"; break;
      case Offer::files: action = "COMPREPLY=($(compgen -f -- \"$word\")); return"; break;
      case Offer::folders: action = "COMPREPLY=($(compgen -d -- \"$word\")); return"; break;
      case Offer::targets:
        action = std::string("COMPREPLY=($(compgen -f -W \"$(") + kTargetNames +
                 ")\" -- \"$word\")); return";
        break;
    }
    text += "    " + joined(patterns, "|") + ") " + action + " ;;\n";
  }
  return text;
}

std::string bash_script(const CommandTree& tree) {
  std::string values, flags;
  for (const CommandEntry& c : tree.commands) {
    values += bash_values(c);
    flags += "    " + c.name + ") flags='" + joined(flags_of(c), " ") + "' ;;\n";
  }
  return "# Completion of tilewright for bash. Made by: tilewright completion bash\n"
         "_tilewright() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= "
         "flags= i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac\n"
         "  done\n"
         "  case \"$command $before\" in\n" +
         values +
         "  esac\n"
         "  case $command in\n"
         "    '') flags='" +
         joined(command_names(tree), " ") + " " + joined(flags_of(tree.program), " ") + "' ;;\n" +
         flags +
         "  esac\n"
         "  case $command,$word in\n"
         "    ,*|*,-*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _tilewright tilewright\n";
}

std::string zsh_text(const std::string& help) {
  std::string out;
  for (const char c : help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CommandOption& option) {
  switch (offer_of(option)) {
    case Offer::nothing: return " ";
    case Offer::files: return "_files";
    case Offer::folders: return "_files -/";
    case Offer::targets: return "_tilewright_targets";
  }
  TW_UNREACHABLE("bad offer");
}

// The arguments of _arguments, a line each.
std::string zsh_arguments(const CommandEntry& entry) {
  std::string text;
  for (const CommandOption& o : entry.options) {
    if (o.argument) continue;
    const std::string value = o.kind.empty() ? "" : ":" + zsh_text(o.kind) + ":" + zsh_action(o);
    for (const std::string& name : o.names)
      text += "        " + quoted("*" + name + "[" + zsh_text(o.help) + "]" + value, "'\\''") +
              " \\\n";
  }
  return text + "        '*:file:_files' ;;\n";
}

std::string zsh_script(const CommandTree& tree) {
  std::string commands, cases;
  for (const CommandEntry& c : tree.commands) {
    commands += "    " + quoted(c.name + ":" + zsh_text(c.summary), "'\\''") + "\n";
    cases += "    " + c.name + ") _arguments \\\n" + zsh_arguments(c);
  }
  return std::string(
             "#compdef tilewright\n"
             "# Completion of tilewright for zsh. Made by: tilewright completion zsh\n"
             "_tilewright_targets() {\n"
             "  local -a names\n"
             "  names=(${(f)\"$(") +
         kTargetNames +
         ")\"})\n"
         "  _alternative 'targets:target:compadd -a names' 'files:file:_files'\n"
         "}\n"
         "_tilewright() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $words[1] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _tilewright tilewright\n";
}

std::string fish_options(const CommandEntry& entry, const std::string& condition) {
  std::string text;
  for (const CommandOption& o : entry.options) {
    if (o.argument) continue;
    text += "complete -c tilewright -n " + quoted(condition, "\\'");
    for (const std::string& name : o.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += " -d " + quoted(o.help, "\\'");
    if (!o.kind.empty()) {
      switch (offer_of(o)) {
        case Offer::nothing: text += " -x"; break;
        case Offer::files: text += " -r -F"; break;
        case Offer::folders: text += " -x -a '(__fish_complete_directories)'"; break;
        case Offer::targets: text += std::string(" -r -F -a \"(") + kTargetNames + ")\""; break;
      }
    }
    text += "\n";
  }
  return text;
}

std::string fish_script(const CommandTree& tree) {
  std::string text = "# Completion of tilewright for fish. Made by: tilewright completion fish\n";
  for (const CommandEntry& c : tree.commands)
    text += "complete -c tilewright -f -n __fish_use_subcommand -a " + c.name + " -d " +
            quoted(c.summary, "\\'") + "\n";
  text += fish_options(tree.program, "__fish_use_subcommand");
  for (const CommandEntry& c : tree.commands)
    text += fish_options(c, "__fish_seen_subcommand_from " + c.name);
  return text;
}

using Script = std::string (*)(const CommandTree&);
constexpr std::array<std::pair<const char*, Script>, 3> kShells = {
    {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

}  // namespace

Expected<std::string> completion_script(const CommandTree& tree, const std::string& shell) {
  for (const auto& [name, script] : kShells)
    if (shell == name) return script(tree);
  return wrong_word("shell", shell, "bash, zsh, fish");
}

}  // namespace tw
