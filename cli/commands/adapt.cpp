// tilewright adapt: fits predictors to a chip by measuring some thousand programs on it.
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "cli/interrupts.h"
#include "cli/progress.h"
#include "cli/targets.h"
#include "cli/text/formatted.h"
#include "driver/dataset/adapt.h"
#include "driver/tune/predictor_files.h"
#include "frontend/frontend.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct AdaptArgs {
  std::string target = "host", worker, data, log, measured, output;
  int samples = 3000, threads = 1, jobs = 0;
  std::optional<uint64_t> seed;
};

// The data set that is installed with the program
std::string shared_data() {
  const std::vector<std::string> dirs = dataset_dirs();
  return dirs.empty() ? "" : dirs.front() + "/tileset-1";
}

Expected<AdaptRequest> request_of(const AdaptArgs& args) {
  AdaptRequest r;
  r.target = args.target, r.target_folders = config_dirs();
  r.predictor_folders = predictor_dirs(), r.kind = kBestPredictor;
  const std::string description = target_file(args.target, r.target_folders);
  if (description.empty() && args.output.empty())
    return make_error(DiagCode::invalid_argument,
                      "adapt writes heads beside a target's description, and '{0}' has none: "
                      "-t FILE.yaml, or -o FILE",
                      args.target);
  r.heads = args.output.empty() ? heads_beside(description) : args.output;
  if (!args.log.empty() && (!args.data.empty() || !args.worker.empty() || !args.measured.empty()))
    return make_error(DiagCode::invalid_argument,
                      "--log takes what a log has measured: leave out --data, --measured and "
                      "--worker");
  r.log = args.log;
  r.measured = args.measured.empty()
                   ? std::filesystem::path(r.heads).replace_extension("measured.db").string()
                   : args.measured;
  r.data = args.data.empty() ? shared_data() : args.data;
  if (r.data.empty() && r.log.empty())
    return make_error(DiagCode::io,
                      "there is no data set here whose programs could be measured: "
                      "--data FOLDER");
  r.samples = args.samples, r.threads = args.threads, r.worker = args.worker;
  r.jobs = threads_or_all(args.jobs), r.seed = args.seed.value_or(1);
  return r;
}

void tell(const AdaptRequest& request, const AdaptOutcome& out, Console& console) {
  if (console.json) {
    const auto held_out = [](const HeldOut& h) {
      return Json::Object{{"top1", h.top1}, {"spread", h.spread}};
    };
    write_json(console, Json::Object{{"target", request.target},
                                     {"tasks", out.tasks},
                                     {"samples", out.samples},
                                     {"before", held_out(out.before)},
                                     {"after", held_out(out.after)},
                                     {"heads", out.kept ? request.heads : ""}});
    return;
  }
  console.out << formatted(
      "%lld programs of %d tasks; of tasks that were held out\n"
      "                top-1  spread (log2)\n"
      "as they are     %.3f  %.3f\n"
      "with heads      %.3f  %.3f\n",
      static_cast<long long>(out.samples), out.tasks, out.before.top1, out.before.spread,
      out.after.top1, out.after.spread);
  if (out.kept) console.out << "wrote " << request.heads << ", which -t finds\n";
  else console.out << "heads gain nothing here: none were written\n";
}

Expected<int> adapt(const AdaptArgs& args, Console& console) {
  TW_ASSIGN(AdaptRequest request, request_of(args));
  FileRoles files;
  files.reads_target(args.target);
  files.writes("the heads", request.heads);
  if (request.log.empty()) files.writes("what was measured", request.measured);
  else files.reads("the tuning log", request.log);
  TW_TRY(files.check());
  const Interrupts interrupts;
  request.stop = &interrupts.asked();
  Progress progress(console);
  progress.begin(request.log.empty() ? "measure" : "read");
  request.watch = [&](const std::string& text) { progress.detail(text); };
  TW_ASSIGN(const AdaptOutcome out, adapt_predictors(request));
  progress.end();
  tell(request, out, console);
  return kExitOk;
}

}  // namespace

CommandRun define_adapt(Flags& flags) {
  auto args = std::make_shared<AdaptArgs>();
  flags.text("-t,--target", args->target, "FILE", "The chip's description, a YAML file");
  flags.text("-o,--output", args->output, "FILE",
             "The heads; default: beside the description, where -t finds them");
  flags.integer("--samples", args->samples, "Programs to measure; default 3000", 64);
  flags.text("--worker", args->worker, "DIR",
             "Another machine measures: the folder that its tilewright-worker serves");
  flags.text("--data", args->data, "FOLDER",
             "A data set whose programs are measured; default: the one that is installed");
  flags.text(
      "--log", args->log, "FILE",
      "Measures nothing: the records of this tuning log count, where a kernel has 8 or more");
  flags.text("--measured", args->measured, "FILE",
             "Keeps what was measured, so that a later call goes on; default: beside the heads");
  flags.integer("--threads", args->threads, "Programs run on so many threads; default 1", 1);
  flags.integer("-j,--jobs", args->jobs, "Programs built at once; 0: one a processor");
  flags.seed("--seed", args->seed, "Of which tasks come first; default 1");
  return [args](Console& console) { return adapt(*args, console); };
}

}  // namespace tw
