#include "tests/onnx/workers.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "support/diag.h"

namespace tw::onnx_suite {
namespace {

using WorkMaker = std::function<std::function<JobResult(size_t)>()>;
struct Head {
  uint64_t index, size;
  uint8_t passed;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool read_all(int file, void* data, size_t size) {
  for (auto* at = static_cast<char*>(data); size > 0;) {
    const ssize_t got = read(file, at, size);
    if (got <= 0) return false;
    at += got, size -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int file, const void* data, size_t size) {
  for (auto* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t put = send(file, at, size, MSG_NOSIGNAL);
    if (put <= 0) return false;
    at += put, size -= static_cast<size_t>(put);
  }
  return true;
}

[[noreturn]] void serve(int file, const WorkMaker& make_work) {
  const auto work = make_work();
  for (uint64_t index = 0; read_all(file, &index, sizeof index);) {
    const JobResult result = work(index);
    const Head head{index, result.text.size(), result.passed};
    if (!write_all(file, &head, sizeof head) ||
        !write_all(file, result.text.data(), result.text.size()))
      break;
  }
  _exit(0);
}

class Worker {
 public:
  explicit Worker(const WorkMaker& make_work) : errors_(memfd_create("errors", MFD_CLOEXEC)) {
    int ends[2];
    TW_CHECK(errors_ >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
             "no socket: {0}", strerror(errno));
    process_ = fork();
    TW_CHECK(process_ >= 0, "cannot fork: {0}", strerror(errno));
    if (process_ == 0) {
      close(ends[0]);
      dup2(errors_, STDERR_FILENO);
      serve(ends[1], make_work);
    }
    close(ends[1]);
    file_ = ends[0];
  }
  Worker(const Worker&) = delete;
  ~Worker() {
    // This ends the child's next read. Closing would not, as later children hold copies of the
    // file.
    shutdown(file_, SHUT_RDWR);
    close(file_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
    close(errors_);
  }

  int file() const { return file_; }
  int served() const { return served_; }
  std::optional<size_t> job() const { return job_; }
  double busy() const { return job_ ? now() - start_ : 0; }
  void start(size_t job) {
    job_ = job;
    start_ = now();
    ++served_;
    if (ftruncate(errors_, 0) == 0) lseek(errors_, 0, SEEK_SET);
    const uint64_t index = job;
    write_all(file_, &index, sizeof index);  // if the child is gone, the next read shows it
  }

  // Returns the result of the job. After a crash, the worker is not usable.
  JobResult take(bool& usable) {
    JobResult result;
    Head head{};
    usable = read_all(file_, &head, sizeof head);
    if (usable) {
      result.passed = head.passed;
      result.text.resize(head.size);
      usable = read_all(file_, result.text.data(), head.size);
    }
    if (!usable) result = {false, 0, end()};
    result.seconds = busy();
    job_.reset();
    return result;
  }
  JobResult stop(double limit) {
    kill(process_, SIGKILL);
    end();
    JobResult result{false, busy(), llvm::formatv("more than {0} seconds", limit).str()};
    job_.reset();
    return result;
  }

 private:
  // Returns how the child ended, with the last text that it wrote to stderr.
  std::string end() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    std::string text = WIFSIGNALED(status)
                           ? llvm::formatv("crash: {0}", strsignal(WTERMSIG(status))).str()
                           : llvm::formatv("crash: exit status {0}", WEXITSTATUS(status)).str();
    std::string words(4000, ' ');
    const ssize_t got = pread(errors_, words.data(), words.size(), 0);
    words.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return words.empty() ? text : text + ": " + words;
  }

  int errors_, file_ = -1, served_ = 0;
  pid_t process_ = -1;
  std::optional<size_t> job_;
  double start_ = 0;
};

}  // namespace

std::vector<JobResult> run_jobs(size_t count, const WorkerOptions& options,
                                const WorkMaker& make_work,
                                const std::function<void(size_t, const JobResult&)>& done) {
  std::vector<JobResult> results(count);
  std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(options.processes));
  size_t next = 0, open = count;
  while (open > 0) {
    std::vector<pollfd> waits;
    for (auto& worker : workers) {
      if (worker && !worker->job() && worker->served() >= options.jobs_a_process) worker.reset();
      if (next < count && (!worker || !worker->job())) {
        if (!worker) worker = std::make_unique<Worker>(make_work);
        worker->start(next++);
      }
      waits.push_back({worker && worker->job() ? worker->file() : -1, POLLIN, 0});
    }
    poll(waits.data(), waits.size(), 200);
    for (size_t w = 0; w < workers.size(); ++w) {
      auto& worker = workers[w];
      if (!worker || !worker->job()) continue;
      const size_t job = *worker->job();
      bool usable = true;
      if (waits[w].revents) results[job] = worker->take(usable);
      else if (worker->busy() > options.limit)
        results[job] = worker->stop(options.limit), usable = false;
      else continue;
      if (!usable) worker.reset();
      --open;
      done(job, results[job]);
    }
  }
  return results;
}

}  // namespace tw::onnx_suite
