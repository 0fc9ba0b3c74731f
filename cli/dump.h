// --dump-dir: every stage's text in a numbered file. Does nothing without a directory.
#pragma once
#include <functional>
#include <string>

#include "support/diag.h"

namespace tw {
class Dump {
 public:
  explicit Dump(std::string directory) : directory_(std::move(directory)) {}
  Error write(const std::string& name, const std::function<std::string()>& text);

 private:
  std::string directory_;
  int count_ = 0;
};
}  // namespace tw
