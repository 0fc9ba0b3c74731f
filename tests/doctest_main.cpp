#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#ifdef TW_MEASURE_WORKER  // tests that measure run this program as their worker
#include "autotune/measure/worker.h"
#include "driver/compare/compare_artifacts.h"
#endif

int main(int argc, char** argv) {
#ifdef TW_MEASURE_WORKER
  if (tw::is_measure_worker(argc, argv)) return tw::measure_worker(argv);
  if (tw::is_compare_worker(argc, argv)) return tw::compare_worker(argc, argv);
#endif
  return doctest::Context(argc, argv).run();
}
