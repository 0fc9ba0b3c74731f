// tilewright completion and tilewright man: documents that installers put beside the program, made
// from the declared flags.
#include "cli/completion.h"

#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/man_page.h"

namespace tw {
namespace {

void print_document(Console& console, const char* name, const std::string& text) {
  if (console.json) write_json(console, Json::Object{{name, text}});
  else console.out << text;
}

}  // namespace

CommandRun define_completion(Flags& flags) {
  auto shell = std::make_shared<std::string>();
  flags.argument("SHELL", *shell, "bash, zsh or fish");
  return [shell, tree = flags.program()](Console& console) -> Expected<int> {
    TW_ASSIGN(const std::string text, completion_script(tree(), *shell));
    print_document(console, "completion", text);
    return kExitOk;
  };
}

CommandRun define_man(Flags& flags) {
  return [tree = flags.program()](Console& console) -> Expected<int> {
    print_document(console, "man", man_page(tree(), TW_VERSION));
    return kExitOk;
  };
}

}  // namespace tw
