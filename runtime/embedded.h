// The parts of the runtime that the compiler carries inside itself: an object for each
// architecture, the public C header, and the CPU features that the runtime can check.
#pragma once
#include <string_view>
#include <vector>

namespace tw {

// The runtime's relocatable object for a triple or an architecture ("x86_64", "aarch64-linux-gnu",
// "armv7...", "riscv64...", "thumbv7em-none-eabihf"), compiled for the architecture's baseline. A
// triple without an operating system gets the runtime of freestanding objects. Empty when there is
// none.
std::string_view runtime_object(std::string_view triple);

// The object with the functions that op::Extern calls (runtime/ops). It uses names of the runtime's
// object.
std::string_view operators_object(std::string_view triple);

// The object of the program that runs libraries (runtime/runner). Empty where there is none, as
// without an operating system.
std::string_view runner_object(std::string_view triple);

// LLVM names of the CPU features that check_cpu knows; any other name in
// tw_model_desc::cpu_features fails the check.
std::vector<std::string_view> runtime_cpu_features(std::string_view triple);

// The text of tilewright.h, and the part of it that declares tw_status
std::string_view public_header();
std::string_view status_declaration();

}  // namespace tw
