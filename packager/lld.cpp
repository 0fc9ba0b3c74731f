#include "packager/lld.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "packager/memory_file.h"

LLD_HAS_DRIVER(elf)

namespace tw {
namespace {

// Collects lld's output. lld makes a library in memory and writes it at once where the output's
// name is not a regular file's. Here that name is a pipe's, so no file ever exists.
class PipedOutput {
 public:
  static Expected<std::unique_ptr<PipedOutput>> create() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return make_error(DiagCode::io, "cannot create a pipe: {0}", std::strerror(errno));
    return std::unique_ptr<PipedOutput>(new PipedOutput(ends[0], ends[1]));
  }
  ~PipedOutput() {
    finish();
    ::close(from_);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(to_); }
  std::string finish() {  // call it once nobody writes any more
    if (to_ >= 0) {
      ::close(std::exchange(to_, -1));
      reader_.join();
    }
    return std::move(bytes_);
  }

 private:
  PipedOutput(int from, int to) : from_(from), to_(to), reader_([this] { read(); }) {}
  void read() {
    std::vector<char> piece(1 << 16);
    while (true) {
      const ssize_t done = ::read(from_, piece.data(), piece.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return;
      bytes_.append(piece.data(), static_cast<size_t>(done));
    }
  }

  int from_, to_;
  std::string bytes_;
  std::thread reader_;
};

Error call_lld(const std::vector<std::string>& arguments) {
  static std::mutex lld_mutex;  // lld keeps its state in globals
  std::vector<const char*> argv;
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream errors(text);
  int status = 0;
  {
    const std::lock_guard<std::mutex> lock(lld_mutex);
    status = lld::lldMain(argv, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}}).retCode;
  }
  if (status == 0) return Error::success();
  Diag diag{DiagCode::io, "linking failed", {}, {}};
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines) diag.notes.push_back(line.str());
  return make_error(std::move(diag));
}

}  // namespace

Expected<std::string> run_lld(std::vector<std::string> arguments,
                              const std::vector<LldInputs>& inputs) {
  TW_ASSIGN(const std::unique_ptr<PipedOutput> output, PipedOutput::create());
  arguments.insert(arguments.begin(), "ld.lld");
  arguments.insert(arguments.end(),
                   {"--threads=1", "--color-diagnostics=never", "-o", output->path()});
  std::vector<MemoryFile> files;
  for (const LldInputs& group : inputs) {
    if (group.objects.empty()) continue;
    if (group.where_needed) arguments.push_back("--start-lib");
    for (const std::string& object : group.objects) {
      TW_ASSIGN(MemoryFile file, MemoryFile::create(object));
      arguments.push_back(file.path());
      files.push_back(std::move(file));
    }
    if (group.where_needed) arguments.push_back("--end-lib");
  }
  TW_TRY(call_lld(arguments));
  return output->finish();
}

}  // namespace tw
