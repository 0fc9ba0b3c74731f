// The choices of a user for tuning a network
#pragma once
#include "autotune/scheduler.h"
#include "autotune/tuners/tuner.h"

namespace tw {

struct NetworkOptions : TunerOptions {
  // Trials for each task, with a predictor and no limit
  int trials_each = 64;
  // For comparing methods: records answer the search's requests, count as its trials, and teach it
  // nothing else
  bool table = false;
  // Batch 0: chosen from the numbers of trials and tasks
  SchedulerOptions scheduler = {};
  int patience = 0;  // trials of a task without a gain before it stops; 0: never
};

}  // namespace tw
