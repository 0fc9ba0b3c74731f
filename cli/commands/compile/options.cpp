// tilewright compile: turns flags into options, and refuses flags that do not go together.
#include "cli/commands/compile/job.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/default_log.h"
#include "cli/flags.h"
#include "cli/tune_flags.h"
#include "driver/tune/lock_file.h"
#include "packager/output_file.h"

namespace tw {
namespace {

Error check_identifier(const char* flag, const std::string& name) {
  bool good = name.empty() || !(name[0] >= '0' && name[0] <= '9');
  for (const char c : name)
    good &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  if (good) return Error::success();
  return make_error(DiagCode::invalid_argument, "{0} '{1}' is not a C identifier", flag, name);
}

// Refuses prefixes of the header's own names, which begin with tw_ and TW_.
Error check_prefix(const std::string& prefix) {
  TW_TRY(check_identifier("--prefix", prefix));
  if (llvm::StringRef(prefix).lower() != "tw") return Error::success();
  return make_error(DiagCode::invalid_argument,
                    "--prefix '{0}': tw_create, tw_run and the like are Tilewright's own; take "
                    "another word",
                    prefix);
}

Error check_passes(const std::vector<std::string>& names, const char* flag) {
  std::vector<Diag> list;
  for (const std::string& name : names) {
    if (find_pass(name) || (name == "all" && std::string_view(flag) == "--print-after")) continue;
    Diag d{DiagCode::invalid_argument,
           std::string(flag) + ": there is no pass '" + name + "'",
           {},
           {}};
    for (const Pass& pass : all_passes())
      d.notes.push_back(std::string(pass.name) + ": " + pass.summary);
    list.push_back(std::move(d));
  }
  return make_error(std::move(list));
}

Error check_report(const CompileArgs& args, const CompileOptions& options) {
  if (args.report.empty())
    return make_error(DiagCode::invalid_argument, "--report-errors needs --report FILE.html");
  if (args.report_errors > 0 && args.target != "host")
    return make_error(DiagCode::unsupported,
                      "--report-errors runs the library here: it is for the target 'host'");
  if (is_text(options.emit))
    return make_error(DiagCode::invalid_argument, "--report is of a library, --emit {0} is a text",
                      args.emit);
  if (!args.tune.empty() && one_shot_from_text(args.tune) != 0)
    return make_error(DiagCode::unsupported,
                      "--report does not go with a --tune that measures: compile once more, with "
                      "the tuning log as --log");
  return check_writable(args.report);
}

// Refuses flags that an object has no use for, and wrong names of its file.
Error check_object(const CompileArgs& args) {
  const std::string ending = std::filesystem::path(args.output).extension().string();
  if (!args.output.empty() && ending != ".o" && ending != ".a")
    return make_error(DiagCode::invalid_argument,
                      "--emit obj writes an object, NAME.o, or a static library, NAME.a; here "
                      "'{0}'",
                      args.output);
  if (!args.weights.empty())
    return make_error(DiagCode::invalid_argument,
                      "--weights is of a library: --emit obj has its weights inside");
  for (const auto& [flag, given] :
       {std::pair("--tune", !args.tune.empty()),
        std::pair("--budget", !args.budget.empty() && args.budget != kNoBudget),
        std::pair("--junit", !args.junit.empty())})
    if (given)
      return make_error(DiagCode::invalid_argument,
                        "{0} runs the library, and --emit obj writes none: {1}", flag,
                        std::string_view(flag) == "--tune"
                            ? "tune with 'tilewright tune', then compile with --log"
                            : "compile once more with --emit so");
  return Error::success();
}

std::string output_of(const CompileArgs& args, Emit emit) {
  return args.output.empty() ? std::filesystem::path(args.model).stem().string() +
                                   (emit == Emit::object ? ".o" : ".so")
                             : args.output;
}

}  // namespace

bool is_text(Emit emit) {
  switch (emit) {
    case Emit::so:
    case Emit::object: return false;
    case Emit::graph:
    case Emit::groups:
    case Emit::kernels:
    case Emit::schedules:
    case Emit::scheduled:
    case Emit::llvm:
    case Emit::assembly: return true;
  }
  TW_UNREACHABLE("bad emit");
}

ScheduleOptions schedules_of(const CompileArgs& args) {
  return {args.log, lock_beside(args.model), args.frozen, args.threads,
          args.log.empty() ? default_log() : ""};
}

Expected<CompileOptions> options_of(const CompileArgs& args) {
  CompileOptions o;
  const std::optional<Emit> emit = emit_from_name(args.emit);
  if (!emit) return wrong_word("--emit", args.emit, emit_names());
  TW_TRY(check_identifier("--name", args.name));
  TW_TRY(check_prefix(args.prefix));
  TW_TRY(check_passes(args.passes, "--passes"));
  TW_TRY(check_passes(args.print_after, "--print-after"));
  TW_TRY(parse_dims(args.dims, o.dims, o.limits));
  TW_ASSIGN(o.given, args.given.read());
  TW_ASSIGN(o.specialize, parse_specialize(args.specialize));
  // A run takes the last fast path that fits (add_fast_path), so the closest fit comes last.
  std::ranges::stable_sort(o.specialize, {}, &std::map<std::string, int64_t>::size);
  o.model = args.model;
  if (args.output == "-" && !is_text(*emit))
    return make_error(
        DiagCode::invalid_argument,
        "-o -: a library goes to a file; only --emit of a text takes standard output");
  if (*emit == Emit::object) TW_TRY(check_object(args));
  o.output = is_text(*emit) ? (args.output == "-" ? "" : args.output) : output_of(args, *emit);
  o.header = args.header;
  o.weights = args.weights;
  o.name = args.name;
  o.prefix = args.prefix;
  o.emit = *emit;
  o.strict = args.strict;
  o.jobs = args.jobs;
  o.dump_dir = args.dump_dir;
  o.schedules = tuned_schedules(schedules_of(args));
  TW_ASSIGN(o.rounding, args.rounding.read());
  o.pipeline = args.passes;
  o.passes.verify_each = args.verify_each;
#ifdef TW_VERIFY_EACH
  o.passes.verify_each = true;
#endif
  o.passes.limit = args.pass_limit;
  o.passes.print_after = args.print_after;
  o.passes.print_changed = args.print_changed;
  if (!o.output.empty()) TW_TRY(check_writable(o.output));
  if (!o.header.empty()) TW_TRY(check_writable(o.header));
  for (const std::string& file : {args.weights, args.depfile, args.junit})
    if (!file.empty()) TW_TRY(check_writable(file));
  if (!args.report.empty() || args.report_errors > 0) TW_TRY(check_report(args, o));
  TW_TRY(args.verify.check(o));
  return o;
}

}  // namespace tw
