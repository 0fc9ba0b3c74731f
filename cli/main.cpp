// A failed TW_CHECK aborts after its message: the handler turns that into the documented exit code.
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "autotune/measure/worker.h"
#include "cli/app.h"
#include "driver/compare/compare_artifacts.h"
#include "support/changed_files.h"
#include "support/end_signals.h"

namespace {
void internal_error(int) { std::_Exit(tw::kExitInternal); }
}  // namespace

int main(int argc, char** argv) {
  if (tw::is_measure_worker(argc, argv)) return tw::measure_worker(argv);
  if (tw::is_compare_worker(argc, argv)) return tw::compare_worker(argc, argv);
  std::signal(SIGABRT, internal_error);
  tw::clean_up_on_end_signals();
  tw::exit_when_mapped_files_shrink(tw::kExitIo);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not leave files half done
  return tw::run_cli(argc, argv, std::cout, std::cerr);
}
