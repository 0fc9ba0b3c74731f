// tilewright bench: times whole runs, or every kernel call, of a compiled model on one set of inputs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/manifest.h"
#include "cli/model_run.h"
#include "packager/artifact.h"
#include "packager/loaded_model.h"

namespace tw {
namespace {

constexpr int kMaxRuns = 1000000;  // samples kept

struct BenchArgs {
  std::string library;
  InputFlags inputs;
  int threads = 0, runs = 0, warmup = 3;
  double seconds = 1;
  bool per_kernel = false;
};

struct Statistics {
  double min = 0, median = 0, p95 = 0, mean = 0;
};

// p95: the smallest sample that at least 95% of them do not exceed.
Statistics statistics(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Statistics s;
  s.min = samples.front();
  s.median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  s.p95 = samples[(n * 95 + 99) / 100 - 1];
  for (const double v : samples) s.mean += v / static_cast<double>(n);
  return s;
}

std::string padded(const char* pattern, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

// Calls `once` until the count or the time that the flags ask for.
template <class Once>
Error repeat(const BenchArgs& args, const Once& once) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const int most = args.runs > 0 ? args.runs : kMaxRuns;
  for (int i = 0; i < most; ++i) {
    if (args.runs == 0 && i > 0 && std::chrono::duration<double>(Clock::now() - start).count() >= args.seconds) break;
    TW_TRY(once());
  }
  return Error::success();
}

Expected<std::vector<double>> time_runs(const BenchArgs& args, ModelRun& run) {
  std::vector<double> ms;
  TW_TRY(repeat(args, [&]() -> Error {
    const auto start = std::chrono::steady_clock::now();
    TW_TRY(run.run());
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    return Error::success();
  }));
  return ms;
}

// The median milliseconds of every call.
Expected<std::vector<double>> time_calls(const BenchArgs& args, ModelRun& run) {
  const size_t count = static_cast<size_t>(run.api().call_count);
  std::vector<uint64_t> ns(count);
  std::vector<std::vector<double>> samples(count);
  TW_TRY(repeat(args, [&]() -> Error {
    TW_TRY(run.profile(ns));
    for (size_t k = 0; k < count; ++k) samples[k].push_back(static_cast<double>(ns[k]) * 1e-6);
    return Error::success();
  }));
  std::vector<double> out;
  for (std::vector<double>& s : samples) out.push_back(statistics(std::move(s)).median);
  return out;
}

Error bench_calls(const BenchArgs& args, ModelRun& run, Console& console, Json::Object& result) {
  TW_ASSIGN(const std::string text, read_manifest(args.library));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, args.library));
  TW_ASSIGN(const std::vector<double> ms, time_calls(args, run));
  if (manifest.calls.size() != ms.size())
    return make_error(DiagCode::invalid_model, "'{0}': the manifest lists {1} calls, the library has {2}", args.library, manifest.calls.size(), ms.size());
  double total = 0;
  std::vector<size_t> order;
  for (size_t k = 0; k < ms.size(); ++k) {
    total += ms[k];
    order.push_back(k);
  }
  Json::Array list;
  for (size_t k = 0; k < ms.size(); ++k)
    list.push_back(Json::Object{{"name", manifest.calls[k].name}, {"kernel", manifest.kernels[static_cast<size_t>(manifest.calls[k].kernel)].name}, {"ms", ms[k]}});
  result.push_back({"calls", list});
  if (console.json) return Error::success();
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ms[a] != ms[b] ? ms[a] > ms[b] : a < b; });
  console.out << "       ms      %  call\n";
  for (const size_t k : order)
    console.out << padded("%9.4f", ms[k]) << padded("  %5.1f", total > 0 ? 100 * ms[k] / total : 0) << "  "
                << manifest.kernels[static_cast<size_t>(manifest.calls[k].kernel)].name << "  " << manifest.calls[k].name << "\n";
  console.out << padded("%9.4f", total) << "  in " << ms.size() << " calls\n";
  return Error::success();
}

Expected<int> bench(const BenchArgs& args, Console& console) {
  TW_ASSIGN(const LoadedModel model, LoadedModel::open(args.library));
  InputFlags flags = args.inputs;
  if (!flags.random) flags.random = 0;
  TW_ASSIGN(Inputs inputs, load_inputs(input_specs(model.api()), flags));
  TW_ASSIGN(ModelRun run, ModelRun::create(model.api(), std::move(inputs), args.threads));
  for (int i = 0; i < args.warmup; ++i) TW_TRY(run.run());
  TW_ASSIGN(const std::vector<double> ms, time_runs(args, run));
  const Statistics s = statistics(ms);
  Json::Object result{{"model", model.api().name}, {"target", model.api().target}, {"threads", args.threads}, {"min", s.min},
                      {"median", s.median}, {"p95", s.p95}, {"mean", s.mean}, {"ms", json_array(ms)}};
  if (!console.json)
    console.out << model.api().name << ": min " << padded("%.4f", s.min) << " ms, median " << padded("%.4f", s.median) << " ms, p95 "
                << padded("%.4f", s.p95) << " ms in " << ms.size() << " runs\n";
  if (args.per_kernel) TW_TRY(bench_calls(args, run, console, result));
  if (console.json) write_json(console, result);
  return kExitOk;
}

}  // namespace

CommandRun define_bench(Flags& flags) {
  auto args = std::make_shared<BenchArgs>();
  flags.argument("LIBRARY", args->library, "The compiled model");
  args->inputs.declare(flags);
  flags.integer("--threads", args->threads, "0: as many as this process may use");
  flags.integer("--runs", args->runs, "So many runs; 0: as many as --seconds allows");
  flags.number("--seconds", args->seconds, "S", "For how long, when --runs does not say; at least one run; default 1");
  flags.integer("--warmup", args->warmup, "Runs before the clock starts; default 3");
  flags.flag("--per-kernel", args->per_kernel, "Then time every kernel call, by the median");
  return [args](Console& console) { return bench(*args, console); };
}

}  // namespace tw
