#include "cli/dump.h"

#include <llvm/Support/FileSystem.h>

#include "packager/output_file.h"

namespace tw {
Error Dump::write(const std::string& name, const std::function<std::string()>& text) {
  if (directory_.empty()) return Error::success();
  if (std::error_code ec = llvm::sys::fs::create_directories(directory_))
    return make_error(DiagCode::io, "cannot create the dump directory '{0}': {1}", directory_, ec.message());
  std::string path = llvm::formatv("{0}/{1}{2}-{3}", directory_, count_ / 10, count_ % 10, name).str();
  ++count_;
  return write_file(path, text());
}
}  // namespace tw
