// tilewright bench: times whole runs of a compiled model on one set of inputs.
#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/commands/timed_library.h"
#include "cli/text/kernel_table.h"
#include "cli/text/thread_plan.h"
#include "driver/run/device_report.h"
#include "support/parallel.h"

namespace tw {
namespace {

struct BenchArgs {
  TimedArgs timed;
  bool plan = false, roofline = false;
};

std::string padded(const char* pattern, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

Error plan_threads(const BenchArgs& args, TimedLibrary& library, Console& console,
                   Json::Object& result) {
  TW_ASSIGN(const std::vector<double> ms, library.time_calls(args.timed.timing));
  TW_ASSIGN(const Target target, library.target());
  TW_ASSIGN(const ThreadPlan plan, thread_plan(library.manifest(), library.run().symbols(), target,
                                               threads_or_all(args.timed.threads), ms));
  result.push_back({"plan", to_json(plan)});
  if (!console.json) console.out << to_string(plan, console.columns);
  return Error::success();
}

Error hold_against_roof(const BenchArgs& args, TimedLibrary& library, Console& console,
                        Json::Object& result) {
  TW_ASSIGN(const std::vector<double> ms, library.time_calls(args.timed.timing));
  TW_ASSIGN(const Target target, library.target());
  TW_ASSIGN(const Peaks peaks, measure_peaks(target, threads_or_all(args.timed.threads)));
  TW_ASSIGN(const KernelTable table,
            kernel_table(library.manifest(), library.run().symbols(), peaks, ms));
  const std::vector<KernelClass> classes = kernel_classes(table);
  result.push_back({"peaks", to_json(peaks)});
  result.push_back({"classes", to_json(classes)});
  if (!console.json) console.out << to_string(peaks) << "\n" << to_string(classes);
  return Error::success();
}

Expected<int> bench(const BenchArgs& args, Console& console) {
  // The plan is worked out from the times of one thread.
  const int threads = args.plan ? 1 : args.timed.threads;
  TW_ASSIGN(TimedLibrary library, TimedLibrary::open(args.timed, threads, console));
  TW_ASSIGN(const std::vector<double> ms, time_runs(library.run(), args.timed.timing));
  const Statistics s = statistics(ms);
  Json::Object result{{"model", library.api().name},
                      {"target", library.api().target},
                      {"threads", threads},
                      {"min", s.min},
                      {"median", s.median},
                      {"p95", s.p95},
                      {"mean", s.mean},
                      {"ms", json_array(ms)}};
  if (!console.json)
    console.out << library.api().name << ": min " << padded("%.4f", s.min) << " ms, median "
                << padded("%.4f", s.median) << " ms, p95 " << padded("%.4f", s.p95) << " ms in "
                << ms.size() << " runs\n";
  TW_ASSIGN(const std::vector<DeviceReport> devices, device_reports(library.run()));
  if (!devices.empty()) result.push_back({"devices", to_json(devices)});
  if (!console.json) console.out << to_string(devices);
  if (args.plan) TW_TRY(plan_threads(args, library, console, result));
  if (args.roofline) TW_TRY(hold_against_roof(args, library, console, result));
  if (console.json) write_json(console, result);
  return kExitOk;
}

}  // namespace

CommandRun define_bench(Flags& flags) {
  auto args = std::make_shared<BenchArgs>();
  declare(flags, args->timed);
  flags.flag("--plan", args->plan,
             "Run on one thread, and work out what --threads of any number would make of it: "
             "shares, imbalance, fork-joins");
  flags.flag("--roofline", args->roofline,
             "Then time every call, and say by class of kernels what the machine's peaks allow, "
             "what is lost against them, and which of them limits it");
  return [args](Console& console) { return bench(*args, console); };
}

}  // namespace tw
