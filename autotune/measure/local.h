// Measures on this machine, in a separate process that candidates may crash, hang or damage;
// another process then replaces it. The process is started from the program's file and not forked,
// so it shares no threads, locks and memory with this one.
#pragma once
#include <memory>
#include <string>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

struct LocalOptions {
  // Runs as PROGRAM measure-worker CORE,... (autotune/measure/worker.h)
  std::string program = "/proc/self/exe";
  // Threads that candidates may use, each on a core of its own: the last cores that this process
  // may use; 0: one thread, not pinned
  int threads = 1;
};

class LocalTransport : public Transport {
 public:
  // Errors: the program cannot be started or does not answer.
  static Expected<std::unique_ptr<LocalTransport>> create(const LocalOptions& options = {});
  ~LocalTransport() override;
  // One thread at a time may call it.
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
