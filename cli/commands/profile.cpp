// tilewright profile: times every kernel call of a compiled model, beside what the machine allows.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/commands/timed_library.h"
#include "cli/file_roles.h"
#include "cli/text/kernel_table.h"
#include "driver/run/device_report.h"
#include "driver/run/trace.h"
#include "packager/output_file.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct ProfileArgs {
  TimedArgs timed;
  std::string trace;
};

Error check_files(const ProfileArgs& args) {
  FileRoles files;
  files.reads("the model", args.timed.file);
  files.writes("the trace", args.trace);
  TW_TRY(files.check());
  return args.trace.empty() ? Error::success() : check_writable(args.trace);
}

Error write_trace(const ProfileArgs& args, TimedLibrary& library, int threads) {
  TW_ASSIGN(const RunTrace trace, trace_run(library.api(), library.inputs(), threads));
  return write_file(args.trace, dump(chrome_trace(trace, library.manifest()), -1) + "\n");
}

Expected<int> profile(const ProfileArgs& args, Console& console) {
  TW_TRY(check_files(args));
  const int threads = threads_or_all(args.timed.threads);
  TW_ASSIGN(TimedLibrary library, TimedLibrary::open(args.timed, threads, console));
  TW_ASSIGN(const std::vector<double> ms, library.time_calls(args.timed.timing));
  TW_ASSIGN(const Target target, library.target());
  TW_ASSIGN(const Peaks peaks, measure_peaks(target, threads));
  TW_ASSIGN(const KernelTable table,
            kernel_table(library.manifest(), library.run().symbols(), peaks, ms));
  TW_ASSIGN(const std::vector<DeviceReport> devices, device_reports(library.run()));
  if (!args.trace.empty()) TW_TRY(write_trace(args, library, threads));
  if (!console.json) {
    console.out << to_string(peaks) << "\n"
                << to_string(table, console.columns) << to_string(devices);
    return kExitOk;
  }
  Json::Object result{{"model", library.api().name},
                      {"target", library.api().target},
                      {"threads", threads},
                      {"peaks", to_json(peaks)},
                      {"calls", to_json(table)}};
  if (!devices.empty()) result.push_back({"devices", to_json(devices)});
  write_json(console, result);
  return kExitOk;
}

}  // namespace

CommandRun define_profile(Flags& flags) {
  auto args = std::make_shared<ProfileArgs>();
  declare(flags, args->timed);
  flags.text("--trace", args->trace, "FILE.json",
             "Write one run over time, a lane a thread: for chrome://tracing and Perfetto");
  return [args](Console& console) { return profile(*args, console); };
}

}  // namespace tw
