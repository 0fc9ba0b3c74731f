#include "autotune/measure/process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

extern char** environ;

namespace tw {
namespace {

// A child that sleeps gets this many times its processor time, and this many seconds more.
constexpr double kWaiting = 20, kWaitingMore = 10;
constexpr int kSliceMs = 100;

constexpr std::array<std::pair<int, const char*>, 9> kSignals = {{
    {SIGSEGV, "SIGSEGV (a bad address)"},
    {SIGBUS, "SIGBUS (a bad access)"},
    {SIGILL, "SIGILL (an instruction that this machine does not have, or a trap)"},
    {SIGFPE, "SIGFPE (a division by zero)"},
    {SIGTRAP, "SIGTRAP (a trap)"},
    {SIGABRT, "SIGABRT"},
    {SIGKILL, "SIGKILL (memory, or somebody)"},
    {SIGSYS, "SIGSYS (a system call that is not allowed)"},
    {SIGPROF, "SIGPROF (its own time limit)"},
}};

std::string signal_text(int signal) {
  for (const auto& [number, text] : kSignals)
    if (number == signal) return text;
  return "signal " + std::to_string(signal);
}

int spawn(const std::string& program, const std::vector<std::string>& arguments, int socket,
          pid_t& pid) {
  std::vector<char*> argv = {const_cast<char*>("tilewright")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  sigset_t empty;
  ::sigemptyset(&empty);
  ::posix_spawnattr_setsigmask(&attributes, &empty);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(),
                                 environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return code;
}

}  // namespace

Expected<std::unique_ptr<ChildProcess>> ChildProcess::start(
    const std::string& program, const std::vector<std::string>& arguments) {
  const auto failed = [&](int code) {
    return make_error(DiagCode::io, "cannot start '{0}': {1}", program, std::strerror(code));
  };
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return failed(errno);
  pid_t pid = -1;
  const int code = spawn(program, arguments, sockets[1], pid);
  ::close(sockets[1]);
  if (code == 0) return std::unique_ptr<ChildProcess>(new ChildProcess(pid, sockets[0]));
  ::close(sockets[0]);
  return failed(code);
}

ChildProcess::~ChildProcess() { end(false); }

double ChildProcess::processor_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A busy or sleeping machine gives the child no time. So the limit counts the child's processor
// time, and waiting counts in slices of bounded length.
std::optional<Frame> ChildProcess::next_frame(double seconds, bool& late) {
  const double start = processor_seconds();
  double waited = 0;
  while (true) {
    if (std::optional<Frame> frame = reader_.next()) return frame;
    pollfd event{socket_, POLLIN, 0};
    const auto before = std::chrono::steady_clock::now();
    const int ready = ::poll(&event, 1, kSliceMs);
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready > 0 && reader_.read() == FrameReader::State::closed) return std::nullopt;
    if (ready > 0) continue;
    waited += std::min(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count(),
        2 * kSliceMs * 1e-3);
    late = processor_seconds() - start > seconds || waited > kWaiting * seconds + kWaitingMore;
    if (late) return std::nullopt;
  }
}

bool ChildProcess::is_gone() const {
  siginfo_t gone{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &gone, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         gone.si_pid == pid_;
}

ChildProcess::End ChildProcess::end(bool closed) {
  if (pid_ < 0) return {0, "it has ended before"};
  for (int i = 0; i < 100 && closed && !is_gone(); ++i) ::usleep(2000);
  if (!is_gone()) ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  ::close(socket_);
  pid_ = socket_ = -1;
  if (WIFSIGNALED(status)) return {WTERMSIG(status), signal_text(WTERMSIG(status))};
  return {0, "the process ended with status " + std::to_string(WEXITSTATUS(status))};
}

}  // namespace tw
