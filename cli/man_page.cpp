#include "cli/man_page.h"

namespace tw {
namespace {

// Escapes text for troff: no line of it is a request, and hyphens are those of the keyboard.
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out;
}

std::string option_text(const CommandOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + ("\\fB" + plain(name) + "\\fR");
  return ".TP\n" + names + (option.kind.empty() ? "" : " \\fI" + plain(option.kind) + "\\fR") +
         "\n" + plain(option.help) + "\n";
}

std::string arguments_text(const CommandEntry& entry) {
  std::string text;
  for (const CommandOption& o : entry.options)
    if (o.argument) text += " \\fI" + plain(o.names.front()) + "\\fR";
  return text;
}

std::string options_text(const CommandEntry& entry) {
  std::string text;
  for (const CommandOption& o : entry.options)
    if (o.argument) text += option_text(o);
  std::string group;
  for (const CommandOption& o : entry.options) {
    if (o.argument) continue;
    if (o.group != group) text += ".PP\n\\fI" + plain(o.group) + "\\fR\n";
    group = o.group;
    text += option_text(o);
  }
  return text;
}

// The examples of a footer without the exit codes, which the page has once
std::string examples_text(const CommandEntry& entry, const std::string& exit_codes) {
  std::string footer = entry.footer;
  if (footer.ends_with(exit_codes)) footer.resize(footer.size() - exit_codes.size());
  while (footer.ends_with("\n")) footer.pop_back();
  return ".PP\n.nf\n" + plain(footer) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CommandTree& tree, const std::string& version) {
  std::string text = ".TH TILEWRIGHT 1 \"\" \"Tilewright " + plain(version) +
                     "\" \"User Commands\"\n"
                     ".SH NAME\ntilewright \\- ahead\\-of\\-time compiler for ONNX models\n"
                     ".SH SYNOPSIS\n\\fBtilewright\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
                     ".SH DESCRIPTION\n" +
                     plain(tree.program.summary) + "\n.SH OPTIONS\n" + options_text(tree.program) +
                     ".SH COMMANDS\n";
  for (const CommandEntry& c : tree.commands)
    text += ".SS \"tilewright " + plain(c.name) + arguments_text(c) + " [OPTIONS]\"\n" +
            plain(c.summary) + ".\n" + options_text(c) + examples_text(c, tree.program.footer);
  return text + ".SH EXIT STATUS\n" + plain(tree.program.footer);
}

}  // namespace tw
