#include <doctest/doctest.h>

#include "ir/program.h"

using namespace tw;

TEST_CASE("kernels_of: a kernel that only a region calls is made where the region runs") {
  KernelCall transfer, call;
  transfer.kernel = call.kernel = 0;
  transfer.device = 1;
  Program program, region;
  program.kernels.resize(2);
  program.calls = {transfer};
  // A transfer needs no code on a device, and a kernel without a call belongs to the processor.
  CHECK(kernels_of(program, 0) == std::vector<bool>{false, true});
  CHECK(kernels_of(program, 1) == std::vector<bool>{false, false});
  region.calls = {call};
  program.regions = {region};
  CHECK(kernels_of(program, 0) == std::vector<bool>{true, true});
  CHECK(kernels_of(program, 1) == std::vector<bool>{false, false});
}
