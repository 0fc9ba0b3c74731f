#include "support/repro.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace tw {
namespace {
// A global, as a check may fail anywhere
thread_local CheckContext* innermost = nullptr;
}  // namespace

CheckContext::CheckContext(std::string what, std::function<std::string()> text)
    : what_(std::move(what)), text_(std::move(text)), outer_(std::exchange(innermost, this)) {}

CheckContext::~CheckContext() { innermost = outer_; }

std::string write_reproducer() {
  // A second failure while printing writes nothing.
  CheckContext* context = std::exchange(innermost, nullptr);
  if (!context) return "";
  std::string folder = "tilewright-repro-" + std::to_string(getpid());
  if (mkdir(folder.c_str(), 0777) != 0) return "";
  for (int i = 0; context; context = context->outer_, ++i) {
    std::string name = context->what_;
    for (char& c : name)
      if (c == ' ' || c == '/') c = '-';
    std::ofstream(folder + "/" + std::to_string(i) + "-" + name + ".txt") << context->text_();
  }
  return folder;
}

}  // namespace tw
