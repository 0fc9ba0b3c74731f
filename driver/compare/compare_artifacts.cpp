#include "driver/compare/compare_artifacts.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "autotune/measure/process.h"
#include "driver/run/model_run.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

constexpr std::string_view kWorker = "compare-worker";
constexpr int kPairs = 5;       // pairs of blocks in a process
constexpr int kLeastPairs = 2;  // for runs longer than a block; each library begins once
constexpr int kMostProcesses = 49;
constexpr double kStartSeconds = 600;  // processor seconds for loading and the first runs

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Contender {
 public:
  static Expected<Contender> create(const std::string& path, int threads,
                                    const std::vector<std::string>& dims) {
    TW_ASSIGN(LoadedModel model, LoadedModel::open(path));
    InputSources flags;
    flags.random = 0;
    flags.dims = dims;
    TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), flags));
    TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), std::move(inputs), threads));
    return Contender(std::move(model), std::move(run));
  }

  Error run() { return run_.run(); }
  // The median time of a run within `seconds`. The first run does not count: it finds the other
  // contender's data in the caches.
  Expected<double> block(double seconds) {
    TW_TRY(run());
    std::vector<double> samples;
    const double start = now();
    double before = start;
    do {
      TW_TRY(run());
      const double after = now();
      samples.push_back(after - before);
      before = after;
    } while (before - start < seconds);
    return median_of(std::move(samples));
  }

 private:
  Contender(LoadedModel model, ModelRun run) : model_(std::move(model)), run_(std::move(run)) {}
  LoadedModel model_;
  ModelRun run_;
};

// A line "first second" for each pair of blocks, in seconds of a run. The two take turns in who
// begins.
Expected<std::string> time_pairs(Contender& first, Contender& second, double seconds) {
  std::string text;
  const double block = seconds / (2 * kPairs), start = now();
  for (int pair = 0; pair < kPairs; ++pair) {
    if (pair == kLeastPairs && now() - start > seconds) break;
    double a = 0, b = 0;
    if (pair % 2) { TW_ASSIGN(b, second.block(block)); }
    TW_ASSIGN(a, first.block(block));
    if (pair % 2 == 0) { TW_ASSIGN(b, second.block(block)); }
    char line[64];
    std::snprintf(line, sizeof line, "%.9g %.9g\n", a, b);
    text += line;
  }
  return text;
}

// A line as of a pair, for one run
Expected<std::string> time_once(Contender& contender) {
  const double start = now();
  TW_TRY(contender.run());
  const std::string seconds = std::to_string(std::max(now() - start, 1e-6));
  return seconds + " " + seconds + "\n";
}

Expected<std::string> serve(int argc, const char* const* argv) {
  const int threads = std::atoi(argv[4]);
  const std::vector<std::string> dims(argv + 6, argv + argc);
  TW_ASSIGN(Contender first, Contender::create(argv[2], threads, dims));
  if (*argv[3] == 0) return time_once(first);
  TW_ASSIGN(Contender second, Contender::create(argv[3], threads, dims));
  return time_pairs(first, second, std::atof(argv[5]));
}

struct Pairs {
  std::vector<double> first, ratio;
};

// Runs one child. It answers with a letter and text: "t" and times, or "e" and an error.
Error add_process(const CompareOptions& options, const std::vector<std::string>& arguments,
                  Pairs& all) {
  TW_ASSIGN(const std::unique_ptr<ChildProcess> child,
            ChildProcess::start(options.program, arguments));
  bool late = false;
  const std::optional<Frame> answer = child->next_frame(kStartSeconds + 10 * options.seconds, late);
  if (!answer) {
    const std::string why = late ? "it took too long" : child->end(true).text;
    if (arguments[2].empty())
      return make_error(DiagCode::io, "'{0}' does not run: {1}", arguments[1], why);
    return make_error(DiagCode::io, "comparing '{0}' and '{1}' failed: {2}", arguments[1],
                      arguments[2], why);
  }
  if (!answer->payload.starts_with("t"))
    return make_error(DiagCode::invalid_argument, "{0}", answer->payload.substr(1));
  Pairs pairs;
  const char* at = answer->payload.c_str() + 1;
  for (double a = 0, b = 0; std::sscanf(at, "%lf %lf", &a, &b) == 2 && a > 0 && b > 0;) {
    pairs.first.push_back(a);
    pairs.ratio.push_back(a / b);
    while (*at && *at != '\n') ++at;
    if (*at) ++at;
  }
  if (pairs.ratio.empty())
    return make_error(DiagCode::io, "comparing '{0}' and '{1}' gave no times", arguments[1],
                      arguments[2]);
  all.first.push_back(median_of(pairs.first));
  all.ratio.push_back(median_of(pairs.ratio));
  return Error::success();
}

// second: "" for one run of the first
std::vector<std::string> worker_arguments(const std::string& first, const std::string& second,
                                          const CompareOptions& options) {
  std::vector<std::string> arguments = {std::string(kWorker), first, second,
                                        std::to_string(options.threads),
                                        std::to_string(options.seconds)};
  arguments.insert(arguments.end(), options.dims.begin(), options.dims.end());
  return arguments;
}

}  // namespace

double compare_seconds(const CompareOptions& options, double run) {
  constexpr double kStart = 0.12;
  constexpr int kLeastRuns = 2 * 2 * kLeastPairs;  // a block has two runs or more
  return options.processes * (std::max(options.seconds, kLeastRuns * run) + kStart);
}

Expected<double> check_runs(const std::string& library, const CompareOptions& options) {
  Pairs one;
  TW_TRY(add_process(options, worker_arguments(library, "", options), one));
  return one.first.front();
}

Expected<Comparison> compare_artifacts(const std::string& first, const std::string& second,
                                       const CompareOptions& options) {
  const std::vector<std::string> arguments = worker_arguments(first, second, options);
  Pairs all;
  const double start = now();
  const auto enough = [&](int done) {
    if (done < options.processes) return false;
    const double each = (now() - start) / done;
    if (options.narrow <= 0 || done >= kMostProcesses ||
        now() - start + each > options.most_seconds)
      return true;
    const MedianInterval interval = median_interval(all.ratio);
    return interval.high - interval.low <= options.narrow * median_of(all.ratio);
  };
  for (int done = 0; done == 0 || !enough(done); ++done)
    TW_TRY(add_process(options, arguments, all));
  Comparison comparison;
  comparison.first_ms = median_of(all.first) * 1e3;
  comparison.ratio = median_of(all.ratio);
  comparison.second_ms = comparison.first_ms / comparison.ratio;
  comparison.interval = median_interval(all.ratio);
  return comparison;
}

bool is_compare_worker(int argc, const char* const* argv) {
  return argc >= 6 && kWorker == argv[1];
}

int compare_worker(int argc, const char* const* argv) {
  Expected<std::string> times = serve(argc, argv);
  const std::string answer = times ? "t" + *times : "e" + error_text(times.takeError());
  return send_frame(STDIN_FILENO, FrameKind::result, answer) ? 0 : 1;
}

}  // namespace tw
