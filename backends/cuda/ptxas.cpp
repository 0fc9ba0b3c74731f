#include "backends/cuda/ptxas.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Program.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <array>
#include <optional>

#include "support/end_signals.h"

namespace tw::cuda {
namespace {

using llvm::StringRef;

// The number before `what` in a line like "..., 16 bytes spill stores, ..."
int64_t number_before(StringRef line, StringRef what) {
  const size_t at = line.find(what);
  if (at == StringRef::npos) return 0;
  int64_t value = 0;
  const StringRef text = line.take_front(at).rtrim();
  if (text.drop_front(text.find_last_of(" ,\t") + 1).getAsInteger(10, value)) return 0;
  return value;
}

struct TemporaryFile {
  explicit TemporaryFile(const char* suffix) {
    llvm::SmallString<128> name;
    const EndSignalsWait until_registered;
    there = !llvm::sys::fs::createTemporaryFile("tilewright", suffix, name);
    path = std::string(name);
    if (there) removed.emplace(path);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (there) (void)llvm::sys::fs::remove(path);
  }
  std::string path;
  bool there = false;
  std::optional<RemovedOnEndSignal> removed;
};

std::string read_file(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

}  // namespace

std::string find_ptxas() {
  for (const auto& folders :
       {std::vector<StringRef>{},
        std::vector<StringRef>{".venv/bin", "/usr/local/cuda/bin", "/opt/cuda/bin"}})
    if (auto found = llvm::sys::findProgramByName("ptxas", folders)) return *found;
  return "";
}

Expected<std::map<std::string, PtxasFunction>> read_ptxas_report(const std::string& report) {
  std::map<std::string, PtxasFunction> functions;
  std::string current;
  llvm::SmallVector<StringRef> lines;
  StringRef(report).split(lines, '\n');
  for (StringRef line : lines) {
    const size_t note = line.find("C75");
    if (note != StringRef::npos && line.substr(note + 3, 2).find_if_not([](char c) {
          return c >= '0' && c <= '9';
        }) == StringRef::npos)
      return make_error(DiagCode::unsupported, "ptxas changes the program: {0}", line.trim().str());
    if (const size_t at = line.find("Compiling entry function '"); at != StringRef::npos)
      current = line.drop_front(at + 26).take_until([](char c) { return c == '\''; }).str();
    PtxasFunction& function = functions[current];
    if (line.contains("bytes stack frame")) {
      function.stack_bytes = number_before(line, "bytes stack frame");
      function.spill_bytes = number_before(line, "bytes spill stores") +
                             number_before(line, "bytes spill loads");
    }
    if (line.contains("Used ")) {
      function.registers = number_before(line, "registers");
      function.shared_bytes = number_before(line, "bytes smem");
    }
  }
  functions.erase("");
  for (const auto& [name, function] : functions)
    if (function.spill_bytes)
      return make_error(DiagCode::unsupported, "function '{0}' spills registers: {1} bytes", name,
                        std::to_string(function.spill_bytes));
  return functions;
}

std::string ptxas_version(const std::string& program) {
  TemporaryFile log("log");
  const std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log.path),
                                                StringRef(log.path)};
  if (!log.there ||
      llvm::sys::ExecuteAndWait(program, {program, "--version"}, std::nullopt, redirects) != 0)
    return "of an unknown version";
  const std::string text = read_file(log.path);
  return StringRef(text)
      .drop_front(std::min(text.size(), StringRef(text).rfind(" V") + 1))
      .take_until([](char c) { return c == '\n' || c == ' '; })
      .str();
}

Expected<PtxasResult> run_ptxas(const std::string& program, const std::string& ptx,
                                const std::string& chip) {
  TemporaryFile in("ptx"), out("cubin"), log("log");
  if (!in.there || !out.there || !log.there)
    return make_error(DiagCode::io, "no temporary file for ptxas");
  {
    std::error_code code;
    llvm::raw_fd_ostream(in.path, code) << ptx;
  }
  const std::string arch = "-arch=" + chip;
  const std::array<StringRef, 6> arguments = {program, arch, "-v", "-o", out.path, in.path};
  const std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log.path),
                                                StringRef(log.path)};
  const int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects);
  const std::string report = read_file(log.path);
  if (status != 0)
    return make_error(DiagCode::unsupported, "ptxas refuses it: {0}",
                      StringRef(report).take_front(2000).trim().str());
  TW_ASSIGN(auto functions, read_ptxas_report(report));
  return PtxasResult{read_file(out.path), std::move(functions)};
}

}  // namespace tw::cuda
