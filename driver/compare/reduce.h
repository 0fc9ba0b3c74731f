// Reduces a model to a small part that fails as the whole does: in compile (an error, a crash, a
// time-out) or in verify.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "support/diag.h"

namespace tw {

struct ReduceRequest {
  std::string model, output, target;
  std::map<std::string, int64_t> dims;
  int seconds = 120;  // a step that takes longer counts as hanging
};
struct Failure {
  std::string step;  // step that fails; "": nothing fails
  int status = 0;    // exit status; below 0: a signal or the time-out
  // The error's code and words without numbers, or how outputs are off; "": no message
  std::string text;
  bool operator==(const Failure&) const = default;
};
struct ReducedModel {
  Failure failure;
  size_t nodes = 0, of = 0;
  std::string operators;  // operators that are left
};
// Runs this program's compile and verify on ever smaller parts. on_smaller is told how many nodes
// are left; it may be null. Errors: nothing fails.
Expected<ReducedModel> reduce_model(const ReduceRequest& request,
                                    const std::function<void(size_t nodes)>& on_smaller);

// Reads the output of compile --json or verify --json: the first error's code, and its message
// without numbers, or how outputs are off. "": it is no JSON.
std::string failure_of(const std::string& json);

}  // namespace tw
