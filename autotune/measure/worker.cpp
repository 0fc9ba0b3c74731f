#include "autotune/measure/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <optional>

#include "autotune/measure/data.h"
#include "autotune/measure/device.h"
#include "autotune/measure/device_run.h"
#include "autotune/measure/frames.h"
#include "autotune/measure/job_memory.h"
#include "autotune/measure/message.h"
#include "autotune/measure/sampler.h"
#include "autotune/measure/team.h"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;
using Function = void (*)(void* const* buffers, void* workspace, const int64_t* symbols,
                          const tw_parallel* parallel);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Four chains of multiplications. While nobody else uses the core, their time depends on the clock
// only.
double sentinel() {
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 2; ++attempt) {  // one interrupt must not look like a neighbour
    const auto start = Clock::now();
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (int i = 0; i < 20000; ++i) {
      a = a * 0x5851f42d4c957f2d + 1;
      b = b * 0x5851f42d4c957f2d + 1;
      c = c * 0x5851f42d4c957f2d + 1;
      d = d * 0x5851f42d4c957f2d + 1;
    }
    asm volatile("" : : "r"(a ^ b ^ c ^ d));  // makes the compiler keep the result
    least = std::min(least, seconds_since(start));
  }
  return least;
}

Probe probe() {
  const double seconds = sentinel();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {seconds, usage.ru_nivcsw};
}

// A library loaded from memory. The file stays open as long as the library does: the loader knows
// libraries by name, and this one's name holds the file's number.
class Library {
 public:
  explicit Library(const std::string& bytes) {
    file_ = ::memfd_create("candidate", MFD_CLOEXEC);
    for (size_t at = 0; file_ >= 0 && at < bytes.size();) {
      const ssize_t done = ::write(file_, bytes.data() + at, bytes.size() - at);
      if (done <= 0) return;
      at += static_cast<size_t>(done);
    }
    handle_ = ::dlopen(("/proc/self/fd/" + std::to_string(file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_) ::dlclose(handle_);
    if (file_ >= 0) ::close(file_);
  }
  void* handle() const { return handle_; }

 private:
  int file_ = -1;
  void* handle_ = nullptr;
};

// Ends the process once the candidate has used this much processor time.
void limit_time(double seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

// No data comes over the socket while a candidate runs, so an event there means that the tuner is
// gone. SIGIO then ends this process.
void end_with_tuner(int socket, bool on) {
  ::fcntl(socket, F_SETOWN, ::getpid());
  const int flags = ::fcntl(socket, F_GETFL);
  ::fcntl(socket, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
}

class Worker {
 public:
  Worker(int socket, Team& team)
      : socket_(socket), team_(team), cold_bytes_(static_cast<uint64_t>(cold_bytes())) {
    result_.device = device_fingerprint();
    usual_sentinel_ = sentinel();
    for (int i = 0; i < 10; ++i) usual_sentinel_ = std::min(usual_sentinel_, sentinel());
  }

  const std::string& device() const { return result_.device; }

  MeasureResult run(const MeasureJob& job) {
    MeasureResult result = result_;
    const auto fail = [&](Status status, const std::string& error) {
      result.status = status;
      result.error = one_line(error);
      return result;
    };
    if (job.threads > team_.size())
      return fail(Status::illegal, "the job wants " + std::to_string(job.threads) +
                                       " threads, this process has " +
                                       std::to_string(team_.size()));
    const Library library(job.library);
    if (!library.handle())
      return fail(Status::compile_error, std::string("the library does not load: ") + ::dlerror());
    std::string absent;
    const auto find = [&](const std::string& name) {
      void* const found = ::dlsym(library.handle(), name.c_str());
      if (!found) absent = name;
      return found;
    };
    void* const symbol = find(job.symbol);
    std::vector<PackFunction> packs;
    for (const BufferSpec& buffer : job.buffers)
      packs.push_back(buffer.pack.empty() ? nullptr
                                          : reinterpret_cast<PackFunction>(find(buffer.pack)));
    if (!absent.empty())
      return fail(Status::compile_error, "the library has no function '" + absent + "'");
    if (!memory_ || !memory_->serves(job)) {
      memory_.reset();
      Expected<JobMemory> memory = JobMemory::create(job, cold_bytes_, packs);
      if (!memory) return fail(Status::illegal, error_text(memory.takeError()));
      memory_.emplace(std::move(*memory));
    }
    if (Error error = memory_->prepare(job.workspace_bytes))
      return fail(Status::illegal, error_text(std::move(error)));
    std::optional<DeviceRun> device;
    // The time includes neither the device's compiler nor the copies of constants.
    if (job.artifact) {
      Expected<DeviceRun> made = DeviceRun::create(reinterpret_cast<tw_query_fn>(symbol), job,
                                                   *memory_);
      if (!made) return fail(Status::compile_error, error_text(made.takeError()));
      device.emplace(std::move(*made));
    }
    if (!job.expected.empty() && job.expected.size() != output_bytes(job.buffers))
      return fail(Status::illegal, "the expected outputs are not of the outputs' size");

    send_frame(socket_, FrameKind::started, "");
    limit_time((2 * job.limits.timeout + 1) * job.threads);
    end_with_tuner(socket_, true);
    if (job.threads > 1) team_.begin();
    if (device) time(job, [&](int64_t runs) { return device->run(runs); }, result);
    else time(job, reinterpret_cast<Function>(symbol), result);
    team_.end();
    end_with_tuner(socket_, false);
    limit_time(0);
    return result;
  }

 private:
  void time(const MeasureJob& job, Function function, MeasureResult& result) {
    uint64_t count = 0;
    const tw_parallel* const parallel = team_.parallel(job.threads);
    const auto run = [&](int64_t runs) {
      const auto start = Clock::now();
      for (int64_t i = 0; i < runs; ++i)
        function(memory_->parameters(count++), memory_->workspace(), job.symbols.data(), parallel);
      return seconds_since(start);
    };
    time(job, run, result);
  }

  // `run(n)` runs n times and returns the seconds; negative: a run has failed.
  void time(const MeasureJob& job, llvm::function_ref<double(int64_t)> run, MeasureResult& result) {
    const double first = run(1);
    if (first < 0) result.status = Status::crashed, result.error = "the device has failed";
    if (result.status == Status::ok) check(job, result);
    if (result.status != Status::ok) return;
    Samples samples = take_samples(job.limits, first, usual_sentinel_, run, probe);
    result.seconds = std::move(samples.seconds);
    result.contended = samples.contended;
  }

  void check(const MeasureJob& job, MeasureResult& result) {
    size_t at = 0;
    int output = 0;
    for (size_t i = 0; i < job.buffers.size(); ++i) {
      const BufferSpec& buffer = job.buffers[i];
      if (buffer.input || buffer.constant) continue;
      const std::span<const std::byte> got = memory_->output(i);
      if (job.return_outputs) result.outputs.insert(result.outputs.end(), got.begin(), got.end());
      if (!job.expected.empty()) {
        const std::string problem = output_difference(
            got, std::span(job.expected).subspan(at, buffer.bytes), buffer.dtype, job.tolerance);
        at += buffer.bytes;
        if (!problem.empty() && result.status == Status::ok) {
          result.status = Status::wrong_result;
          result.error = "output " + std::to_string(output) + ": " + problem;
        }
      }
      ++output;
    }
  }

  int socket_;
  Team& team_;
  uint64_t cold_bytes_;
  double usual_sentinel_ = 0;
  std::optional<JobMemory> memory_;  // memory of the last job; candidates of one task share it
  MeasureResult result_;
};

// Linux gives the state of AMX tiles only to processes that ask before their first tile
// instruction. Each new program asks anew. Without tiles the call fails, which does no harm.
void ask_for_tiles() {
#if defined(__x86_64__)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  ::syscall(SYS_arch_prctl, kRequest, kTileData);
#endif
}

// Reads "3,1,0".
std::vector<int> cores_from(const char* text) {
  std::vector<int> cores;
  for (char* end = nullptr; *text; text = *end == ',' ? end + 1 : end) {
    cores.push_back(static_cast<int>(std::strtol(text, &end, 10)));
    if (end == text) return {};
  }
  return cores;
}

}  // namespace

bool is_measure_worker(int argc, const char* const* argv) {
  return argc == 3 && kMeasureWorker == argv[1];
}

int measure_worker(const char* const* argv) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Sanitizers would turn these signals into an exit.
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT})
    std::signal(fatal, SIG_DFL);
  ask_for_tiles();
  Team team(cores_from(argv[2]));
  const int socket = STDIN_FILENO;
  Worker worker(socket, team);
  if (!send_frame(socket, FrameKind::hello, worker.device())) return 0;
  FrameReader reader(socket);
  while (reader.read() == FrameReader::State::more) {
    while (std::optional<Frame> frame = reader.next()) {
      if (frame->kind != FrameKind::job) return 1;
      Expected<MeasureJob> job = job_from_bytes(frame->payload);
      MeasureResult result;
      if (job) {
        frame->payload.clear();
        result = worker.run(*job);
      } else {
        result.status = Status::illegal;
        result.error = one_line(error_text(job.takeError()));
        result.device = worker.device();
      }
      if (!send_frame(socket, FrameKind::result, to_bytes(result))) return 0;
    }
  }
  return 0;
}

}  // namespace tw
