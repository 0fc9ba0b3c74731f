// A folder through which measurements are asked for and answered. Both sides may be anywhere that
// the folder is: on one machine, on a board with a network file system, or where somebody copies
// files to and fro.
//   worker-NAME       a worker that is there: its fingerprint, its number of threads, and a number
//                     that grows while it lives
//   NUMBER.job        a job (autotune/measure/message.h)
//   NUMBER.taken      the same, at work: whoever could rename it has it alone
//   NUMBER.result     what came out
// Files appear whole, under their name, or not at all.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure.h"
#include "support/diag.h"

namespace tw {

struct SpoolOptions {
  std::string folder;
  double patience =
      30;  // seconds to wait for a worker, and for an answer beyond the job's own time
};

class SpoolTransport : public Transport {
 public:
  // A job that no living worker answers within the patience is `lost`, and so is all that follows.
  // Errors: no such folder, no living worker in it within the patience.
  static Expected<std::unique_ptr<SpoolTransport>> create(const SpoolOptions& options);
  std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) override;
  std::string device() const override { return device_; }
  bool gone() const override { return lost_; }
  int threads() const { return threads_; }

 private:
  explicit SpoolTransport(SpoolOptions options) : options_(std::move(options)) {}
  // What each worker says of itself, by its file; a text that changes is of one that lives.
  using Beats = std::map<std::string, std::string>;
  Beats beats() const;
  MeasureResult answer(const std::string& name, const MeasureJob& job);
  SpoolOptions options_;
  bool lost_ = false;  // no worker lives: nothing is asked any more
  std::string device_;
  int threads_ = 1;
  int number_ = 0;
};

// Serves the folder's jobs by `transport`, one after the other, until `stop`, or until nothing has
// come for so many seconds. The result: how many. Errors: a folder that cannot be used, or that
// others may write to.
struct ServeOptions {
  std::string folder;
  int threads = 1;
  double idle = 0;  // seconds; 0: no limit
  const std::atomic<bool>* stop = nullptr;
};
Expected<int64_t> serve_spool(Transport& transport, const ServeOptions& options);

}  // namespace tw
