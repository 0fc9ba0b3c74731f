// A folder for requests and answers of measurements. Both sides may be anywhere where they see the
// folder: on one machine, on a board with a network file system, or where somebody copies files to
// and fro.
//   worker-NAME       a living worker: its fingerprint, its number of threads, and a number that
//                     grows while it lives
//   NUMBER.job        a job (autotune/measure/message.h)
//   NUMBER.taken      the same job at work; the worker that renamed it has it alone
//   NUMBER.result     the result of the job
// A file appears whole under its name, or not at all.
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
  // A job is `lost` when no living worker answers it within the patience; all later jobs are lost
  // too. Errors: no such folder, no living worker in it within the patience.
  static Expected<std::unique_ptr<SpoolTransport>> create(const SpoolOptions& options);
  std::vector<MeasureResult> run(std::span<const MeasureJob> jobs) override;
  std::string device() const override { return device_; }
  bool gone() const override { return lost_; }
  int threads() const { return threads_; }

 private:
  explicit SpoolTransport(SpoolOptions options) : options_(std::move(options)) {}
  // The text of each worker's file, by the file's name. A living worker's text changes.
  using Beats = std::map<std::string, std::string>;
  Beats beats() const;
  MeasureResult answer(const std::string& name, const MeasureJob& job);
  SpoolOptions options_;
  bool lost_ = false;  // no worker lives, so no more jobs are sent
  std::string device_;
  int threads_ = 1;
  int number_ = 0;
};

// Serves the folder's jobs with `transport`, one after the other, until `stop`, or until no job has
// come for `idle` seconds. The result is the number of jobs. Errors: a folder that cannot be used,
// or that others may write to.
struct ServeOptions {
  std::string folder;
  int threads = 1;
  double idle = 0;  // seconds; 0: no limit
  const std::atomic<bool>* stop = nullptr;
};
Expected<int64_t> serve_spool(Transport& transport, const ServeOptions& options);

}  // namespace tw
