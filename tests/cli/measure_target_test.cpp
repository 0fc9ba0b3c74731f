// The rates that `target host --measure` writes down.
#include <doctest/doctest.h>

#include "cli_test_util.h"
#include "frontend/frontend.h"

using namespace tw;

TEST_CASE("measured rates of this machine are a description that compiles") {
  const TestFolder folder;
  const std::string file = folder / "here.yaml";
  const CliResult measured = cli({"target", "host", "--measure", "-o", file});
  REQUIRE_MESSAGE(measured.code == kExitOk, measured.err);
  Expected<Target> target = load_target(file, {});
  REQUIRE(bool(target));
  const CoreRates& core = target->core;
  // These rates are measured; the others follow from them.
  for (const double rate : {core.clock, core.f32, core.f64, core.loads, core.stores, core.l2_bytes,
                            core.memory_bytes, core.tensor_bytes, core.scattered, core.fork_join})
    CHECK(rate > 0);
  CHECK(core.multiply_adds(DType::f32) >= core.multiply_adds(DType::f64));
  // Measured rates change the description, but not the code.
  CHECK(codegen_hash(*target) == codegen_hash(host_target()));
  const CliResult compiled = cli({"compile", TW_SOURCE_DIR "/examples/digits/digits.onnx", "-t",
                                  file, "-o", folder / "digits.so"});
  CHECK_MESSAGE(compiled.code == kExitOk, compiled.err);
}

TEST_CASE("only this machine can be measured") {
  const CliResult other = cli({"target", "cortex-a72", "--measure"});
  CHECK(other.code == kExitUser);
  CHECK(other.err.find("--measure is for 'host'") != std::string::npos);
}
