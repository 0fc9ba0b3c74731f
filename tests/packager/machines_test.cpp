// One artifact under glibc and musl, and artifacts for other machines under qemu. Without the
// tools, a case is skipped with a message.
#include <doctest/doctest.h>

#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

const char* const kSaid = "input 0 (a): dim 1 is 5, expected 4; right\n";
const std::string kDriver = std::string(TW_TEST_DIR) + "/packager/driver.c";
const std::string kInclude = std::string(" -I ") + TW_SOURCE_DIR;

void run_driver(const std::string& command) {
  for (const char* threads : {"1", "2", "0"}) {
    const CommandResult result = run_command(command + " " + threads);
    INFO(command);
    CHECK(result.output == kSaid);
    CHECK(result.status == 0);
  }
}

// Returns false, with a message, if tools are missing.
bool build_cross_driver(const std::string& machine, const std::string& qemu,
                        const std::string& output) {
  const std::string compile = "CLANG=" TW_CLANG " LLD=" TW_LLD " " + std::string(TW_TEST_DIR) +
                              "/cross_cc.sh " + machine + " " + kDriver;
  const CommandResult built = run_command(compile + " " + output + kInclude);
  if (built.status == 77 || run_command(qemu + " --version").status != 0) {
    MESSAGE("skipped: no libc or no qemu for " << machine);
    return false;
  }
  INFO(built.output);
  REQUIRE(built.status == 0);
  return true;
}

void run_under_qemu(const std::string& machine, const std::string& qemu, const std::string& root) {
  const ScratchDir dir;
  write_fake(dir / "fake.so", "fake." + machine);
  if (build_cross_driver(machine, qemu, dir / "driver"))
    run_driver(qemu + " -L " + root + " " + (dir / "driver") + " " + (dir / "fake.so"));
}

const char* const kLacks =
    "create: the processor lacks an instruction set that the library was compiled for\n";

}  // namespace

TEST_CASE("one artifact serves a glibc and a musl program") {
  const ScratchDir dir;
  write_fake(dir / "fake.so", "fake.x86_64");
  REQUIRE(run_command(std::string(TW_CLANG) + " -O1 " + kDriver + kInclude + " -o " +
                      (dir / "glibc") + " -ldl")
              .status == 0);
  run_driver((dir / "glibc") + " " + (dir / "fake.so"));
  if (run_command("musl-gcc --version").status != 0) {
    MESSAGE("skipped: no musl-gcc");
    return;
  }
  REQUIRE(run_command("musl-gcc -O1 " + kDriver + kInclude + " -o " + (dir / "musl")).status == 0);
  run_driver((dir / "musl") + " " + (dir / "fake.so"));
}

TEST_CASE("an AArch64 artifact runs") {
  run_under_qemu("aarch64", "qemu-aarch64", "/usr/aarch64-linux-gnu");
}
TEST_CASE("a RISC-V artifact runs") {
  run_under_qemu("riscv64", "qemu-riscv64", "/usr/riscv64-linux-gnu");
}
TEST_CASE("an ARMv7 artifact runs") {
  run_under_qemu("armv7", "qemu-arm", "/usr/arm-linux-gnueabihf");
}

TEST_CASE("AArch64 features are checked") {
  const ScratchDir dir;
  write_fake(dir / "fake.so", "dotprod.aarch64");
  if (!build_cross_driver("aarch64", "qemu-aarch64", dir / "driver")) return;
  const std::string program = " -L /usr/aarch64-linux-gnu " + (dir / "driver") + " " +
                              (dir / "fake.so") + " 1";
  CHECK(run_command("qemu-aarch64 -cpu cortex-a53" + program).output == kLacks);
  CHECK(run_command("qemu-aarch64 -cpu neoverse-n1" + program).output == kSaid);
}

TEST_CASE("x86 features are checked") {
  const ScratchDir dir;
  write_fake(dir / "fake.so", "avx2.x86_64");
  REQUIRE(run_command(std::string(TW_CLANG) + " -O1 " + kDriver + kInclude + " -o " +
                      (dir / "driver") + " -ldl")
              .status == 0);
  if (run_command("qemu-x86_64 --version").status != 0) {
    MESSAGE("skipped: no qemu-x86_64");
    return;
  }
  const std::string program = " " + (dir / "driver") + " " + (dir / "fake.so") + " 1";
  // qemu prints warnings first.
  CHECK(run_command("qemu-x86_64 -cpu Nehalem" + program).output.find(kLacks) != std::string::npos);
  CHECK(run_command("qemu-x86_64 -cpu max" + program).output.find(kSaid) != std::string::npos);
}

TEST_CASE("threads are as many as the affinity mask allows") {
  if (run_command("taskset --version").status != 0 || run_command("strace --version").status != 0) {
    MESSAGE("skipped: no taskset or no strace");
    return;
  }
  const ScratchDir dir;
  write_fake(dir / "fake.so", "fake.x86_64");
  REQUIRE(run_command(std::string(TW_CLANG) + " -O1 " + kDriver + kInclude + " -o " +
                      (dir / "driver") + " -ldl")
              .status == 0);
  const std::string trace = "taskset -c 0 strace -f -e trace=clone,clone3 " + (dir / "driver") +
                            " " + (dir / "fake.so");
  CHECK(run_command(trace + " 0").output.find("clone") == std::string::npos);
  CHECK(run_command(trace + " 2").output.find("clone") != std::string::npos);
}

TEST_CASE("the pool has no data race, spinning or sleeping") {
  const ScratchDir dir;
  const std::string build = "cd " TW_SOURCE_DIR " && " TW_CLANG
                            " -fsanitize=thread -g -O1 -std=c11 -I . -DNAME=fake";
  const std::string sources =
      " runtime/runtime.c tests/packager/fake_model.c tests/packager/stress.c -pthread -o ";
  for (const char* spins : {"20000", "20"}) {
    const CommandResult built = run_command(build + " -DTW_SPINS=" + spins + sources +
                                            (dir / "stress"));
    if (built.status != 0 && built.output.find("libclang_rt.tsan") != std::string::npos) {
      MESSAGE("skipped: no thread sanitizer");
      return;
    }
    INFO(built.output);
    REQUIRE(built.status == 0);
    CHECK(run_command(dir / "stress").output == "wrong 0\n");
  }
}

// Builds tests/packager/NAME.c with the runtime and the fake model.
static std::string build_with_runtime(const ScratchDir& dir, const std::string& name) {
  const CommandResult built = run_command(
      "cd " TW_SOURCE_DIR " && " TW_CLANG
      " -g -O1 -std=gnu11 -I . -DNAME=fake runtime/runtime.c tests/packager/fake_model.c "
      "tests/packager/" +
      name + ".c -pthread -o " + (dir / name));
  INFO(built.output);
  REQUIRE(built.status == 0);
  return dir / name;
}

TEST_CASE("threads take what a slow one has left") {
  const ScratchDir dir;
  CHECK(run_command(build_with_runtime(dir, "slow_thread")).output == "wrong 0\n");
}

TEST_CASE("a child that is forked while other threads make and destroy contexts runs") {
  const ScratchDir dir;
  CHECK(run_command(build_with_runtime(dir, "forks") + " 100").output == "wrong 0\n");
}
