// The common part of bench and profile: a library, given or compiled from a model, that is loaded
// and ready to run on its inputs.
#pragma once
#include <optional>

#include "cli/app.h"
#include "driver/compile/manifest.h"
#include "driver/run/time_model.h"
#include "packager/loaded_model.h"
#include "support/temporary_folder.h"

namespace tw {

struct TimedArgs {
  std::string file, target = "host", device;
  InputSources inputs;
  int threads = 0, warmup = 3, virtual_threads = 0;
  TimingOptions timing;
  bool no_check = false;
};
void declare(Flags& flags, TimedArgs& args);

class TimedLibrary {
 public:
  // Runs on `threads` threads (0: as many as the process may use), and warms up first.
  static Expected<TimedLibrary> open(const TimedArgs& args, int threads, Console& console);

  ModelRun& run() { return *run_; }
  const tw_api& api() const { return model_.api(); }
  const Inputs& inputs() const { return inputs_; }
  const Manifest& manifest() const { return manifest_; }
  Expected<Target> target() const;  // as the manifest has it
  // The median milliseconds of each call that the manifest lists.
  Expected<std::vector<double>> time_calls(const TimingOptions& timing);

 private:
  TimedLibrary(std::string path, TemporaryFolder folder, LoadedModel model, Manifest manifest,
               Inputs inputs)
      : path_(std::move(path)),
        folder_(std::move(folder)),
        model_(std::move(model)),
        manifest_(std::move(manifest)),
        inputs_(std::move(inputs)) {}

  std::string path_;
  TemporaryFolder folder_;  // holds a library that was compiled for this
  LoadedModel model_;
  Manifest manifest_;
  Inputs inputs_;
  std::optional<ModelRun> run_;  // ends before the model
};

}  // namespace tw
