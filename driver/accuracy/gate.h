// The accuracy gate. A compile may round more than it must: short floats, algorithms with fewer
// multiplications, rows in 8 bits. The gate measures the error of all these choices together on the
// user's data. If it exceeds the limit, the gate takes back the choices that do most harm.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/accuracy/error_limit.h"
#include "driver/compile/compile.h"

namespace tw {

struct AccuracyRequest {
  ErrorLimit limit;
  std::string data;       // path that SampleSet::open reads; "": seeded inputs
  int samples = 0;        // at most this many; 0: all
  bool by_layer = false;  // measure each layer's choice alone: error and time
  bool frozen = false;    // the lock names the exact layers: no other choice is taken back
  int threads = 1;
};

struct LayerAccuracy {
  LossyLayer layer;
  std::optional<double> error;     // error of the outputs with this layer's choice and no other
  std::optional<double> saved_ms;  // milliseconds that the choice saves in the layer's call
  bool exact = false;              // the choice was taken back
};

struct AccuracyReport {
  ErrorLimit limit;
  double first = 0, error = 0;  // with all choices, and with the choices that are left
  bool within = true;           // false: error is the one with every layer exact; frozen: first
  bool frozen = false;
  size_t samples = 0;
  bool seeded = false;   // the samples are made-up inputs
  std::string stand_in;  // target of the library that ran instead; "": the compiled one ran
  std::vector<LayerAccuracy> layers;

  size_t taken_back() const;
};
// The error for a report that is not within its limit; it names the layers to blame.
Error over_accuracy(const AccuracyReport& report);

// Holds the compiled model against the limit. For an object, and for code that does not run here, a
// library for this machine with the same choices is measured instead. Choices that are taken back
// are written into options.algorithms, and the caller compiles again. Errors: choices that this
// machine cannot make, data that do not fit.
Expected<AccuracyReport> hold_accuracy(const CompileReport& compiled, CompileOptions& options,
                                       const Target& target, const AccuracyRequest& request,
                                       const OnStage& stage);

}  // namespace tw
