#include "driver/run/trace.h"

#include <algorithm>

#include "driver/run/model_run.h"

namespace tw {
namespace {

constexpr int kRunsBefore = 2;  // untraced runs, which fill caches and touch memory
constexpr int64_t kProcess = 1;
constexpr int64_t kCallLane = 0;  // thread t has lane t + 1

double microseconds(uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

Json lane_name(int64_t lane, const std::string& name) {
  return Json::Object{{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", kProcess},
                      {"tid", lane},
                      {"args", Json::Object{{"name", name}}}};
}

Json slice(const std::string& name, int64_t lane, uint64_t begin, uint64_t ns, Json args) {
  return Json::Object{{"ph", "X"},
                      {"name", name},
                      {"pid", kProcess},
                      {"tid", lane},
                      {"ts", microseconds(begin)},
                      {"dur", microseconds(ns)},
                      {"args", std::move(args)}};
}

std::vector<size_t> calls_of(const RunTrace& trace) {
  std::vector<size_t> calls;
  for (size_t c = 0; c < trace.call_ns.size(); ++c)
    if (trace.call_ns[c] > 0) calls.push_back(c);
  return calls;
}

// The begin of a call. A profile tells how long a call took, not when it began. The call ends with
// the last of its parts, if it has any, and begins before them.
uint64_t begin_of(std::span<const LoopPart> parts, uint64_t ns, uint64_t otherwise) {
  if (parts.empty()) return otherwise;
  uint64_t end = 0;
  for (const LoopPart& part : parts) end = std::max(end, part.end);
  return std::min(parts.front().begin, end - std::min(ns, end));
}

std::string kernel_of(const ManifestCall& call, const Manifest& manifest) {
  return call.kernel < 0 ? call.function : manifest.kernels[static_cast<size_t>(call.kernel)].name;
}

}  // namespace

Expected<RunTrace> trace_run(const tw_api& api, const Inputs& inputs, int threads) {
  RecordingPool pool(threads);
  TW_ASSIGN(ModelRun run, ModelRun::create(api, inputs, threads, &pool.parallel()));
  for (int i = 0; i < kRunsBefore; ++i) TW_TRY(run.run());
  RunTrace trace;
  trace.call_ns.resize(static_cast<size_t>(api.call_count));
  pool.record(trace.call_ns);
  trace.begin = pool.now();
  TW_TRY(run.profile(trace.call_ns));
  trace.end = pool.now();
  trace.parts = pool.parts();
  return trace;
}

Json chrome_trace(const RunTrace& trace, const Manifest& manifest) {
  Json::Array events{lane_name(kCallLane, "kernel calls")};
  int32_t threads = 0;
  for (const LoopPart& part : trace.parts) threads = std::max(threads, part.thread + 1);
  for (int32_t t = 0; t < threads; ++t)
    events.push_back(lane_name(t + 1, "thread " + std::to_string(t)));

  const std::vector<size_t> calls = calls_of(trace);
  uint64_t done = trace.begin;
  auto next = trace.parts.begin();
  for (size_t n = 0; n < calls.size(); ++n) {
    const ManifestCall& call = manifest.calls[calls[n]];
    const uint64_t ns = trace.call_ns[calls[n]];
    const auto first = next;
    while (next != trace.parts.end() && static_cast<size_t>(next->calls_before) <= n) ++next;
    const uint64_t begin = std::max(done, begin_of({first, next}, ns, done));
    events.push_back(slice(call.name, kCallLane, begin - trace.begin, ns,
                           Json::Object{{"kernel", kernel_of(call, manifest)}}));
    done = begin + ns;
    for (auto part = first; part != next; ++part)
      events.push_back(slice(call.name, part->thread + 1, part->begin - trace.begin,
                             part->end - part->begin,
                             Json::Object{{"first", part->first}, {"last", part->last - 1}}));
  }
  return Json::Object{
      {"displayTimeUnit", "ns"},
      {"otherData",
       Json::Object{{"model", manifest.name}, {"run_us", microseconds(trace.end - trace.begin)}}},
      {"traceEvents", events}};
}

}  // namespace tw
