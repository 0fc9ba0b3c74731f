#include "autotune/measure/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "autotune/measure/message.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
constexpr auto kLook = std::chrono::milliseconds(10);  // pause between two looks at the folder
constexpr double kPrepareSeconds = 120;                // to load a job and make its inputs
constexpr uint64_t kMostBytes = uint64_t{1} << 32;     // largest file; a larger one is no job

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reads a regular file only: a read from a pipe would wait, and a device need not end.
std::optional<std::string> read_whole(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::optional<std::string> bytes;
  struct stat about{};
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
      static_cast<uint64_t>(about.st_size) <= kMostBytes) {
    bytes.emplace(static_cast<size_t>(about.st_size), '\0');
    for (size_t at = 0; bytes && at < bytes->size();) {
      const ssize_t count = ::read(file, bytes->data() + at, bytes->size() - at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) bytes.reset();
      else at += static_cast<size_t>(count);
    }
  }
  ::close(file);
  return bytes;
}

bool write_all(int file, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::write(file, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

bool write_whole(const fs::path& path, const std::string& bytes) {
  const fs::path part = path.parent_path() / ("." + path.filename().string());
  std::error_code code;
  fs::remove(part, code);
  // Only a new file is written: a link that others put there would lead elsewhere.
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_all(file, bytes);
  if (::close(file) != 0 || !written) {
    fs::remove(part, code);
    return false;
  }
  fs::rename(part, path, code);
  return !code;
}

std::string own_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + "-" + std::to_string(::getpid());
}

// Paths of the folder's files with that extension, in order of their names
std::vector<fs::path> files_of(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> out;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (at->path().extension() == extension && at->path().filename().string()[0] != '.')
      out.push_back(at->path());
  std::sort(out.begin(), out.end());
  return out;
}

MeasureResult failed(Status status, const std::string& error) {
  MeasureResult result;
  result.status = status;
  result.error = one_line(error);
  return result;
}

// True when the worker has written something since `before`: a worker that is gone writes nothing.
bool is_new(const std::pair<const std::string, std::string>& beat,
            const std::map<std::string, std::string>& before) {
  const auto known = before.find(beat.first);
  return beat.second.find('\n') != std::string::npos &&
         (known == before.end() || known->second != beat.second);
}

// Pads the number, so that the names of one asker sort in its order.
std::string number_text(int number) {
  std::string text = std::to_string(number);
  return std::string(8 - std::min<size_t>(8, text.size()), '0') + text;
}

}  // namespace

Expected<std::unique_ptr<SpoolTransport>> SpoolTransport::create(const SpoolOptions& options) {
  std::error_code code;
  if (!fs::is_directory(options.folder, code))
    return make_error(DiagCode::io, "there is no folder '{0}' for a worker", options.folder);
  std::unique_ptr<SpoolTransport> out(new SpoolTransport(options));
  const Beats before = out->beats();
  for (const double start = clock_seconds(); clock_seconds() - start < options.patience;
       std::this_thread::sleep_for(kLook)) {
    const Beats now = out->beats();
    const auto living = std::find_if(now.begin(), now.end(),
                                     [&](const auto& one) { return is_new(one, before); });
    if (living == now.end()) continue;
    const std::string& text = living->second;
    const size_t line = text.find('\n');
    out->device_ = text.substr(0, line);
    out->threads_ = std::max(1, std::atoi(text.c_str() + line + 1));
    return out;
  }
  return make_error(DiagCode::io,
                    "no worker serves '{0}': run tilewright worker, or tilewright-worker on a "
                    "board, with this folder",
                    options.folder);
}

SpoolTransport::Beats SpoolTransport::beats() const {
  Beats all;
  std::error_code code;
  for (fs::directory_iterator at(options_.folder, code), end; !code && at != end;
       at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.compare(0, 7, "worker-") != 0) continue;
    if (std::optional<std::string> text = read_whole(at->path()))
      all.emplace(name, std::move(*text));
  }
  return all;
}

std::vector<MeasureResult> SpoolTransport::run(std::span<const MeasureJob> jobs) {
  std::vector<std::string> names;
  std::vector<MeasureResult> results;
  const std::string own = own_name();
  for (const MeasureJob& job : jobs) {
    names.push_back(options_.folder + "/" + own + "-" + number_text(number_++));
    if (!write_whole(names.back() + ".job", to_bytes(job))) names.back().clear();
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    results.push_back(names[i].empty()
                          ? failed(Status::crashed, "cannot write to '" + options_.folder + "'")
                          : answer(names[i], jobs[i]));
    results.back().lost |= names[i].empty();
  }
  return results;
}

MeasureResult SpoolTransport::answer(const std::string& name, const MeasureJob& job) {
  const double limit = kPrepareSeconds + options_.patience +
                       2 * job.limits.timeout * std::max(1, job.threads);
  std::error_code code;
  Beats heard = beats();
  const double start = clock_seconds();
  for (double last = start; !lost_; std::this_thread::sleep_for(kLook)) {
    if (const std::optional<std::string> bytes = read_whole(name + ".result")) {
      fs::remove(name + ".result", code);
      Expected<MeasureResult> result = result_from_bytes(*bytes);
      if (result) return std::move(*result);
      return failed(Status::crashed, error_text(result.takeError()));
    }
    const double now = clock_seconds();
    Beats beating = beats();
    if (std::any_of(beating.begin(), beating.end(),
                    [&](const auto& one) { return is_new(one, heard); }))
      heard = std::move(beating), last = now;
    lost_ = now - last > options_.patience || now - start > limit;
  }
  fs::remove(name + ".job", code);
  fs::remove(name + ".taken", code);
  MeasureResult result = failed(Status::timeout,
                                "the worker of '" + options_.folder + "' does not answer");
  result.lost = true;
  return result;
}

namespace {

// Writes the worker's file twice a second, with a number that grows.
class Heartbeat {
 public:
  Heartbeat(fs::path file, std::string text) : file_(std::move(file)), text_(std::move(text)) {
    alive_ = write();
    thread_ = std::thread([this] {
      for (int looks = 1; !ended_; ++looks) {
        std::this_thread::sleep_for(kLook);
        if (looks % kLooksOfBeat == 0) alive_ = write();
      }
    });
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() {
    ended_ = true;
    thread_.join();
    std::error_code code;
    fs::remove(file_, code);
  }
  bool alive() const { return alive_; }  // the folder accepts its file

 private:
  static constexpr int kLooksOfBeat = 50;
  bool write() { return write_whole(file_, text_ + std::to_string(++number_) + "\n"); }
  fs::path file_;
  std::string text_;
  int64_t number_ = 0;
  std::atomic<bool> alive_ = false, ended_ = false;
  std::thread thread_;
};

// Jobs bring code that runs as the worker's user, so nobody else may put them there.
Error check_owner(const std::string& folder) {
  struct stat about{};
  if (::stat(folder.c_str(), &about) != 0)
    return make_error(DiagCode::io, "cannot look at '{0}': {1}", folder, std::strerror(errno));
  if (about.st_uid == ::geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH)))
    return Error::success();
  return make_error(DiagCode::invalid_argument,
                    "others may write to '{0}', and a worker runs the code that lies there: give "
                    "it a folder of its own user, which neither group nor others may write to "
                    "(chmod go-w)",
                    folder);
}

}  // namespace

Expected<int64_t> serve_spool(Transport& transport, const ServeOptions& options) {
  std::error_code code;
  if (fs::create_directories(options.folder, code))
    fs::permissions(options.folder, fs::perms::group_write | fs::perms::others_write,
                    fs::perm_options::remove, code);
  TW_TRY(check_owner(options.folder));
  const fs::path own = fs::path(options.folder) / ("worker-" + own_name());
  const Heartbeat heartbeat(own,
                            transport.device() + "\n" + std::to_string(options.threads) + "\n");
  if (!heartbeat.alive()) return make_error(DiagCode::io, "cannot write to '{0}'", options.folder);
  int64_t served = 0;
  double last = clock_seconds();
  while (!(options.stop && *options.stop) &&
         (options.idle <= 0 || clock_seconds() - last < options.idle)) {
    bool any = false;
    for (const fs::path& job : files_of(options.folder, ".job")) {
      if (options.stop && *options.stop) break;
      fs::path taken = job, result = job;
      taken.replace_extension(".taken"), result.replace_extension(".result");
      fs::rename(job, taken, code);
      if (code) continue;  // another worker took it
      const std::optional<std::string> bytes = read_whole(taken);
      Expected<MeasureJob> read = job_from_bytes(bytes ? *bytes : "");
      const MeasureResult out = read ? transport.run({&*read, 1}).front()
                                     : failed(Status::illegal, error_text(read.takeError()));
      if (!write_whole(result, to_bytes(out)))
        return make_error(DiagCode::io, "cannot write to '{0}'", options.folder);
      fs::remove(taken, code);
      ++served;
      any = true;
    }
    if (any) last = clock_seconds();
    else std::this_thread::sleep_for(kLook);
  }
  return served;
}

}  // namespace tw
