// What a thread is working on, so that a failed check can leave a reproducer: a folder with the
// text of each open context.
#pragma once
#include <functional>
#include <string>

namespace tw {

// Lives on the stack round a piece of work; `text` is called only when a check fails inside.
// Innermost contexts come first.
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

// Writes this thread's contexts into ./tilewright-repro-<pid>/ and returns that name; "" when there
// is nothing to write or the folder cannot be made.
std::string write_reproducer();

}  // namespace tw
