// Measures on this machine, in a process of its own that candidates may crash, hang or damage: it
// is ended and another one takes its place. It is started anew from the program's file and not
// forked, so that it has nothing of this process's threads, locks and memory.
#pragma once
#include <memory>
#include <string>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

struct LocalOptions {
  // Started as PROGRAM measure-worker CORE,... (autotune/measure/worker.h)
  std::string program = "/proc/self/exe";
  // That candidates may run on, each on a core of its own: the last ones that this process may use;
  // 0: one that is not pinned
  int threads = 1;
};

class LocalTransport : public Transport {
 public:
  // Errors: the program cannot be started or does not answer.
  static Expected<std::unique_ptr<LocalTransport>> create(const LocalOptions& options = {});
  ~LocalTransport() override;
  // Not from several threads at once.
  std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) override;
  std::string device() const override;
  int workers_started() const;

 private:
  struct State;
  explicit LocalTransport(std::unique_ptr<State> state);
  MeasureResult run(const MeasureJob& job);
  std::unique_ptr<State> state_;
};

}  // namespace tw
