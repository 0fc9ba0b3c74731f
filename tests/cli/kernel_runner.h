// For tests: one kernel, compiled for a target and run, on this machine (tests/cli/amx_emulator.h
// emulates AMX where it is missing) or under qemu.
#pragma once
#include <vector>

#include "ir/kernel/interpreter.h"
#include "ir/target.h"

namespace tw::test {

// True if run_kernel can run the target's code: this machine has all its features but AMX, or it is
// ARM of 64 or 32 bits, and qemu and a C library for it are installed.
bool runs(const Target& target);
// A failing step fails the test.
void run_kernel(const Kernel& kernel, const Target& target, std::vector<KernelArgument>& arguments);

}  // namespace tw::test
