#include "support/confine.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace tw {
namespace {

constexpr rlim_t kOpenFiles = 512;
constexpr int kLastWish = 2000;  // milliseconds between the wish to end and the end

// Landlock's rights by the version that brought them (linux/landlock.h of later kernels).
constexpr uint64_t kOfVersion1 = (uint64_t{1} << 13) - 1, kRefer = uint64_t{1} << 13,
                   kTruncate = uint64_t{1} << 14, kDeviceCalls = uint64_t{1} << 15;
constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                            LANDLOCK_ACCESS_FS_MAKE_REG | kRefer | kTruncate;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              kTruncate;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr uint32_t kArchitecture = AUDIT_ARCH_RISCV64;
#else
constexpr uint32_t kArchitecture = 0;
#endif
constexpr uint32_t kForeignCalls = 0x40000000;  // on x86-64, those of x32

// Other programs, other processes, the network, and parts of the kernel that nobody needs here.
constexpr int kDenied[] = {SYS_execve,
                           SYS_execveat,
                           SYS_socket,
                           SYS_socketpair,
                           SYS_connect,
                           SYS_bind,
                           SYS_ptrace,
                           SYS_process_vm_readv,
                           SYS_process_vm_writev,
                           SYS_bpf,
                           SYS_mount,
                           SYS_umount2,
                           SYS_unshare,
                           SYS_setns,
                           SYS_keyctl,
                           SYS_add_key,
                           SYS_request_key,
                           SYS_io_uring_setup,
                           SYS_userfaultfd,
                           SYS_perf_event_open,
                           SYS_init_module,
                           SYS_finit_module,
                           SYS_kexec_load,
                           SYS_pidfd_getfd,
                           SYS_open_by_handle_at};

// Of a terminal: they type what its owner's shell then reads.
constexpr unsigned long kDeniedDeviceCalls[] = {TIOCSTI, TIOCLINUX};

// landlock_ruleset_attr of version 6 (Linux 6.12), of which earlier ones know the first field.
struct Ruleset {
  uint64_t files = 0, network = 0, scope = 0;
};
constexpr uint64_t kSignalScope = 2;  // to processes outside: of the scope

// What failed; "": nothing.
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

Problem limit_calls() {
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  const auto at = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const auto answer = [](uint32_t value) { return sock_filter BPF_STMT(BPF_RET | BPF_K, value); };
  std::vector<sock_filter> filter{at(offsetof(seccomp_data, arch)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                                  answer(SECCOMP_RET_KILL_PROCESS),
                                  at(offsetof(seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kForeignCalls, 0, 1),
                                  answer(kRefuse)};
  for (const int call : kDenied) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(answer(kRefuse));
  }
  // The request of an ioctl is its second argument's low half
  constexpr auto kDevices = static_cast<unsigned char>(1 + 2 * std::size(kDeniedDeviceCalls));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, kDevices));
  filter.push_back(at(offsetof(seccomp_data, args) + sizeof(uint64_t)));
  for (const unsigned long request : kDeniedDeviceCalls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(request), 0, 1));
    filter.push_back(answer(kRefuse));
  }
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ? failed("seccomp") : "";
}

Problem limit_resource(decltype(RLIMIT_AS) resource, rlim_t most) {
  const rlimit limit{most, most};
  return ::setrlimit(resource, &limit) != 0 ? failed("setrlimit") : "";
}

// Of this process, for ever.
Problem enter(const Confinement& confinement) {
  Problem problem;
  const auto then = [&](Problem next) {
    if (problem.empty()) problem = std::move(next);
  };
  then(::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ? failed("prctl") : "");
  then(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? failed("no_new_privs") : "");
  then(limit_resource(RLIMIT_AS, confinement.memory_bytes));
  then(limit_resource(RLIMIT_FSIZE, confinement.file_bytes));
  then(limit_resource(RLIMIT_NOFILE, kOpenFiles));
  then(limit_resource(RLIMIT_CORE, 0));
  if (problem.empty()) then(limit_paths(confinement));
  if (problem.empty()) then(limit_calls());
  return problem;
}

// Reads what the child says until it is gone. Whether it went before the time was over.
bool ended_in(int pipe, double seconds, std::string& said) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const double rest = std::chrono::duration<double>(end - Clock::now()).count();
    pollfd wait{pipe, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::max(0.0, std::min(rest, 1e6)) * 1e3)) == 0) {
      if (rest <= 0) return false;
      continue;
    }
    char text[256];
    const ssize_t got = ::read(pipe, text, sizeof text);
    if (got == 0) return true;
    if (got > 0) said.append(text, static_cast<size_t>(got));
    else if (errno != EINTR) return true;
  }
}

Expected<std::optional<int>> outcome(int status, bool in_time, const std::string& said,
                                     const Confinement& confinement) {
  if (!said.empty())
    return make_error(DiagCode::unsupported, "the work cannot be confined here: {0}", said);
  if (!in_time)
    return make_error(DiagCode::limit, "the work was ended after {0} seconds, its limit",
                      confinement.seconds);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  if (signal == SIGXFSZ)
    return make_error(DiagCode::limit, "a file would have more than {0} bytes, the limit",
                      confinement.file_bytes);
  return make_error(DiagCode::invalid_model,
                    "signal {0} ({1}) ended the work: out of its {2} bytes of memory, or a bug",
                    signal, ::strsignal(signal), confinement.memory_bytes);
}

}  // namespace

Expected<std::optional<int>> confine(const Confinement& confinement) {
  if (landlock_version() < 1 || kArchitecture == 0)
    return make_error(DiagCode::unsupported,
                      "this system cannot confine: it takes Linux 5.13 or later with Landlock, on "
                      "x86-64, AArch64 or RISC-V of 64 bits");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return make_error(DiagCode::limit, "no pipe can be had: {0}", std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0)
    return make_error(DiagCode::limit, "no process can be had: {0}", std::strerror(errno));
  if (child == 0) {
    ::close(ends[0]);
    const Problem problem = enter(confinement);
    if (problem.empty()) return std::nullopt;  // the pipe's end closes when the process is gone
    [[maybe_unused]] const ssize_t written = ::write(ends[1], problem.data(), problem.size());
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string said;
  const bool in_time = ended_in(ends[0], confinement.seconds, said);
  if (!in_time) {
    ::kill(child, SIGTERM);
    if (!ended_in(ends[0], kLastWish * 1e-3, said)) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return outcome(status, in_time, said, confinement);
}

}  // namespace tw
