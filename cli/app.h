// The command line as a function: sub-commands in a table, one place for exit codes and for how
// errors are printed.
#pragma once
#include <functional>
#include <iosfwd>
#include <span>

#include "cli/flags.h"
#include "cli/text/printable.h"
#include "cli/text/text_width.h"
#include "support/diag.h"
#include "support/json.h"

namespace tw {

// Documented in docs/reference/cli.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitUser = 1,         // a wrong file, name, shape, schedule, ...
  kExitUsage = 2,        // flags that do not parse
  kExitUnsupported = 3,  // a valid model or request that this version cannot serve
  kExitMismatch = 4,     // results differ
  kExitIo = 5,           // a file cannot be read or written
  kExitNotPinned = 6,    // the lock lacks what --frozen asks for
  kExitBudget = 7,       // more than the budget allows
  kExitDamaged = 8,      // a bundle or a library is not what was written
  kExitInternal = 70,    // a bug of the compiler
};
int exit_code(DiagCode code);

// The streams of a sub-command: results go to `out`, everything else to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  std::ostream& screen;   // `err` unfiltered, for codes that move the cursor
  bool json = false;      // --json: JSON on `out`, one document, or lines for tune
  bool terminal = false;  // `err` is a terminal: progress may redraw its line
  bool color = false;
  int columns = kPlainColumns;  // width of a table on `out`
};
void write_json(Console& console, const Json& value);
void write_json_line(Console& console, const Json& value);

// The exit code, or the error to print. kExitMismatch and the like are for commands that printed a
// full result.
using CommandRun = std::function<Expected<int>(Console&)>;

struct Command {
  const char* name;
  const char* group;  // heading in the help
  const char* summary;
  const char* examples;  // a command line each
  CommandRun (*define)(
      Flags& flags);  // declares its flags; the result is called once they are parsed
};
std::span<const Command> all_commands();

// Never throws or exits. Colours and live progress need `err` to be std::cerr on a terminal.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

// Human: "error: file:line:col: message"; JSON: {"error": [{"code", "message", "file", "line",
// "column", "notes"}]} on out.
void print_errors(Console& console, const std::vector<Diag>& diags);

}  // namespace tw
