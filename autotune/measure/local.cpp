#include "autotune/measure/local.h"

#include <csignal>
#include <cstdio>

#include "autotune/measure/message.h"
#include "autotune/measure/process.h"
#include "autotune/measure/team.h"
#include "autotune/measure/worker.h"

namespace tw {
namespace {

// Seconds beyond the time-out, which the worker enforces itself where it can
constexpr double kGrace = 0.25;
constexpr double kPrepareSeconds = 120;  // processor seconds to start, make inputs and load

}  // namespace

struct LocalTransport::State {
  LocalOptions options;
  std::unique_ptr<ChildProcess> process;
  std::string device, cores;
  int started = 0, jobs = 0;  // jobs counts those of this process

  Error renew();
  Expected<MeasureResult> ask(const std::string& job, double timeout, int threads);
};

Error LocalTransport::State::renew() {
  process.reset();
  TW_ASSIGN(process, ChildProcess::start(options.program, {std::string(kMeasureWorker), cores}));
  bool late = false;
  std::optional<Frame> hello = process->next_frame(kPrepareSeconds, late);
  if (!hello || hello->kind != FrameKind::hello) {
    const std::string how = process->end(!late).text;
    process.reset();
    return make_error(DiagCode::io, "'{0} {1}' does not measure: {2}", options.program,
                      kMeasureWorker, how);
  }
  device = std::move(hello->payload);
  ++started;
  jobs = 0;
  return Error::success();
}

// The process's answer, or the way in which it failed; then the process is gone. Error: the answer
// is no result.
Expected<MeasureResult> LocalTransport::State::ask(const std::string& job, double timeout,
                                                   int threads) {
  ++jobs;
  bool late = false;
  process->send(FrameKind::job, job);  // if this fails, no answer comes either
  std::optional<Frame> frame = process->next_frame(kPrepareSeconds, late);
  if (frame && frame->kind == FrameKind::started)
    frame = process->next_frame((timeout + kGrace) * threads, late);
  if (frame && frame->kind == FrameKind::result) return result_from_bytes(frame->payload);
  const ChildProcess::End end = process->end(!late && !frame);
  process.reset();
  MeasureResult failed;
  failed.device = device;
  const bool timed_out = late || end.signal == SIGPROF;
  failed.status = timed_out ? Status::timeout : Status::crashed;
  char limit[64];
  std::snprintf(limit, sizeof limit, "took more than %.2f s", timeout);
  failed.error = timed_out ? limit : end.text;
  return failed;
}

LocalTransport::LocalTransport(std::unique_ptr<State> state) : state_(std::move(state)) {}
LocalTransport::~LocalTransport() = default;
std::string LocalTransport::device() const { return state_->device; }
int LocalTransport::workers_started() const { return state_->started; }

Expected<std::unique_ptr<LocalTransport>> LocalTransport::create(const LocalOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const std::vector<int> cores = last_cores(options.threads);
  if (static_cast<int>(cores.size()) < options.threads)
    return make_error(DiagCode::invalid_argument,
                      "{0} threads are to be measured, and this process may use {1} cores",
                      options.threads, cores.size());
  for (const int core : cores)
    state->cores += (state->cores.empty() ? "" : ",") + std::to_string(core);
  TW_TRY(state->renew());
  return std::unique_ptr<LocalTransport>(new LocalTransport(std::move(state)));
}

std::vector<MeasureResult> LocalTransport::run(std::span<const MeasureJob> jobs) {
  std::vector<MeasureResult> results;
  for (const MeasureJob& job : jobs) results.push_back(run(job));
  return results;
}

MeasureResult LocalTransport::run(const MeasureJob& job) {
  const std::string bytes = to_bytes(job);
  while (true) {
    MeasureResult failed;
    failed.status = Status::crashed;
    failed.device = state_->device;
    if (!state_->process) {
      if (Error error = state_->renew()) {
        failed.error = error_text(std::move(error));
        return failed;
      }
    }
    Expected<MeasureResult> result = state_->ask(bytes, job.limits.timeout, job.threads);
    if (!result) {
      failed.error = error_text(result.takeError());
      state_->process.reset();
    }
    const Status status = result ? result->status : Status::crashed;
    // The candidate may have written to memory outside of its outputs.
    if (status == Status::wrong_result) state_->process.reset();
    // An earlier candidate may have damaged a process that crashes, so the job runs again in a
    // fresh one.
    if (status == Status::crashed && state_->jobs > 1) continue;
    return result ? std::move(*result) : failed;
  }
}

}  // namespace tw
