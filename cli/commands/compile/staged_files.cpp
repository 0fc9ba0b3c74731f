#include "cli/commands/compile/staged_files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "packager/output_file.h"
#include "support/regular_file.h"

namespace tw {
namespace {

namespace fs = std::filesystem;

Error take_place(const std::string& made, const std::string& path) {
  if (std::rename(made.c_str(), path.c_str()) == 0) return Error::success();
  if (errno != EXDEV)
    return make_error(DiagCode::io, "cannot write '{0}': {1}", path, std::strerror(errno));
  // A file system, or a confined process, may not move files between folders: copy instead.
  TW_ASSIGN(const auto bytes, regular_file(made));
  const bool executable = (fs::status(made).permissions() & fs::perms::owner_exec) !=
                          fs::perms::none;
  return write_file(path, {bytes->getBufferStart(), bytes->getBufferSize()}, executable);
}

}  // namespace

Expected<std::string> StagedFiles::stage(const std::string& path) {
  if (path.empty()) return path;
  const std::string parent = fs::path(path).parent_path().string();
  auto folder = folders_.find(parent);
  if (folder == folders_.end()) {
    TW_ASSIGN(TemporaryFolder made, TemporaryFolder::beside(path));
    folder = folders_.emplace(parent, std::move(made)).first;
  }
  files_.push_back({(folder->second.path() / fs::path(path).filename()).string(), path});
  return files_.back().made;
}

Error StagedFiles::publish() {
  const EndSignalsWait until_done;
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    std::error_code none;
    if (!fs::exists(file->made, none)) continue;
    Error error = take_place(file->made, file->path);
    if (!error) continue;
    for (auto before = files_.begin(); before != file; ++before) fs::remove(before->path, none);
    return error;
  }
  return Error::success();
}

}  // namespace tw
