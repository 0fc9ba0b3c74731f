// The accuracy gate: what a compile rounds more than it must (short floats, algorithms with fewer
// multiplications, rows in 8 bits) is held against one budget of error, on the user's data.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/accuracy/error_limit.h"
#include "driver/compile/compile.h"

namespace tw {

struct AccuracyRequest {
  ErrorLimit limit;
  std::string data;       // a folder, as SampleSet::open reads it; "": seeded inputs
  int samples = 0;        // no more than so many; 0: all
  bool by_layer = false;  // what each layer's choice costs and gains alone
  bool frozen = false;    // the lock has the layers that are exact: no others are taken back
  int threads = 1;
};

struct LayerAccuracy {
  LossyLayer layer;
  std::optional<double> error;     // of the outputs, with this layer's choice and no other
  std::optional<double> saved_ms;  // of its call, by the choice
  bool exact = false;              // the choice was taken back
};

struct AccuracyReport {
  ErrorLimit limit;
  double first = 0, error = 0;  // with all choices, and with those that are left
  bool within = true;           // else error is that without any choice, unless frozen
  bool frozen = false;
  size_t samples = 0;
  bool seeded = false;   // they are made up
  std::string stand_in;  // target of the library that was run in its place; "": itself
  std::vector<LayerAccuracy> layers;

  size_t taken_back() const;
};
// Of a report that is not within its limit: over_budget, with the layers to blame.
Error over_accuracy(const AccuracyReport& report);

// Holds what these options made against the limit. An object, and code that this machine does not
// run, is measured by a library for this machine with the same choices. What is taken back is
// written into options.algorithms: then all is to be compiled again. Errors: choices that this
// machine cannot make, data that do not fit.
Expected<AccuracyReport> hold_accuracy(const CompileReport& compiled, CompileOptions& options,
                                       const Target& target, const AccuracyRequest& request,
                                       const OnStage& stage);

}  // namespace tw
