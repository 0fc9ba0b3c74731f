// bench --plan: predicts what a model's schedules do on a machine with a given number of cores,
// which need not be at hand. Loops are shared out as the runtime does it (runtime/pool.c): into
// equal parts, one for each thread, the first ones an iteration longer where they do not divide.
#pragma once
#include "cli/text/text_width.h"
#include "driver/compile/manifest.h"
#include "driver/run/tensors.h"

namespace tw {

struct PlannedCall {
  std::string call, kernel;
  double one_ms = 0;  // measured, on one thread
  int64_t joins = 0;  // loops that are shared out: a fork and a join each
  // The largest share of the call's work that one thread has; 1 where nothing is shared
  double largest = 1;
  int64_t busy = 1;       // threads that have work in its largest loop
  double planned_ms = 0;  // one_ms times `largest`, and the joins
};
struct ThreadPlan {
  int64_t threads = 1;
  int64_t cores = 1;   // cores that the library is made for
  double join_ms = 0;  // time of one fork and join, by the target's rates
  std::vector<PlannedCall> calls;
  double one_ms() const;
  double planned_ms() const;
  int64_t joins() const;
};

// target: the library's. one_ms: milliseconds of each call on one thread. symbols: the model's.
// Calls on a device keep their time. Errors: a library of a version that did not count its parallel
// loops; a count that is no expression of the symbols.
Expected<ThreadPlan> thread_plan(const Manifest& manifest, const Symbols& symbols,
                                 const Target& target, int64_t threads,
                                 const std::vector<double>& one_ms);
Json to_json(const ThreadPlan& plan);
// A table: the longest calls on that machine first, and the sums
std::string to_string(const ThreadPlan& plan, int columns = kPlainColumns);

}  // namespace tw
