// The sub-commands, a file or a folder each. The table that names them is in app.cpp.
#pragma once
#include "cli/app.h"

namespace tw {

CommandRun define_compile(Flags& flags);
CommandRun define_run(Flags& flags);
CommandRun define_verify(Flags& flags);
CommandRun define_bench(Flags& flags);
CommandRun define_profile(Flags& flags);
CommandRun define_tune(Flags& flags);
CommandRun define_inspect(Flags& flags);
CommandRun define_targets(Flags& flags);
CommandRun define_target(Flags& flags);
CommandRun define_opt(Flags& flags);
CommandRun define_log(Flags& flags);
CommandRun define_dataset(Flags& flags);
CommandRun define_lock(Flags& flags);
CommandRun define_space(Flags& flags);
CommandRun define_worker(Flags& flags);
CommandRun define_adapt(Flags& flags);
CommandRun define_reduce(Flags& flags);
CommandRun define_compare(Flags& flags);
CommandRun define_completion(Flags& flags);
CommandRun define_bundle(Flags& flags);
CommandRun define_unbundle(Flags& flags);
CommandRun define_man(Flags& flags);
CommandRun define_quantize(Flags& flags);

}  // namespace tw
