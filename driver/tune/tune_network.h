// Tuning a network as one step: the search, and measuring again what it found.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "driver/run/roofline.h"
#include "driver/tune/check_records.h"
#include "driver/tune/model_tasks.h"
#include "driver/tune/tune_budget.h"
#include "driver/tune/tune_services.h"
#include "frontend/frontend.h"

namespace tw {

struct TuneRequest {
  std::string model;  // file
  std::map<std::string, int64_t> dims;
  GivenInputs given;
  NetworkOptions network;
  TuneSources sources;
  std::string log;  // read and written
  int kernel = 0;   // only this one of the model, counted from 1; 0: all
  QuantizedRounding rounding = QuantizedRounding::standard;
  RefusedAlgorithms refused = {};
  std::set<std::string> exact = {};  // values whose products round no operands
  double kept = 0;                   // of the time limit what comes behind the tuning, seconds
  // Of the time limit
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::atomic<bool>* stop = nullptr;  // asks for an orderly end; null: nobody does
};

// Hears how a tuning goes.
class TuneWatch {
 public:
  virtual ~TuneWatch() = default;
  virtual void stage_begins(const std::string&) {}  // "import", "probe", "confirm", ..
  virtual void stage_at(const std::string&) {}      // what of the stage it is at
  virtual void stage_ends() {}
  // The search; its arguments are there until it ends. Tasks come from any thread.
  virtual void search_begins(const NetworkTuner&, const Peaks&, const TuneBudget&) {}
  virtual void task_begins(size_t) {}
  virtual void task_ends(size_t) {}
  virtual void search_ends() {}
};

struct TuneOutcome {
  int trials = 0;
  size_t kernels = 0, reached = 0;    // reached: with a time of their own
  std::vector<std::string> failures;  // of kernels of which nothing works, a line each
  // Of all, from the request's start; before the search; in it
  double seconds = 0, before = 0, searched = 0;
  double limit = 0;  // of all; 0: none
  ConfirmedRecords confirmed;
};
struct TunedNetwork {
  std::unique_ptr<NetworkTuner> tuner;  // with what is known of each task
  Peaks peaks;
  StopReason reason = StopReason::finished;
  std::string unused;  // why records of its kernels in the log were not taken; "": all were
  TuneOutcome outcome;
};
// The needs of a search beside the model. Errors: a log that cannot be written, a target that this
// machine cannot run
Error check_tunable(const TuneRequest& request, const Target& target);
// Until a limit of the request. Errors: a target that this machine cannot run, no task that can be
// measured. target must outlive the result.
Expected<TunedNetwork> tune_network(const TuneRequest& request, const Target& target,
                                    TuneWatch& watch);

// The model's tasks, or the one that is asked for. Errors: there is no such one.
Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target);

}  // namespace tw
