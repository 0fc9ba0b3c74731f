#include "driver/compile/dump.h"

#include <llvm/Support/FileSystem.h>

#include "packager/output_file.h"

namespace tw {

std::string dump_path(const std::string& directory, DumpStage stage) {
  switch (stage) {
    case DumpStage::imported: return directory + "/00-imported.graph";
    case DumpStage::optimized: return directory + "/01-optimized.graph";
    case DumpStage::groups: return directory + "/02-groups.txt";
    case DumpStage::program: return directory + "/03-program.txt";
  }
  TW_UNREACHABLE("bad stage");
}

Error Dump::write(DumpStage stage, const std::function<std::string()>& text) {
  if (directory_.empty()) return Error::success();
  if (std::error_code ec = llvm::sys::fs::create_directories(directory_))
    return make_error(DiagCode::io, "cannot create the dump directory '{0}': {1}", directory_,
                      ec.message());
  return write_file(dump_path(directory_, stage), text());
}

}  // namespace tw
