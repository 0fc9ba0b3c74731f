// tilewright reduce: cuts a model down to a small part that fails as the whole does: in compile (an
// error, a crash, a time-out) or in verify.
#include "driver/compare/reduce.h"

#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"

namespace tw {
namespace {

struct ReduceArgs {
  std::string model, output, target = "host";
  std::vector<std::string> dims;
  int seconds = 120;
};

Expected<int> reduce(const ReduceArgs& args, Console& console) {
  const std::string output = args.output.empty() ? args.model + ".reduced.onnx" : args.output;
  FileRoles files;
  files.reads_model(args.model);
  files.reads_target(args.target);
  files.writes("the small model", output);
  TW_TRY(files.check());
  TW_ASSIGN(const auto dims, parse_dims(args.dims));
  TW_ASSIGN(const ReducedModel reduced,
            reduce_model({args.model, output, args.target, dims, args.seconds}, [&](size_t nodes) {
              if (!console.json) console.err << nodes << " nodes\n";
            }));
  if (Error error = files.models_are_unchanged()) {  // the part may mix two versions of the model
    std::remove(output.c_str());
    return error;
  }
  const Failure& failure = reduced.failure;
  if (console.json) {
    write_json(console, Json::Object{{"output", output},
                                     {"step", failure.step},
                                     {"status", failure.status},
                                     {"failure", failure.text},
                                     {"nodes", static_cast<int64_t>(reduced.nodes)},
                                     {"of", static_cast<int64_t>(reduced.of)},
                                     {"operators", reduced.operators}});
  } else {
    console.out << output << ": " << reduced.nodes << " of " << reduced.of << " nodes ("
                << reduced.operators << "), " << failure.step
                << (failure.status < 0 ? " crashes or takes too long"
                                       : " ends with " + std::to_string(failure.status))
                << (failure.text.empty() ? "" : ": " + failure.text) << "\n";
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
