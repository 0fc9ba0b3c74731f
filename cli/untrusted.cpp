#include "cli/untrusted.h"

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <set>

#include "cli/targets.h"
#include "cli/text/formatted.h"
#include "support/confine.h"

namespace tw {
namespace {

constexpr uint64_t kMostFile = uint64_t{8} << 30;
constexpr double kGigabytes = 8, kSeconds = 600;            // defaults
constexpr double kMostGigabytes = 1e6, kMostSeconds = 1e8;  // most that a flag may say

// Paths that the program and the C library read: shared libraries, the processor, the limits
constexpr const char* kSystem[] = {
    "/usr",          "/lib",         "/lib64",       "/etc/ld.so.cache",
    "/dev/null",     "/dev/urandom", "/proc/self",   "/proc/cpuinfo",
    "/proc/meminfo", "/proc/sys/vm", "/sys/devices", "/sys/fs/cgroup"};

std::string list_text(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : std::set<std::string>(paths.begin(), paths.end()))
    text += (text.empty() ? "" : ", ") + path;
  return text.empty() ? "nothing" : text;
}

void say(const Confinement& c, Console& console) {
  if (console.json) return;
  console.err << formatted(
                     "untrusted: a process of its own, at most %.3g GB of memory, %.4g s, "
                     "%.3g GB a file; ",
                     static_cast<double>(c.memory_bytes) * 1e-9, c.seconds,
                     static_cast<double>(c.file_bytes) * 1e-9)
              << "reads " << list_text(c.reads) << "; writes " << list_text(c.writes)
              << "; no other processes, no programs, no network\n";
  console.err.flush();
}

}  // namespace

void UntrustedFlags::define(Flags& flags) {
  flags.flag("--untrusted", on,
             "The file may be hostile: work in a process of its own, which sees no other files, "
             "starts no programs and has no network (docs/guide/trust.md)");
  flags.number("--limit-memory", gigabytes, "GB", "Of --untrusted; default 8");
  flags.number("--limit-seconds", seconds, "S", "Of --untrusted; default 600");
}

Error UntrustedFlags::check() const {
  const bool memory = gigabytes != kNotGiven, time = seconds != kNotGiven;
  if (!on && (memory || time))
    return make_error(DiagCode::invalid_argument,
                      "{0} holds the work of --untrusted, which is not asked for: give both",
                      memory ? "--limit-memory" : "--limit-seconds");
  if (memory && !(gigabytes > 0 && gigabytes <= kMostGigabytes))
    return make_error(DiagCode::invalid_argument,
                      "--limit-memory {0}: gigabytes above 0, at most {1:F0}", gigabytes,
                      kMostGigabytes);
  if (time && !(seconds > 0 && seconds <= kMostSeconds))
    return make_error(DiagCode::invalid_argument,
                      "--limit-seconds {0}: seconds above 0, at most {1:F0}", seconds,
                      kMostSeconds);
  return Error::success();
}

std::string folder_of(const std::string& file) {
  if (file.empty()) return "";
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

Expected<Confined> confined(const UntrustedFlags& flags, std::vector<std::string> reads,
                            std::vector<std::string> writes, Console& console) {
  Confined result;
  TW_TRY(flags.check());
  if (!flags.on) return result;
  const double gigabytes = flags.gigabytes < 0 ? kGigabytes : flags.gigabytes;
  const double seconds = flags.seconds < 0 ? kSeconds : flags.seconds;
  TW_ASSIGN(TemporaryFolder folder, TemporaryFolder::create());
  result.folder.emplace(std::move(folder));
  std::erase(reads, "");
  std::erase(writes, "");
  Confinement confinement{static_cast<uint64_t>(gigabytes * 1e9), kMostFile, seconds,
                          std::move(reads), std::move(writes)};
  say(confinement, console);
  confinement.writes.push_back(result.folder->path());
  confinement.reads.insert(confinement.reads.end(), std::begin(kSystem), std::end(kSystem));
  for (const std::string& folder : config_dirs()) confinement.reads.push_back(folder);
  console.out.flush();
  TW_ASSIGN(result.code, confine(confinement));
  if (!result.code) ::setenv("TMPDIR", result.folder->path().c_str(), 1);
  return result;
}

}  // namespace tw
