// For tests: one kernel compiled for a target and run, here (AMX where the machine lacks it by
// tests/cli/amx_emulator.h) or under qemu.
#pragma once
#include <vector>

#include "ir/kernel/interpreter.h"
#include "ir/target.h"

namespace tw::test {

// Nothing in the way: this machine has all features but AMX's, or it is ARM of 64 or 32 bits and
// qemu and a C library for it are there.
bool runs(const Target& target);
// Any failure fails the test.
void run_kernel(const Kernel& kernel, const Target& target, std::vector<KernelArgument>& arguments);

}  // namespace tw::test
