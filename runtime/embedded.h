// What the compiler carries of the runtime: an object per architecture, the public C header, the
// CPU features that the runtime can check.
#pragma once
#include <string_view>
#include <vector>

namespace tw {

// The runtime's relocatable object for a triple or an architecture ("x86_64", "aarch64-linux-gnu",
// "armv7...", "riscv64...", "thumbv7em-none-eabihf"); its CPU is the architecture's baseline. Of
// triples without an operating system: that of freestanding objects. Empty when there is none.
std::string_view runtime_object(std::string_view triple);

// The same of the functions that op::Extern calls (runtime/ops); it uses names of the runtime's.
std::string_view operators_object(std::string_view triple);

// The same of the program that runs libraries (runtime/runner); empty where there is none, as
// without an operating system.
std::string_view runner_object(std::string_view triple);

// LLVM names of the CPU features that check_cpu knows; any other name in
// tw_model_desc::cpu_features fails the check.
std::vector<std::string_view> runtime_cpu_features(std::string_view triple);

// The text of tilewright.h, and the part of it that declares tw_status.
std::string_view public_header();
std::string_view status_declaration();

}  // namespace tw
