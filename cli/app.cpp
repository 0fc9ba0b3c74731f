#include "cli/app.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <new>

#include "cli/commands/commands.h"
#include "cli/text/errors_json.h"
#include "cli/version.h"
#include "support/most_like.h"

namespace tw {
namespace {

// Headings of the commands in the help.
constexpr const char* kFromModel = "From a model";
constexpr const char* kWithLibrary = "With a compiled model";
constexpr const char* kSchedules = "Schedules";
constexpr const char* kTargets = "Targets";
constexpr const char* kThisProgram = "This program";

constexpr std::array<Command, 23> kCommands = {{
    {"compile", kFromModel, "Compile an ONNX model into a shared library with its weights inside",
     "  tilewright compile resnet50.onnx\n"
     "  tilewright compile model.onnx -t cortex-a72 -o out/model.so --dim batch=1\n"
     "  tilewright compile model.onnx --emit kernels\n",
     define_compile},
    {"run", kWithLibrary, "Run a compiled model on given or random inputs",
     "  tilewright run model.so --input image=cat.npy --output-dir out\n"
     "  tilewright run model.so --random 1 --dim batch=4 --threads 1\n",
     define_run},
    {"verify", kWithLibrary,
     "Compare a compiled model's outputs with the reference evaluators or stored outputs",
     "  tilewright verify model.so model.onnx\n"
     "  tilewright verify model.so --data test_data_set_0\n"
     "  tilewright verify model.so model.onnx --random 7 --per-node\n",
     define_verify},
    {"bench", kWithLibrary, "Time a compiled model",
     "  tilewright bench model.so --threads 1\n"
     "  tilewright bench model.so --seconds 5 --plan\n"
     "  tilewright bench model.so --runs 100 --json\n",
     define_bench},
    {"profile", kWithLibrary, "Time every kernel call of a compiled model",
     "  tilewright profile model.so --threads 1\n"
     "  tilewright profile model.so --trace run.json\n"
     "  tilewright profile model.onnx --seconds 5 --json\n",
     define_profile},
    {"tune", kSchedules, "Search for faster schedules of a model's kernels on this machine",
     "  tilewright tune resnet18.onnx --log tilewright.db --trials 1000\n"
     "  tilewright tune model.onnx --log tilewright.db --time 10m --until 2%\n"
     "  tilewright tune model.onnx --tuner random --space generated --no-rules --trials 200 --seed "
     "3 --json\n",
     define_tune},
    {"inspect", kFromModel,
     "Show what is in a model (and what cannot be compiled) or in a compiled library",
     "  tilewright inspect model.onnx\n"
     "  tilewright inspect model.so --json\n",
     define_inspect},
    {"targets", kTargets, "List the target descriptions",
     "  tilewright targets\n"
     "  TILEWRIGHT_CONFIGS=my/configs tilewright targets\n",
     define_targets},
    {"target", kTargets, "Print one target description as YAML",
     "  tilewright target host -o laptop.yaml\n"
     "  tilewright target x86-64-v3\n",
     define_target},
    {"opt", kFromModel, "Run graph passes or a schedule on a text file",
     "  tilewright opt graph.txt --passes canonicalize,fold-constants\n"
     "  tilewright opt kernel.txt --schedule tiles.txt --interp 1\n",
     define_opt},
    {"log", kSchedules, "Look into tuning logs, share and merge them",
     "  tilewright log show\n"
     "  tilewright log best --target 0123456789abcdef --log team.db\n"
     "  tilewright log export records.jsonl\n"
     "  tilewright log import records.jsonl --log team.db\n"
     "  tilewright log merge other.db\n"
     "  tilewright log prune --keep 3 --before 2026-01-01 --other-languages\n"
     "  tilewright log diff other.db\n",
     define_log},
    {"dataset", kSchedules, "Measure programs that predictors learn from",
     "  tilewright dataset make set.db --networks models/ --time 20m\n"
     "  tilewright dataset resume set.db --platform x86-64-v3 --time 20m\n"
     "  tilewright dataset split set.db --test resnet,bert\n",
     define_dataset},
    {"adapt", kSchedules, "Fit predictors to a chip by measuring some thousand programs on it",
     "  tilewright adapt -t chip.yaml\n"
     "  tilewright adapt -t board.yaml --worker /shared/spool --samples 1000\n",
     define_adapt},
    {"worker", kSchedules, "Measure on this machine for a tuner that runs elsewhere",
     "  tilewright worker /shared/spool --threads 2\n"
     "  tilewright worker /shared/spool --idle 60\n",
     define_worker},
    {"lock", kSchedules, "Write the schedules of a model's kernels into tilewright.lock beside it",
     "  tilewright lock resnet50.onnx -t cortex-a72\n"
     "  tilewright lock model.onnx --log team.db --threads 2\n",
     define_lock},
    {"space", kSchedules, "Show what tuning could try for the kernels of a model",
     "  tilewright space resnet18.onnx -t x86-64-v3\n"
     "  tilewright space model.onnx --space generated --kernel 3 --sample 5 --seed 7\n"
     "  tilewright space model.onnx --no-rules --json\n",
     define_space},
    {"reduce", kFromModel,
     "Cut a model that fails to compile or to verify down to the nodes that it takes",
     "  tilewright reduce model.onnx -o small.onnx\n"
     "  tilewright reduce model.onnx -t opencl-generic --seconds 30 --json\n",
     define_reduce},
    {"quantize", kFromModel, "Quantize an ONNX model to 8 bits, or its weights alone",
     "  tilewright quantize model.onnx --data samples/ -o model_int8.onnx\n"
     "  tilewright quantize detector.onnx --data pictures/ --inputs inputs.yaml\n"
     "  tilewright quantize model.onnx --data samples/ --max-error 0.02 --json\n"
     "  tilewright quantize language.onnx --weights-only --bits 4 --block 32\n",
     define_quantize},
    {"compare", kWithLibrary, "Show what changed from one compiled library to another",
     "  tilewright compare before.so after.so\n"
     "  tilewright compare before.so after.so --seconds 10 --json\n",
     define_compare},
    {"bundle", kWithLibrary,
     "Put a compiled model, its header, licences and a bill of materials into one file",
     "  tilewright bundle model.so\n"
     "  tilewright bundle model.so -o out/model.tilewright --license LICENSE.txt\n",
     define_bundle},
    {"unbundle", kWithLibrary, "Check a bundle, and take its parts out",
     "  tilewright unbundle model.tilewright\n"
     "  tilewright unbundle model.tilewright -o model/\n",
     define_unbundle},
    {"completion", kThisProgram, "Print what teaches a shell to complete commands and flags",
     "  tilewright completion bash > ~/.local/share/bash-completion/completions/tilewright\n"
     "  tilewright completion zsh\n"
     "  tilewright completion fish\n",
     define_completion},
    {"man", kThisProgram, "Print the manual page", "  tilewright man > tilewright.1\n", define_man},
}};

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 wrong input, 2 wrong usage, 3 unsupported, 4 results differ, 5 files, 6 "
    "not pinned (--frozen), 7 over budget, 8 damaged bundle or library, 70 internal error.\n";

bool wants_color(bool terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return terminal && !(no_color && *no_color) && !(kind && std::string_view(kind) == "dumb");
}

void print_error_line(Console& console, const std::string& text) {
  if (console.color) console.screen << "\033[1;31merror:\033[0m ";
  else console.err << "error: ";
  console.err << text << "\n";
}

// Suggestions for words that name no command, or no flag of their command
std::vector<std::string> misspelled(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* command = nullptr;
  std::vector<std::string> notes, commands;
  for (const Command& known : kCommands) commands.emplace_back(known.name);
  const auto add = [&](std::string_view word, const std::vector<std::string>& known) {
    if (std::string near = did_you_mean(word, known); !near.empty())
      notes.push_back("'" + std::string(word) + "': " + near);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!command && !word.starts_with("-")) {
      const auto named = app.get_subcommands(
          [&](const CLI::App* sub) { return sub->get_name() == word; });
      if (!named.empty()) command = named.front();
      else return add(word, commands), notes;
    } else if (command && word.starts_with("--")) {
      const std::string_view flag = word.substr(0, word.find('='));
      if (command->get_option_no_throw(std::string(flag))) continue;
      std::vector<std::string> flags;
      for (const CLI::Option* option : command->get_options())
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
      add(flag, flags);
    }
  }
  return notes;
}

int usage_error(Console& console, const CLI::ParseError& e, const std::vector<std::string>& notes) {
  const Diag diag{{}, e.what(), {}, notes};
  if (console.json) {
    write_json(console, Json::Object{{"error", Json::Array{to_json(diag, "usage")}}});
  } else {
    print_error_line(console, to_string(diag));
    console.err << "tilewright --help and tilewright COMMAND --help say what there is.\n";
  }
  return kExitUsage;
}

int internal_error(Console& console, const char* what) {
  if (console.json)
    write_json(console,
               Json::Object{{"error", Json::Array{to_json({{}, what, {}, {}}, "internal")}}});
  else print_error_line(console, std::string("internal error: ") + what);
  return kExitInternal;
}

// Parses the command line and runs its command. The caller catches CLI11's exceptions.
Expected<int> dispatch(CLI::App& app, Console& console, int argc, const char* const* argv) {
  app.require_subcommand(1);
  app.footer(kExitCodes);
  app.add_flag("--json", console.json,
               "JSON on standard output, errors too: one document, of tune one a line");
  app.set_version_flag("--version", version_text);
  std::array<std::pair<CLI::App*, CommandRun>, kCommands.size()> runs;
  for (size_t i = 0; i < kCommands.size(); ++i) {
    CLI::App* sub = app.add_subcommand(kCommands[i].name, kCommands[i].summary);
    sub->group(kCommands[i].group);
    sub->footer(std::string("Examples:\n") + kCommands[i].examples + "\n" + kExitCodes);
    Flags flags(*sub);
    runs[i] = {sub, kCommands[i].define(flags)};
    sub->add_flag("--json", console.json,
                  "JSON on standard output, errors too: one document, of tune one a line");
  }
  app.parse(argc, argv);
  for (const auto& [sub, run] : runs)
    if (sub->parsed()) return run(console);
  TW_UNREACHABLE("a command was parsed but is not in the table");
}

}  // namespace

static bool has_word(int argc, const char* const* argv, std::string_view word) {
  return std::any_of(argv + 1, argv + argc, [&](const char* w) { return w == word; });
}

std::span<const Command> all_commands() { return kCommands; }

int exit_code(DiagCode code) {
  switch (code) {
    case DiagCode::invalid_argument:
    case DiagCode::parse:
    case DiagCode::invalid_model:
    case DiagCode::illegal_schedule:
    case DiagCode::limit: return kExitUser;
    case DiagCode::unsupported: return kExitUnsupported;
    case DiagCode::mismatch: return kExitMismatch;
    case DiagCode::io: return kExitIo;
    case DiagCode::not_pinned: return kExitNotPinned;
    case DiagCode::damaged: return kExitDamaged;
    case DiagCode::over_budget: return kExitBudget;
  }
  TW_UNREACHABLE("bad code");
}

void write_json(Console& console, const Json& value) {
  console.out << Printable(true)(dump(value)) << "\n";
}

void write_json_line(Console& console, const Json& value) {
  console.out << Printable(true)(dump(value, -1)) << "\n";
}

void print_errors(Console& console, const std::vector<Diag>& diags) {
  if (console.json) return write_json(console, Json::Object{{"error", errors_json(diags)}});
  for (const Diag& d : diags) print_error_line(console, to_string(d));
}

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const bool terminal = &err == &std::cerr && ::isatty(STDERR_FILENO) == 1;
  PrintableStream shown(out), told(err);
  Console console{shown, told, err, false, terminal, wants_color(terminal)};
  if (const int columns = &out == &std::cout ? terminal_columns(STDOUT_FILENO) : 0; columns > 0)
    console.columns = columns;
  CLI::App app(
      "Tilewright compiles ONNX models ahead of time into self-contained shared libraries.",
      "tilewright");
  int code = kExitOk;
  try {
    Expected<int> result = dispatch(app, console, argc, argv);
    if (result) {
      code = *result;
    } else {
      const std::vector<Diag> diags = take_diags(result.takeError());
      code = diags.empty() ? int{kExitInternal} : exit_code(diags.front().code);
      print_errors(console, diags);
    }
  } catch (const CLI::CallForVersion& e) {
    if (has_word(argc, argv, "--json")) write_json(console, version_json());
    else app.exit(e, out, err);
  } catch (const CLI::Success& e) {  // --help
    app.exit(e, out, err);
  } catch (const CLI::ParseError& e) {
    console.json |= has_word(argc, argv, "--json");
    code = usage_error(console, e, misspelled(app, argc, argv));
  } catch (const std::bad_alloc&) {
    print_errors(console, {{DiagCode::limit, "out of memory", {}, {}}});
    code = kExitUser;
  } catch (const std::exception& e) { code = internal_error(console, e.what()); }
  if (shown.flush() && out) return code;
  print_error_line(console, "cannot write the results to standard output");
  return code == kExitOk ? int{kExitIo} : code;
}

}  // namespace tw
