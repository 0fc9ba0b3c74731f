// --dump-dir: every stage's text in a numbered file. Does nothing without a directory.
#pragma once
#include <array>
#include <functional>
#include <string>

#include "support/diag.h"

namespace tw {

enum class DumpStage : uint8_t { imported, optimized, groups, program };
inline constexpr std::array kDumpStages = {DumpStage::imported, DumpStage::optimized,
                                           DumpStage::groups, DumpStage::program};
std::string dump_path(const std::string& directory, DumpStage stage);

class Dump {
 public:
  explicit Dump(std::string directory) : directory_(std::move(directory)) {}
  Error write(DumpStage stage, const std::function<std::string()>& text);

 private:
  std::string directory_;
};
}  // namespace tw
