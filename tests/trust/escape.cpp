// Attempts to escape from the cage, made inside of it: calls that must be refused, limits that must
// hold, and calls that work needs, which must succeed. They run as the user and, if that is root,
// also as nobody. Exit code 1 if one escapes.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/confine.h"

namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMemory = uint64_t{2} << 30, kFile = 1 << 20;
constexpr int kNobody = 65534;

// Files for the attempts, inside and outside of the cage
struct Place {
  fs::path root, inside, outside;
  int inherited = -1;  // descriptor of a file outside

  std::string mine() const { return inside / "mine"; }
  std::string other() const { return outside / "other"; }
};

using In = const Place&;

struct Attempt {
  const char* what;
  std::function<long(const Place&)> call;  // returns -1 with errno if refused
};

template <class... Arguments>
long raw(long number, Arguments... arguments) {
  return ::syscall(number, arguments...);
}

// Numbers of calls that the C library's headers may lack. They are the same on all architectures.
enum : long {
  kIoUringSetup = 425,
  kOpenTree = 428,
  kMoveMount = 429,
  kFsopen = 430,
  kPidfdSendSignal = 424,
  kPidfdGetfd = 438,
  kProcessMadvise = 440,
  kMountSetattr = 442,
  kFchmodat2 = 452,
  kCachestat = 451
};

// Tries a call with wrong arguments. If the kernel finds them wrong (errno is `code`), it did not
// refuse the call.
long reached(int code, long result) { return result < 0 && errno == code ? 0 : result; }
long reached_any(long result) { return result < 0 && errno != EPERM ? 0 : result; }

long at_file(const std::string& path, int flags, const std::function<long(int)>& call) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) return -1;
  const long result = call(file);
  const int code = errno;
  ::close(file);
  errno = code;
  return result;
}

long new_process(unsigned long flags) {
  const long child = raw(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) ::_exit(0);
  return child;
}

std::vector<Attempt> metadata() {
  return {
      {"chmod of a file inside",
       [](In p) { return raw(SYS_fchmodat, AT_FDCWD, p.mine().c_str(), 0666, 0); }},
      {"chmod of a file outside",
       [](In p) { return raw(SYS_fchmodat, AT_FDCWD, p.other().c_str(), 0666, 0); }},
      {"fchmod",
       [](In p) {
         return at_file(p.mine(), O_RDWR, [](int f) { return raw(SYS_fchmod, f, 0666); });
       }},
      {"fchmodat2", [](In p) { return raw(kFchmodat2, AT_FDCWD, p.other().c_str(), 0666, 0); }},
      {"chown",
       [](In p) {
         return raw(SYS_fchownat, AT_FDCWD, p.other().c_str(), ::getuid(), ::getgid(), 0);
       }},
      {"fchown",
       [](In p) {
         return at_file(p.mine(), O_RDWR,
                        [](int f) { return raw(SYS_fchown, f, ::getuid(), ::getgid()); });
       }},
      {"utimes", [](In p) { return raw(SYS_utimensat, AT_FDCWD, p.other().c_str(), nullptr, 0); }},
      {"utimes of a descriptor",
       [](In p) {
         return at_file(p.mine(), O_RDWR,
                        [](int f) { return raw(SYS_utimensat, f, nullptr, nullptr, 0); });
       }},
      {"setxattr",
       [](In p) { return raw(SYS_setxattr, p.other().c_str(), "user.tilewright", "x", 1, 0); }},
      {"removexattr",
       [](In p) { return raw(SYS_removexattr, p.other().c_str(), "user.tilewright"); }},
      {"flags of a file",
       [](In p) {
         return at_file(p.mine(), O_RDONLY, [](int f) {
           int flags = 0;
           return ::ioctl(f, FS_IOC_GETFLAGS, &flags);
         });
       }},
      {"truncate", [](In p) { return raw(SYS_truncate, p.other().c_str(), 0); }},
      {"a symbolic link",
       [](In p) {
         return raw(SYS_symlinkat, "/etc/passwd", AT_FDCWD, (p.mine() + "-link").c_str());
       }},
      {"a pipe with a name",
       [](In p) {
         return raw(SYS_mknodat, AT_FDCWD, (p.mine() + "-pipe").c_str(), S_IFIFO | 0600, 0);
       }},
  };
}

std::vector<Attempt> files() {
  return {
      {"reading outside",
       [](In p) { return raw(SYS_openat, AT_FDCWD, p.other().c_str(), O_RDONLY); }},
      {"writing outside",
       [](In p) { return raw(SYS_openat, AT_FDCWD, p.other().c_str(), O_WRONLY); }},
      {"a file outside",
       [](In p) {
         return raw(SYS_openat, AT_FDCWD, (p.other() + "-new").c_str(), O_CREAT | O_WRONLY, 0600);
       }},
      {"a link to a file outside",
       [](In p) {
         return raw(SYS_linkat, AT_FDCWD, p.other().c_str(), AT_FDCWD, (p.mine() + "-hard").c_str(),
                    0);
       }},
      {"renaming outside",
       [](In p) {
         return raw(SYS_renameat2, AT_FDCWD, p.other().c_str(), AT_FDCWD,
                    (p.mine() + "-moved").c_str(), 0);
       }},
      {"removing outside", [](In p) { return raw(SYS_unlinkat, AT_FDCWD, p.other().c_str(), 0); }},
      {"emptying what may be read",
       [](In p) { return raw(SYS_openat, AT_FDCWD, p.mine().c_str(), O_RDONLY | O_TRUNC); }},
      {"another process's memory",
       [](In) {
         return raw(SYS_openat, AT_FDCWD, ("/proc/" + std::to_string(::getppid()) + "/mem").c_str(),
                    O_RDONLY);
       }},
      {"its own memory by /proc",
       [](In) { return raw(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR); }},
      {"an inherited descriptor",
       [](In p) {
         char c;
         return ::read(p.inherited, &c, 1);
       }},
      {"a handle of a file",
       [](In p) {
         file_handle handle{};
         int mount = 0;
         return raw(SYS_name_to_handle_at, AT_FDCWD, p.mine().c_str(), &handle, &mount, 0);
       }},
  };
}

std::vector<Attempt> processes() {
  return {
      {"fork", [](In) { return new_process(SIGCHLD); }},
      {"vfork", [](In) { return new_process(CLONE_VFORK | SIGCHLD); }},
      {"clone into a user namespace", [](In) { return new_process(CLONE_NEWUSER | SIGCHLD); }},
      {"clone into a mount namespace", [](In) { return new_process(CLONE_NEWNS | SIGCHLD); }},
      {"clone3",
       [](In) {
         clone_args a{};
         a.exit_signal = SIGCHLD;
         const long c = raw(SYS_clone3, &a, sizeof a);
         if (c == 0) ::_exit(0);
         return c;
       }},
      {"execve",
       [](In) {
         char* words[] = {nullptr};
         return reached(ENOENT, raw(SYS_execve, "/bin/true-is-not-here", words, words));
       }},
      {"unshare", [](In) { return raw(SYS_unshare, CLONE_NEWUTS); }},
      {"setns",
       [](In) {
         return at_file("/proc/self/status", O_RDONLY,
                        [](int f) { return reached_any(raw(SYS_setns, f, 0)); });
       }},
      {"a signal to the parent", [](In) { return raw(SYS_kill, ::getppid(), 0); }},
      {"a signal to all", [](In) { return raw(SYS_kill, -1, 0); }},
      {"a signal to the group", [](In) { return raw(SYS_kill, 0, 0); }},
      {"a queued signal",
       [](In) {
         siginfo_t info{};
         info.si_code = SI_QUEUE;
         return raw(SYS_rt_sigqueueinfo, ::getppid(), 0, &info);
       }},
      {"a signal by pidfd",
       [](In) { return reached(EBADF, raw(kPidfdSendSignal, -1, 0, nullptr, 0)); }},
      {"signals by the owner of a descriptor",
       [](In p) {
         return at_file(p.mine(), O_RDONLY,
                        [](int f) { return ::fcntl(f, F_SETOWN, ::getppid()); });
       }},
      {"tracing", [](In) { return raw(SYS_ptrace, PTRACE_TRACEME, 0, nullptr, nullptr); }},
      {"reading a process's memory",
       [](In) { return raw(SYS_process_vm_readv, ::getpid(), nullptr, 0, nullptr, 0, 0); }},
      {"limits of the parent",
       [](In) {
         rlimit limit{};
         return raw(SYS_prlimit64, ::getppid(), RLIMIT_NOFILE, nullptr, &limit);
       }},
      {"its own limits",
       [](In) {
         const rlimit limit{64, 64};
         return raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
       }},
      {"its own limits, by another call",
       [](In) {
         const rlimit limit{64, 64};
         return raw(SYS_setrlimit, RLIMIT_NOFILE, &limit);
       }},
      {"priority of the parent",
       [](In) { return raw(SYS_setpriority, PRIO_PROCESS, ::getppid(), 19); }},
      {"cores of the parent",
       [](In) {
         cpu_set_t s;
         ::sched_getaffinity(0, sizeof s, &s);
         return raw(SYS_sched_setaffinity, ::getppid(), sizeof s, &s);
       }},
      {"advice to a process",
       [](In) { return reached(EBADF, raw(kProcessMadvise, -1, nullptr, 0, 0, 0)); }},
      {"a descriptor of a process", [](In) { return reached(EBADF, raw(kPidfdGetfd, -1, 0, 0)); }},
      {"a new session", [](In) { return raw(SYS_setsid); }},
      {"a group of its own", [](In) { return raw(SYS_setpgid, 0, 0); }},
      {"to outlive its parent", [](In) { return raw(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0); }},
      {"to be dumpable", [](In) { return raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); }},
      {"to be traced by any", [](In) { return raw(SYS_prctl, PR_SET_PTRACER, -1, 0, 0, 0); }},
  };
}

std::vector<Attempt> kernel() {
  return {
      {"a socket", [](In) { return raw(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
      {"a local socket", [](In) { return raw(SYS_socket, AF_UNIX, SOCK_DGRAM, 0); }},
      {"a pair of sockets",
       [](In) {
         int pair[2];
         return raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
       }},
      {"shared memory of System V",
       [](In) { return raw(SYS_shmget, IPC_PRIVATE, 4096, IPC_CREAT | 0600); }},
      {"semaphores of System V",
       [](In) { return raw(SYS_semget, IPC_PRIVATE, 1, IPC_CREAT | 0600); }},
      {"messages of System V", [](In) { return raw(SYS_msgget, IPC_PRIVATE, IPC_CREAT | 0600); }},
      {"messages of POSIX",
       [](In) { return raw(SYS_mq_open, "tilewright", O_CREAT | O_RDWR, 0600, nullptr); }},
      {"fsopen", [](In) { return raw(kFsopen, "tmpfs", 0); }},
      {"open_tree", [](In) { return raw(kOpenTree, AT_FDCWD, "/usr", 1); }},
      {"mount", [](In) { return raw(SYS_mount, "none", "/tmp", "tmpfs", 0, nullptr); }},
      {"chroot", [](In) { return raw(SYS_chroot, "/usr"); }},
      {"pivot_root", [](In) { return reached(ENOENT, raw(SYS_pivot_root, "/none", "/none")); }},
      {"the host's name",
       [](In) {
         char n[256] = "";
         ::gethostname(n, sizeof n);
         return raw(SYS_sethostname, n, ::strlen(n));
       }},
      {"reboot",
       [](In) {
         return raw(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF,
                    nullptr);
       }},
      {"the clock",
       [](In) {
         timespec t{};
         return reached(EINVAL, raw(SYS_clock_settime, CLOCK_REALTIME, &t));
       }},
      {"keys",
       [](In) { return raw(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1); }},
      {"io_uring", [](In) { return reached(EFAULT, raw(kIoUringSetup, 1, nullptr)); }},
      {"bpf", [](In) { return reached_any(raw(SYS_bpf, 0, nullptr, 0)); }},
      {"userfaultfd", [](In) { return raw(SYS_userfaultfd, 0); }},
      {"performance counters",
       [](In) { return reached(EFAULT, raw(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }},
      {"personality", [](In) { return raw(SYS_personality, 0xffffffff); }},
      {"another user", [](In) { return raw(SYS_setresuid, ::getuid(), ::getuid(), ::getuid()); }},
      {"capabilities",
       [](In) {
         __user_cap_header_struct h{_LINUX_CAPABILITY_VERSION_3, 0};
         __user_cap_data_struct d[2]{};
         return raw(SYS_capset, &h, d);
       }},
      {"typing into the terminal",
       [](In) {
         char c = 'x';
         return reached_any(::ioctl(0, TIOCSTI, &c));
       }},
      {"the kernel's log", [](In) { return raw(SYS_syslog, 10, nullptr, 0); }},
      {"a call that is too new", [](In) { return reached(ENOSYS, raw(999)); }},
  };
}

// Calls that ordinary work needs
std::vector<Attempt> needed() {
  return {
      {"a thread",
       [](In) {
         int n = 0;
         std::thread([&] { n = 1; }).join();
         return n == 1 ? 0L : -1L;
       }},
      {"a file inside",
       [](In p) { return std::ofstream(p.mine() + "-new") << "x" << std::flush ? 0L : -1L; }},
      {"a file in memory", [](In) { return long{::memfd_create("x", MFD_CLOEXEC)}; }},
      {"its own limits",
       [](In) {
         rlimit limit{};
         return long{::getrlimit(RLIMIT_STACK, &limit)};
       }},
      {"its own cores",
       [](In) {
         cpu_set_t s;
         return long{::sched_getaffinity(0, sizeof s, &s)} | ::sched_setaffinity(0, sizeof s, &s);
       }},
      {"the files of a folder", [](In p) { return fs::is_empty(p.inside) ? -1L : 0L; }},
      {"the name of a thread", [](In) { return long{::prctl(PR_SET_NAME, "x")}; }},
      {"a signal to itself",
       [](In) {
         std::signal(SIGUSR1, SIG_IGN);
         return long{::raise(SIGUSR1)} | ::kill(::getpid(), SIGUSR1);
       }},
      {"its own map",
       [](In) {
         std::string line;
         std::ifstream maps("/proc/self/maps");
         return std::getline(maps, line) ? 0L : -1L;
       }},
      {"a name for a nameless file",
       [](In p) {
         const int file = ::open(p.inside.c_str(), O_TMPFILE | O_RDWR, 0600);
         const std::string from = "/proc/self/fd/" + std::to_string(file);
         return long{::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, (p.mine() + "-linked").c_str(),
                              AT_SYMLINK_FOLLOW)};
       }},
  };
}

// Counts and prints the attempts that were not refused, or not allowed, as they must be.
int count_wrong(const Place& place, const std::vector<Attempt>& attempts, bool refused) {
  int wrong = 0;
  for (const Attempt& attempt : attempts) {
    errno = 0;
    const bool failed = attempt.call(place) < 0;
    if (failed == refused) continue;
    std::fprintf(stderr, "%s: %s\n", attempt.what, refused ? "not refused" : ::strerror(errno));
    ++wrong;
  }
  return wrong;
}

tw::Confinement cage(const Place& place, double seconds) {
  return {kMemory, kFile, seconds, {"/usr", "/lib", "/lib64", "/proc/self"}, {place.inside}};
}

// Returns the exit code of work in a cage, or the error's text.
std::string done_in_cage(const tw::Confinement& confinement, const std::function<int()>& work) {
  llvm::Expected<std::optional<int>> code = tw::confine(confinement);
  if (!code) return tw::error_text(code.takeError());
  if (!*code) ::_exit(work());
  return "exit " + std::to_string(**code);
}

struct Ended {
  const char* what;
  const char* said;  // words of the error
  std::function<int()> work;
};

// Work that does not end by itself, and tries to keep others from ending it
std::vector<Ended> endless() {
  const auto sleep = [] {
    while (true) ::pause();
    return 0;
  };
  return {
      {"sleeps", "1.00 seconds", sleep},
      {"closes all descriptors", "1.00 seconds",
       [=] {
         for (int fd = 0; fd < 1024; ++fd) ::close(fd);
         return sleep();
       }},
      {"ignores signals", "1.00 seconds",
       [=] {
         for (int s = 1; s < 32; ++s) std::signal(s, SIG_IGN);
         return sleep();
       }},
      {"stops itself", "1.00 seconds",
       [=] {
         ::raise(SIGSTOP);
         return sleep();
       }},
      {"makes threads without an end", "threads",
       [=] {
         const size_t bytes = 16 << 10;
         while (true) {
           void* stack = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0);
           if (stack == MAP_FAILED) return sleep();
           ::clone(
               [](void*) {
                 while (true) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
                 return 0;
               },
               static_cast<char*>(stack) + bytes,
               CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
               nullptr);
         }
         return 0;
       }},
  };
}

int wrong_ends(const Place& place) {
  int wrong = 0;
  for (const Ended& one : endless()) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = done_in_cage(cage(place, 1), one.work);
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (said.find(one.said) != std::string::npos && took < 8 && ::waitpid(-1, nullptr, WNOHANG) < 0)
      continue;
    std::fprintf(stderr, "%s: after %.1f s: %s\n", one.what, took, said.c_str());
    ++wrong;
  }
  return wrong;
}

// The work must end with the process that watches it.
int wrong_orphans(const Place& place) {
  int pipe[2];
  if (::pipe(pipe) != 0) return 1;
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    tw::Confinement confinement = cage(place, 60);
    confinement.descriptors = {pipe[1]};
    done_in_cage(confinement, [&] {
      [[maybe_unused]] const ssize_t done = ::write(pipe[1], "b", 1);
      while (true) ::pause();
      return 0;
    });
    ::_exit(0);
  }
  ::close(pipe[1]);
  char c = 0;
  const bool began = ::read(pipe[0], &c, 1) == 1;  // the cage keeps this descriptor
  ::kill(watcher, SIGKILL);
  ::waitpid(watcher, nullptr, 0);
  const auto begin = std::chrono::steady_clock::now();
  const bool gone = ::read(pipe[0], &c, 1) == 0;  // no process holds it
  ::close(pipe[0]);
  const bool soon = std::chrono::steady_clock::now() - begin < std::chrono::seconds(5);
  if (began && gone && soon) return 0;
  std::fprintf(stderr, "the work outlives who watches it\n");
  return 1;
}

int wrong_here(const Place& place) {
  int wrong = 0;
  const std::string said = done_in_cage(cage(place, 60), [&] {
    int count = 0;
    for (const auto& list : {files(), metadata(), processes(), kernel()})
      count += count_wrong(place, list, true);
    count += count_wrong(place, needed(), false);  // last, as it opens descriptors
    return count;
  });
  if (said != "exit 0") {
    std::fprintf(stderr, "attempts: %s\n", said.c_str());
    ++wrong;
  }
  return wrong + wrong_ends(place) + wrong_orphans(place);
}

Place make_place() {
  Place place;
  std::string pattern = (fs::temp_directory_path() / "escape-XXXXXX").string();
  place.root = ::mkdtemp(pattern.data());
  place.inside = place.root / "inside", place.outside = place.root / "outside";
  for (const fs::path& folder : {place.inside, place.outside}) fs::create_directory(folder);
  for (const std::string& file : {place.mine(), place.other()}) std::ofstream(file) << "text\n";
  place.inherited = ::open(place.other().c_str(), O_RDONLY);
  return place;
}

int wrong_of_user(int user) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (user != 0 &&
        (::setgid(static_cast<gid_t>(user)) != 0 || ::setuid(static_cast<uid_t>(user)) != 0))
      ::_exit(1);
    const Place place = make_place();
    const int wrong = wrong_here(place);
    fs::remove_all(place.root);
    ::_exit(wrong == 0 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace

int main() {
  llvm::Expected<std::optional<int>> code = tw::confine({kMemory, kFile, 10, {}, {}});
  if (code && !*code) ::_exit(0);
  if (!code) {
    std::printf("escape: not run: %s\n", tw::error_text(code.takeError()).c_str());
    return 77;
  }
  int wrong = wrong_of_user(0);
  if (::getuid() == 0) wrong += wrong_of_user(kNobody);
  std::printf("escape: %s\n", wrong == 0 ? "ok" : "something gets out");
  return wrong == 0 ? 0 : 1;
}
