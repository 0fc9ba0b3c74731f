// tilewright reduce: the smallest part of a model that still fails as the whole one does, in
// compile (refused, a crash, a time-out) or in verify.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Program.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cli/commands/commands.h"
#include "cli/commands/reduce.h"
#include "cli/file_roles.h"
#include "driver/run/temporary_folder.h"
#include "frontend/frontend.h"
#include "support/diag.h"

namespace tw {
namespace {

struct ReduceArgs {
  std::string model, output, target = "host";
  std::vector<std::string> dims;
  int seconds = 120;
};

struct Outcome {
  std::string step;  // "" where nothing fails
  int status = 0;    // exit status; below 0: a signal or the time-out
  // What went wrong: the error's code and words without numbers, or what is off; "": nobody said
  std::string failure;
  bool operator==(const Outcome&) const = default;
};

// Numbers, and lists of them, are those of one part; names, operators and words stay.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    else if (!out.ends_with('#')) out += '#';
    for (const char* twice : {"#.#", "#, #", "#x#", "-#"})
      if (out.ends_with(twice))
        out.replace(out.size() - std::strlen(twice), std::string::npos, "#");
  }
  return out;
}

}  // namespace

// compile's and verify's --json: the first error, its code and message; else how outputs are off.
std::string failure_of(const std::string& json) {
  Expected<Json> said = parse_json(json, "output");
  if (!said) return llvm::consumeError(said.takeError()), "";
  if (const auto& errors = (*said)["error"].items(); !errors.empty())
    return errors[0]["code"].text_or_empty() + ": " +
           without_numbers(errors[0]["message"].text_or_empty());
  bool problem = false, not_a_number = false;
  std::string text;
  for (const Json& output : (*said)["outputs"].items()) {
    const Json& difference = output["difference"];
    if (const bool* ok = difference["ok"].boolean(); !ok || *ok) continue;
    if (const std::string words = difference["problem"].text_or_empty(); !words.empty())
      problem = true, text = without_numbers(words);
    // One side has no number there
    not_a_number |= !std::isfinite(difference["max_abs"].number_or(HUGE_VAL));
  }
  return problem        ? text
         : not_a_number ? "no number where there should be one, or the other way round"
                        : "values are off";
}

namespace {

class Reducer {
 public:
  Reducer(const ReduceArgs& args, const CutModel& model, const std::string& folder,
          Console& console)
      : args_(args),
        model_(model),
        program_(llvm::sys::fs::getMainExecutable("", reinterpret_cast<void*>(&define_reduce))),
        folder_(folder),
        console_(console) {}

  // What becomes of these nodes; nothing fails where they make no model.
  Expected<Outcome> outcome(const std::vector<size_t>& nodes) {
    const std::optional<std::string> bytes = model_.cut(nodes);
    if (!bytes) return Outcome{};
    const std::string model = folder_ + "/part.onnx", library = folder_ + "/part.so";
    TW_TRY(write(model, *bytes));
    for (const auto& [step, command] :
         {std::pair("compile",
                    std::vector{program_, std::string("compile"), model, std::string("-t"),
                                args_.target, std::string("-o"), library}),
          {"verify", {program_, "verify", library, model}}})
      if (const int status = run(command); status != kExitOk)
        return Outcome{step, status, status < 0 ? "" : failure_of(said())};
    return Outcome{};
  }

  // Leaves out parts, ever smaller ones, as long as what is left fails in the same way.
  Expected<std::vector<size_t>> reduce(std::vector<size_t> nodes, const Outcome& wanted) {
    for (size_t part = (nodes.size() + 1) / 2; part > 0;) {
      bool smaller = false;
      for (size_t first = 0; first < nodes.size() && nodes.size() > 1;) {
        std::vector<size_t> rest = nodes;
        const size_t count = std::min(part, nodes.size() - first);
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(first),
                   rest.begin() + static_cast<std::ptrdiff_t>(first + count));
        bool fails = false;
        if (!rest.empty()) {
          TW_ASSIGN(const Outcome found, outcome(rest));
          fails = found == wanted;
        }
        if (!fails) {
          first += count;
          continue;
        }
        nodes = std::move(rest);
        smaller = true;
        if (!console_.json) console_.err << nodes.size() << " nodes\n";
      }
      if (part == 1 && !smaller) break;
      part = smaller ? std::min(part, (nodes.size() + 1) / 2) : part / 2;
    }
    return nodes;
  }

  static Error write(const std::string& path, const std::string& bytes) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code) out << bytes;
    out.close();
    if (code || out.has_error()) {
      out.clear_error();
      return make_error(DiagCode::io, "cannot write '{0}'", path);
    }
    return Error::success();
  }

 private:
  int run(const std::vector<std::string>& command) const {
    std::vector<llvm::StringRef> words(command.begin(), command.end());
    words.push_back("--json");
    const std::string out = folder_ + "/said.json";
    llvm::sys::fs::remove(out);  // it would be written over, not cut off
    const std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), llvm::StringRef(out),
                                                      llvm::StringRef()};
    return llvm::sys::ExecuteAndWait(program_, words, std::nullopt, streams,
                                     static_cast<unsigned>(args_.seconds));
  }
  std::string said() const {
    auto text = llvm::MemoryBuffer::getFile(folder_ + "/said.json");
    return text ? (*text)->getBuffer().str() : "";
  }

  const ReduceArgs& args_;
  const CutModel& model_;
  std::string program_, folder_;
  Console& console_;
};

Expected<int> reduce(const ReduceArgs& args, Console& console) {
  const std::string output = args.output.empty() ? args.model + ".reduced.onnx" : args.output;
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  files.writes("the small model", output);
  TW_TRY(files.check());
  TW_ASSIGN(const auto dims, parse_dims(args.dims));
  TW_ASSIGN(const CutModel model, CutModel::open(args.model, dims));
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  Reducer reducer(args, model, folder.path(), console);
  std::vector<size_t> nodes(model.node_count());
  std::iota(nodes.begin(), nodes.end(), size_t{0});
  TW_ASSIGN(const Outcome wanted, reducer.outcome(nodes));
  if (wanted.step.empty())
    return make_error(DiagCode::invalid_argument,
                      "nothing fails: '{0}' compiles, and verify finds no difference", args.model);
  TW_ASSIGN(nodes, reducer.reduce(nodes, wanted));
  TW_TRY(Reducer::write(output, *model.cut(nodes)));
  if (console.json) {
    write_json(console, Json::Object{{"output", output},
                                     {"step", wanted.step},
                                     {"status", wanted.status},
                                     {"failure", wanted.failure},
                                     {"nodes", static_cast<int64_t>(nodes.size())},
                                     {"of", static_cast<int64_t>(model.node_count())},
                                     {"operators", model.operators(nodes)}});
  } else {
    console.out << output << ": " << nodes.size() << " of " << model.node_count() << " nodes ("
                << model.operators(nodes) << "), " << wanted.step
                << (wanted.status < 0 ? " crashes or takes too long"
                                      : " ends with " + std::to_string(wanted.status))
                << (wanted.failure.empty() ? "" : ": " + wanted.failure) << "\n";
  }
  return int{kExitOk};
}

}  // namespace

CommandRun define_reduce(Flags& flags) {
  auto args = std::make_shared<ReduceArgs>();
  flags.argument("MODEL", args->model,
                 "An ONNX file whose compile or verify fails; its weights are inside");
  flags.text("-o,--output", args->output, "FILE",
             "Where the small model goes; default: MODEL.reduced.onnx");
  flags.text("-t,--target", args->target, "NAME|FILE", "As of compile");
  flags.repeated("--dim", args->dims, "NAME=N",
                 "Bind a symbolic dimension, before anything is cut: batch=1");
  flags.integer("--seconds", args->seconds, "What takes longer counts as hanging", 1);
  return [args](Console& console) { return reduce(*args, console); };
}

}  // namespace tw
