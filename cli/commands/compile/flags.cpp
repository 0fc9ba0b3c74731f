// tilewright compile: its flags, with a function for each heading of the help.
#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/compile/job.h"

namespace tw {
namespace {

void define_file_flags(Flags& flags, CompileArgs& args) {
  flags.text("-t,--target", args.target, "NAME|FILE",
             "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.text("-o,--output", args.output, "FILE",
             "The library; default: the model's name with .so, here; of --emit obj the object, .o, "
             "or static library, .a");
  flags.text("--header", args.header, "FILE", "The C header; default: the library's name with .h");
  flags.text(
      "--weights", args.weights, "FILE",
      "The weights, in a file of their own; default: inside the library. A program finds them "
      "beside the library, or where tw_options.weights says");
  args.runner.define(flags);
  flags.text("--name", args.name, "ID",
             "C identifier of the model: the library exports tw_ID_query; default: the library's "
             "file name without its ending");
  flags.text("--prefix", args.prefix, "ID",
             "C identifier that begins the header's names: ID_run, ID_INPUTS; default: tw_ and the "
             "model's");
  flags.text("--emit", args.emit, "STAGE",
             std::string(
                 "so: a shared library (default); obj: an object or a static library to link; else "
                 "stop there and write its text (to -o; none, or -: standard output): ") +
                 emit_names());
  flags.integer("-j,--jobs", args.jobs, "Kernels compiled at once; 0: one a processor");
}

void define_input_flags(Flags& flags, CompileArgs& args) {
  flags.group("Sizes and inputs");
  flags.repeated(
      "--dim", args.dims, "NAME=N|NAME=A..B[/S]",
      "Bind a free dimension, or say what it may be: batch=1, seq=1..512, multiples of 32 "
      "H=32..960/32, or by input and axis: x[3]=320");
  args.given.define(flags);
  flags.repeated(
      "--specialize", args.specialize, "NAME=N[,NAME=N]",
      "Calls of their own for these sizes of free dimensions, taken while running when they fit");
}

void define_code_flags(Flags& flags, CompileArgs& args) {
  flags.group("Code");
  flags.text(
      "--optimize", args.optimize, "GOAL",
      "speed (default), or size: weights as large as the model's and small code (default for "
      "microcontrollers)");
  flags.flag("--freestanding", args.freestanding,
             "An object that needs no operating system: neither threads nor memory besides the "
             "caller's. It has the target's features without asking for them");
  args.precision.define(flags);
  args.rounding.define(flags);
  args.accuracy.define(flags);
  args.algorithms.define(flags);
  flags.integer(
      "--virtual-threads", args.virtual_threads,
      "Of devices that hide memory's latency with them; 1: none; default: what the target says");
}

void define_schedule_flags(Flags& flags, CompileArgs& args) {
  flags.group("Schedules");
  flags.text("--log", args.log, "FILE",
             "Take schedules from this tuning log; default: from the tilewright.lock beside the "
             "model, where it is there");
  flags.text(
      "--tune", args.tune, "TIME|one-shot[:N]|off",
      "Tune the kernels, and use what was found if the whole network is faster with it: all "
      "that takes 60s, 10m, 1h beside the compile. one-shot: a predictor chooses and nothing "
      "is measured, or N of its candidates for each kernel are. off: not even where the target "
      "has 'schedules: predicted'");
  flags.text(
      "--tuner", args.tuner, "NAME",
      "How --tune chooses candidates, as in 'tilewright tune'; with one-shot:N the predictor: "
      "ranker (default), one-shot, tlp or mtl-tlp");
  flags.integer("--threads", args.threads,
                "Take the records of the log that were measured on so many threads; default 1", 1);
  flags.flag("--frozen", args.frozen,
             "Refuse to compile what the lock beside the model does not pin");
  flags.flag("--strict", args.strict,
             "Write nothing and exit with 70 where a default schedule does not apply, which is a "
             "bug; else the plain one is used, with a warning");
}

void define_build_flags(Flags& flags, CompileArgs& args) {
  flags.group("Builds");
  flags.text("--depfile", args.depfile, "FILE",
             "Write a rule of make there: the files that were written, and those that were read");
  flags.text("--budget", args.budget, "FILE",
             "Fail with 7, and write nothing, where it needs more than the map 'budget' of this "
             "YAML file allows; default: the target's; none: whatever it needs");
  args.cache.define(flags);
  args.verify.define(flags);
  flags.text("--junit", args.junit, "FILE", "Write what became of the budget there, as JUnit");
}

void define_look_flags(Flags& flags, CompileArgs& args) {
  flags.group("Looking inside");
  flags.text("--report", args.report, "FILE.html",
             "A page of the kernels with their schedules and memory; for target host with their "
             "times on this machine, on one thread");
  flags.number("--report-errors", args.report_errors, "S",
               "On the page of --report also how far each kernel's result is from the reference "
               "evaluator's, as far as S seconds allow; default 0: not");
  flags.text("--dump-dir", args.dump_dir, "DIR",
             "Write every stage's text there as numbered files");
  flags.comma_list("--passes", args.passes, "P,P",
                   "Run these graph passes instead of the default ones");
  flags.comma_list("--print-after", args.print_after, "P,P",
                   "Print the graph after these passes, or after 'all'");
  flags.flag("--print-changed", args.print_changed,
             "Print the graph after every pass that changed it");
  flags.flag("--time-passes", args.time_passes, "Print every pass's time");
  flags.integer("--pass-limit", args.pass_limit, "Stop after N passes: bisects a wrong one");
  flags.flag("--verify-each", args.verify_each, "Check the graph after every pass");
}

}  // namespace

CommandRun define_compile(Flags& flags) {
  auto args = std::make_shared<CompileArgs>();
  flags.argument("MODEL", args->model, "The ONNX file");
  define_file_flags(flags, *args);
  define_input_flags(flags, *args);
  define_code_flags(flags, *args);
  define_schedule_flags(flags, *args);
  define_build_flags(flags, *args);
  define_look_flags(flags, *args);
  flags.group("Files from strangers");
  args->untrusted.define(flags);
  args->flags = flags.given();
  return [args](Console& console) { return compile_command(*args, console); };
}

}  // namespace tw
