// One run of a model over time, in the form that chrome://tracing and Perfetto show.
#pragma once
#include "driver/compile/manifest.h"
#include "driver/run/recording_pool.h"
#include "driver/run/tensors.h"
#include "support/json.h"

namespace tw {

struct RunTrace {
  std::vector<uint64_t> call_ns;  // of each of the manifest's calls; 0: not of this run
  std::vector<LoopPart> parts;
  uint64_t begin = 0, end = 0;  // of the run, on the parts' clock
};
// Of the third of three runs on so many threads.
Expected<RunTrace> trace_run(const tw_api& api, const Inputs& inputs, int threads);
// A lane for the calls, one a thread for the parts of their parallel loops. A call without such
// parts stands behind the call before. The manifest has as many calls as the trace.
Json chrome_trace(const RunTrace& trace, const Manifest& manifest);

}  // namespace tw
