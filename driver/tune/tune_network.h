// Tuning a network as one step: the search, and measuring again what it found.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "autotune/network.h"
#include "driver/run/roofline.h"
#include "driver/tune/check_records.h"
#include "driver/tune/model_tasks.h"
#include "driver/tune/tune_budget.h"
#include "frontend/frontend.h"

namespace tw {

struct TuneRequest {
  std::string model;  // file
  std::map<std::string, int64_t> dims;
  GivenInputs given;
  NetworkOptions network;
  SpaceOptions space;
  std::string worker = {};  // folder of a worker that measures; empty: this machine
  std::string log;          // read and written
  int kernel = 0;           // only this kernel of the model, counted from 1; 0: all
  QuantizedRounding rounding = QuantizedRounding::standard;
  RefusedAlgorithms refused = {};
  std::set<std::string> exact = {};  // values whose products round no operands
  double kept = 0;                   // seconds of the time limit for the steps behind the tuning
  // The time limit counts from here.
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const std::atomic<bool>* stop = nullptr;  // asks for an orderly end; may be null
};

// Receives the events of a tuning.
class TuneWatch {
 public:
  virtual ~TuneWatch() = default;
  virtual void stage_begins(const std::string&) {}  // "import", "probe", "confirm", ..
  virtual void stage_at(const std::string&) {}      // progress within the stage
  virtual void stage_ends() {}
  // The arguments live until the search ends. Tasks are told from any thread.
  virtual void search_begins(const NetworkTuner&, const Peaks&, const TuneBudget&) {}
  virtual void task_begins(size_t) {}
  virtual void task_ends(size_t) {}
  virtual void search_ends() {}
};

struct TuneOutcome {
  int trials = 0;
  size_t kernels = 0, reached = 0;    // reached: kernels with a time of their own
  std::vector<std::string> failures;  // a line for each kernel without a working schedule
  // In all, from the request's start; before the search; in the search
  double seconds = 0, before = 0, searched = 0;
  double limit = 0;  // seconds in all; 0: none
  ConfirmedRecords confirmed;
};
struct TunedNetwork {
  std::unique_ptr<NetworkTuner> tuner;  // holds what is known of each task
  Peaks peaks;
  StopReason reason = StopReason::finished;
  std::string unused;  // why records of its kernels in the log were not taken; "": all were
  std::set<std::string> added;  // identities of the records that it added to the log
  TuneOutcome outcome;
};
// Checks what a search needs beside the model. Errors: a log that cannot be written, a target that
// this machine cannot run.
Error check_tunable(const TuneRequest& request, const Target& target);
// Tunes until a limit of the request is reached. target must outlive the result. Errors: a target
// that this machine cannot run, no task that can be measured.
Expected<TunedNetwork> tune_network(const TuneRequest& request, const Target& target,
                                    TuneWatch& watch);

// The model's tasks, or the one that request.kernel names. Errors: there is no such kernel.
Expected<std::vector<Task>> chosen_tasks(const TuneRequest& request, const Target& target);

}  // namespace tw
