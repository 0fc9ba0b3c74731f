// One run of a model over time, in the form that chrome://tracing and Perfetto show.
#pragma once
#include "driver/compile/manifest.h"
#include "driver/run/recording_pool.h"
#include "driver/run/tensors.h"
#include "support/json.h"

namespace tw {

struct RunTrace {
  std::vector<uint64_t> call_ns;  // by call of the manifest; 0: the run did not make it
  std::vector<LoopPart> parts;
  uint64_t begin = 0, end = 0;  // begin and end of the run, on the parts' clock
};
// Traces the third of three runs.
Expected<RunTrace> trace_run(const tw_api& api, const Inputs& inputs, int threads);
// A lane for the calls, and one for each thread with its parts of parallel loops. A call without
// such parts stands behind the call before. The manifest has as many calls as the trace.
Json chrome_trace(const RunTrace& trace, const Manifest& manifest);

}  // namespace tw
