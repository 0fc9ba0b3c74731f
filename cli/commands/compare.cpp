// tilewright compare: shows what changed from one compiled library to another.
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/text/formatted.h"
#include "driver/compare/compare_artifacts.h"
#include "driver/compare/compare_builds.h"

namespace tw {
namespace {

struct CompareArgs {
  std::string before, after;
  double seconds = 0;
  int threads = 1;
  std::vector<std::string> dims;
};

Json times_json(const Comparison& c) {
  return Json::Object{{"before_ms", c.first_ms},
                      {"after_ms", c.second_ms},
                      {"speed_up", c.ratio},
                      {"low", c.interval.low},
                      {"high", c.interval.high}};
}

Expected<int> compare_libraries(const CompareArgs& args, Console& console) {
  TW_ASSIGN(const ComparedBuild before, read_build(args.before));
  TW_ASSIGN(const ComparedBuild after, read_build(args.after));
  TW_ASSIGN(const BuildDifference difference, compare_builds(before, after));
  std::optional<Comparison> times;
  if (args.seconds > 0) {
    CompareOptions options;
    options.seconds = args.seconds / options.processes;
    options.threads = args.threads;
    options.dims = args.dims;
    TW_ASSIGN(times, compare_artifacts(args.before, args.after, options));
  }
  if (console.json) {
    Json::Object out = *to_json(difference).object();
    if (times) out.push_back({"times", times_json(*times)});
    write_json(console, out);
    return kExitOk;
  }
  console.out << to_string(difference, console.columns);
  if (times)
    console.out << formatted("%.4f ms > %.4f ms, %.3f times as fast (%.3f to %.3f with 95 %%)\n",
                             times->first_ms, times->second_ms, times->ratio, times->interval.low,
                             times->interval.high);
  return kExitOk;
}

}  // namespace

CommandRun define_compare(Flags& flags) {
  auto args = std::make_shared<CompareArgs>();
  flags.argument("BEFORE", args->before, "A compiled library, for any target");
  flags.argument("AFTER", args->after, "Another one");
  flags.number("--seconds", args->seconds, "S",
               "Run both for so long, in turns, and say which is faster; default 0: do not run");
  flags.integer("--threads", args->threads,
                "Run on so many threads; 0: as many as this process may use");
  flags.repeated("--dim", args->dims, "NAME=N", "Of the runs: bind a free dimension, batch=4");
  return [args](Console& console) { return compare_libraries(*args, console); };
}

}  // namespace tw
