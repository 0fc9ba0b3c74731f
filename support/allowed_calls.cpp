#include "support/allowed_calls.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace tw {
namespace {

constexpr const char* kAllowed[] = {
    // Memory
    "brk", "madvise", "memfd_create", "mmap", "mprotect", "mremap", "msync", "munmap",
    // Threads and clocks
    "clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex", "getcpu",
    "getitimer", "gettimeofday", "nanosleep", "restart_syscall", "rseq", "sched_getaffinity",
    "sched_yield", "set_robust_list", "setitimer", "time", "times",
    // Signals
    "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "sigaltstack",
    // About this process and this machine
    "getcwd", "getegid", "geteuid", "getgid", "getpid", "getppid", "getrandom", "getrusage",
    "gettid", "getuid", "riscv_flush_icache", "riscv_hwprobe", "sysinfo", "umask", "uname",
    // Descriptors
    "close", "close_range", "dup", "dup2", "dup3", "fadvise64", "fallocate", "fdatasync", "fstat",
    "fstatfs", "fsync", "ftruncate", "getdents64", "lseek", "pipe", "pipe2", "poll", "ppoll",
    "pread64", "preadv", "preadv2", "pselect6", "pwrite64", "pwritev", "pwritev2", "read", "readv",
    "recvfrom", "select", "write", "writev",
    // Files; Landlock limits the paths
    "access", "faccessat", "faccessat2", "link", "linkat", "lstat", "mkdir", "mkdirat",
    "newfstatat", "readlink", "readlinkat", "rename", "renameat", "renameat2", "rmdir", "stat",
    "statfs", "statx", "unlink", "unlinkat"};

// Calls that get ENOSYS: the C library then uses older ones.
constexpr const char* kMissing[] = {"clone3"};

struct Allowed {
  const char* call;
  std::vector<scmp_arg_cmp> arguments;  // all of them must hold
};

scmp_arg_cmp argument_bits(unsigned argument, uint64_t mask, uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}
// Compares the lower 32 bits, as the kernel ignores the upper ones.
scmp_arg_cmp argument_is(unsigned argument, uint64_t value) {
  return argument_bits(argument, UINT32_MAX, value & UINT32_MAX);
}
scmp_arg_cmp argument_is_null(unsigned argument) { return {argument, SCMP_CMP_EQ, 0, 0}; }

std::vector<Allowed> allowed_by_arguments() {
  constexpr uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  const auto self = static_cast<uint64_t>(::getpid());
  std::vector<Allowed> list{
      {"clone", {argument_bits(0, CLONE_THREAD | kNamespaces, CLONE_THREAD)}},
      {"kill", {argument_is(0, self)}},
      {"tgkill", {argument_is(0, self)}},
      {"sched_setaffinity", {argument_is(0, 0)}},
      {"prlimit64", {argument_is(0, 0), argument_is_null(2)}},  // reads limits, sets none
      {"sendto", {argument_is_null(4)}},                        // only to the connected peer
      {"fcntl", {argument_is(1, F_SETOWN), argument_is(2, self)}},
  };
  for (const uint64_t command :
       {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_ADD_SEALS, F_GET_SEALS})
    list.push_back({"fcntl", {argument_is(1, command)}});
  // Requests for the size of a terminal, or whether a descriptor is a terminal
  for (const uint64_t request : {uint64_t{TCGETS}, uint64_t{TCGETS2}, uint64_t{TIOCGWINSZ}})
    list.push_back({"ioctl", {argument_is(1, request)}});
  for (const uint64_t option : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_VMA})
    list.push_back({"prctl", {argument_is(0, option)}});
  // Permission for matrix tiles: ARCH_GET_XCOMP_SUPP, _GET_XCOMP_PERM, _REQ_XCOMP_PERM
  for (const uint64_t option : {0x1021, 0x1022, 0x1023})
    list.push_back({"arch_prctl", {argument_is(0, option)}});
  // Before Linux 6.2, Landlock lets O_TRUNC empty files that may only be read.
  const auto open = [&](const char* call, unsigned flags) {
    list.push_back({call, {argument_bits(flags, O_TRUNC, 0)}});
    for (const uint64_t access : {O_WRONLY, O_RDWR})
      list.push_back({call, {argument_bits(flags, O_TRUNC | O_ACCMODE, O_TRUNC | access)}});
  };
  open("open", 1);
  open("openat", 2);
  return list;
}

// Returns 0 or libseccomp's error code. Skips calls unknown to this architecture or the library.
int add_rule(scmp_filter_ctx filter, uint32_t action, const char* call,
             const std::vector<scmp_arg_cmp>& arguments = {}) {
  const int number = seccomp_syscall_resolve_name(call);
  if (number < 0) return 0;
  return seccomp_rule_add_array(filter, action, number, static_cast<unsigned>(arguments.size()),
                                arguments.data());
}

}  // namespace

bool can_limit_calls() {
#if defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
  return true;
#else
  return false;
#endif
}

std::string limit_calls() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(
      seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (!filter) return "seccomp: no memory for a filter";
  int code = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  const auto then = [&](uint32_t action, const char* call,
                        const std::vector<scmp_arg_cmp>& arguments = {}) {
    if (code == 0) code = add_rule(filter.get(), action, call, arguments);
  };
  for (const char* call : kAllowed) then(SCMP_ACT_ALLOW, call);
  for (const char* call : kMissing) then(SCMP_ACT_ERRNO(ENOSYS), call);
  for (const Allowed& allowed : allowed_by_arguments())
    then(SCMP_ACT_ALLOW, allowed.call, allowed.arguments);
  if (code == 0) code = seccomp_load(filter.get());
  return code == 0 ? "" : std::string("seccomp: ") + std::strerror(-code);
}

}  // namespace tw
