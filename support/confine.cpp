#include "support/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "support/allowed_calls.h"

namespace tw {
namespace {

constexpr rlim_t kOpenFiles = 512;
constexpr int kLastWish = 2000;   // milliseconds between SIGTERM and SIGKILL
constexpr int kThreadsTurn = 50;  // milliseconds between two counts of the threads
constexpr int64_t kMostThreads = 2048;

// Landlock's rights by the version that introduced them (linux/landlock.h of later kernels).
constexpr uint64_t kOfVersion1 = (uint64_t{1} << 13) - 1, kRefer = uint64_t{1} << 13,
                   kTruncate = uint64_t{1} << 14, kDeviceCalls = uint64_t{1} << 15;
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                            LANDLOCK_ACCESS_FS_MAKE_REG | kRefer | kTruncate;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              kTruncate;

// Capabilities that root keeps, to work on files of other users.
constexpr uint32_t kKeptCapabilities = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;

// The kernel's landlock_ruleset_attr of version 6 (Linux 6.12). Earlier versions know the first
// field alone.
struct Ruleset {
  uint64_t files = 0, network = 0, scope = 0;
};
constexpr uint64_t kSignalScope = 2;  // LANDLOCK_SCOPE_SIGNAL: no signals to processes outside

// The reason of a failure; "": none.
using Problem = std::string;
Problem failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

uint64_t rights_of(int version) {
  return kOfVersion1 | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0) |
         (version >= 5 ? kDeviceCalls : 0);
}

int landlock_version() {
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

Problem allow(int rules, const std::string& path, uint64_t rights) {
  const int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (file < 0) return "";  // nothing there to allow
  struct stat info{};
  if (::fstat(file, &info) != 0 || !S_ISDIR(info.st_mode)) rights &= kOfFiles;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights, rule.parent_fd = file;
  const long status = ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const Problem problem = status != 0 ? failed(path.c_str()) : "";
  ::close(file);
  return problem;
}

Problem limit_paths(const Confinement& confinement) {
  const int version = landlock_version();
  const uint64_t rights = rights_of(version);
  const Ruleset all{rights, 0, kSignalScope};
  const int rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all,
                                               version >= 6 ? sizeof all : sizeof all.files, 0));
  if (rules < 0) return failed("landlock_create_ruleset");
  Problem problem;
  for (const std::string& path : confinement.reads)
    if (problem.empty()) problem = allow(rules, path, kRead & rights);
  for (const std::string& path : confinement.writes)
    if (problem.empty()) problem = allow(rules, path, kWrite & rights);
  if (problem.empty() && ::syscall(SYS_landlock_restrict_self, rules, 0) != 0)
    problem = failed("landlock_restrict_self");
  ::close(rules);
  return problem;
}

Problem limit_resource(decltype(RLIMIT_AS) resource, rlim_t most) {
  const rlimit limit{most, most};
  return ::setrlimit(resource, &limit) != 0 ? failed("setrlimit") : "";
}

Problem close_descriptors(std::vector<int> kept) {
  kept.insert(kept.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  std::ranges::sort(kept);
  unsigned next = 0;
  const auto close_up_to = [&](unsigned last) {
    return next > last || ::syscall(SYS_close_range, next, last, 0u) == 0;
  };
  for (const int one : kept) {
    const auto number = static_cast<unsigned>(one);
    if (number > 0 && !close_up_to(number - 1)) return failed("close_range");
    next = std::max(next, number + 1);
  }
  return close_up_to(~0u) ? "" : failed("close_range");
}

Problem drop_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &head, sets) != 0) return failed("capget");
  sets[0].permitted &= kKeptCapabilities, sets[0].inheritable = 0;
  sets[0].effective &= kKeptCapabilities;
  sets[1] = {};
  return ::syscall(SYS_capset, &head, sets) != 0 ? failed("capset") : "";
}

Problem set_option(const char* what, int option, unsigned long value) {
  return ::prctl(option, value, 0ul, 0ul, 0ul) != 0 ? failed(what) : "";
}

Problem enter(const Confinement& confinement) {
  Problem problem;
  const auto then = [&](auto step) {
    if (problem.empty()) problem = step();
  };
  then([&] { return close_descriptors(confinement.descriptors); });
  then([] { return set_option("pdeathsig", PR_SET_PDEATHSIG, SIGKILL); });
  then([] { return set_option("no_new_privs", PR_SET_NO_NEW_PRIVS, 1); });
  then([&] { return limit_resource(RLIMIT_AS, confinement.memory_bytes); });
  then([&] { return limit_resource(RLIMIT_FSIZE, confinement.file_bytes); });
  then([] { return limit_resource(RLIMIT_NOFILE, kOpenFiles); });
  then([] { return limit_resource(RLIMIT_CORE, 0); });
  then([&] { return limit_paths(confinement); });
  then([] { return set_option("dumpable", PR_SET_DUMPABLE, 0); });
  then(drop_capabilities);
  then(limit_calls);
  return problem;
}

// Waits for a child process through a pidfd, which becomes readable when the process is gone.
class Watched {
 public:
  explicit Watched(pid_t process)
      : process_(process), gone_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {}
  Watched(const Watched&) = delete;
  ~Watched() {
    if (gone_ >= 0) ::close(gone_);
  }

  bool valid() const { return gone_ >= 0; }

  enum class End : uint8_t { own, late, threads };
  End wait(double seconds) const {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (!is_gone_in(kThreadsTurn)) {
      if (threads() > kMostThreads) return End::threads;
      if (Clock::now() >= end) return End::late;
    }
    return End::own;
  }

  void end() const {
    ::kill(process_, SIGTERM);
    if (!is_gone_in(kLastWish)) ::kill(process_, SIGKILL);
  }

  int status() const {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0)
      TW_CHECK(errno == EINTR, "the confined process is not there: {0}", std::strerror(errno));
    return status;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_gone_in(int milliseconds) const {
    pollfd wait{gone_, POLLIN, 0};
    return ::poll(&wait, 1, milliseconds) > 0;
  }

  int64_t threads() const {
    std::ifstream status("/proc/" + std::to_string(process_) + "/status");
    int64_t count = 0;
    for (std::string line; std::getline(status, line);)
      if (std::sscanf(line.c_str(), "Threads: %ld", &count) == 1) break;
    return count;
  }

  pid_t process_;
  int gone_;
};

// Reads the message that the child writes when it cannot be confined.
std::string read_all(int pipe) {
  std::string said;
  char text[256];
  for (ssize_t got = 0; (got = ::read(pipe, text, sizeof text)) != 0;) {
    if (got > 0) said.append(text, static_cast<size_t>(got));
    else if (errno != EINTR) break;
  }
  return said;
}

Expected<std::optional<int>> outcome(int status, Watched::End end, const Confinement& confinement) {
  if (end == Watched::End::late)
    return make_error(DiagCode::limit, "the work was ended after {0} seconds, its limit",
                      confinement.seconds);
  if (end == Watched::End::threads)
    return make_error(DiagCode::limit, "the work was ended with more than {0} threads, its limit",
                      kMostThreads);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  if (signal == SIGXFSZ)
    return make_error(DiagCode::limit, "a file would have more than {0} bytes, the limit",
                      confinement.file_bytes);
  return make_error(DiagCode::invalid_model,
                    "signal {0} ({1}) ended the work: out of its {2} bytes of memory, or a bug",
                    signal, ::strsignal(signal), confinement.memory_bytes);
}

Error cannot(const std::string& why) {
  return make_error(DiagCode::unsupported, "the work cannot be confined here: {0}", why);
}

Error check_system() {
  if (landlock_version() >= 1 && can_limit_calls()) return Error::success();
  return make_error(DiagCode::unsupported,
                    "this system cannot confine: it takes Linux 5.13 or later with Landlock, on "
                    "x86-64, AArch64 or RISC-V of 64 bits");
}

// Runs in the child: confines it, and reports success by closing the pipe.
void begin_work(Confinement confinement, int pipe, pid_t parent) {
  confinement.descriptors.push_back(pipe);
  Problem problem = enter(confinement);
  if (problem.empty() && ::getppid() != parent) problem = "the parent is gone";
  if (!problem.empty()) {
    [[maybe_unused]] const ssize_t written = ::write(pipe, problem.data(), problem.size());
    ::_exit(1);
  }
  ::close(pipe);
}

}  // namespace

Error confine_self(const Confinement& confinement) {
  TW_TRY(check_system());
  const Problem problem = enter(confinement);
  return problem.empty() ? Error::success() : cannot(problem);
}

Expected<std::optional<int>> confine(const Confinement& confinement) {
  TW_TRY(check_system());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return make_error(DiagCode::limit, "no pipe can be had: {0}", std::strerror(errno));
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, waitpid gets no status
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    return make_error(DiagCode::limit, "no process can be had: {0}", std::strerror(errno));
  if (child == 0) {
    begin_work(confinement, ends[1], parent);
    return std::nullopt;
  }
  const Watched watched(child);
  ::close(ends[1]);
  std::string said = read_all(ends[0]);
  ::close(ends[0]);
  if (!watched.valid() && said.empty()) said = "pidfd_open fails";
  if (!said.empty()) {
    ::kill(child, SIGKILL);
    watched.status();
    return cannot(said);
  }
  const Watched::End end = watched.wait(confinement.seconds);
  if (end != Watched::End::own) watched.end();
  return outcome(watched.status(), end, confinement);
}

}  // namespace tw
