// Reproducers of failed checks: a folder with the text of each piece of work that the thread had
// open.
#pragma once
#include <functional>
#include <string>

namespace tw {

// Describes a piece of work while it lives, on the stack. `text` is called only when a check fails
// inside. The innermost context comes first.
class CheckContext {
 public:
  CheckContext(std::string what, std::function<std::string()> text);
  ~CheckContext();
  CheckContext(const CheckContext&) = delete;
  CheckContext& operator=(const CheckContext&) = delete;

 private:
  friend std::string write_reproducer();
  std::string what_;
  std::function<std::string()> text_;
  CheckContext* outer_;
};

// Writes this thread's contexts into ./tilewright-repro-<pid>/ and returns that name; "" if there
// is no context or the folder cannot be made.
std::string write_reproducer();

}  // namespace tw
