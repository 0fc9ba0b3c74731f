// A failed TW_CHECK aborts after its message: the handler turns that into the documented exit code.
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "autotune/measure/worker.h"
#include "cli/app.h"
#include "driver/compare/compare_artifacts.h"
#include "support/changed_files.h"
#include "support/confine.h"
#include "support/end_signals.h"

namespace {
// Candidates for a processor are confined: they reach no file but those that tell which machine
// this is. Their shared library is a file in memory. Drivers of devices need more files, so they
// are not confined.
int confined_measure_worker(int argc, char** argv) {
  const bool processor = argc > 2 && *argv[2] != '\0';
  tw::Error error = processor ? tw::confine_self({UINT64_MAX,
                                                  uint64_t{8} << 30,
                                                  0,
                                                  {"/proc/cpuinfo", "/sys/devices/system/cpu"},
                                                  {}})
                              : tw::Error::success();
  if (error) std::cerr << "candidates run unconfined: " << tw::error_text(std::move(error)) << "\n";
  return tw::measure_worker(argv);
}

void internal_error(int) { std::_Exit(tw::kExitInternal); }
}  // namespace

int main(int argc, char** argv) {
  if (tw::is_measure_worker(argc, argv)) return confined_measure_worker(argc, argv);
  if (tw::is_compare_worker(argc, argv)) return tw::compare_worker(argc, argv);
  std::signal(SIGABRT, internal_error);
  tw::clean_up_on_end_signals();
  tw::exit_when_mapped_files_shrink(tw::kExitIo);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not leave files half done
  return tw::run_cli(argc, argv, std::cout, std::cerr);
}
