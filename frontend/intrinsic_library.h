// The instructions that the compiler ships for architectures and for devices, by driver:
// configs/intrinsics/*.yaml. They are embedded in the program, so that a host's code does not
// depend on finding a folder.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"

namespace tw {

// Parses a file of the library: it has the key `intrinsics` of a description and nothing else.
Expected<std::vector<Intrinsic>> parse_intrinsics(const std::string& yaml, const std::string& file);
struct LibraryFile {
  std::string name, text;
};
std::vector<LibraryFile> intrinsic_files(Arch arch);

bool is_shipped(Arch arch, const std::string& name);
// Appends to the target's intrinsics the shipped ones whose features it has. Leaves out names that
// it has already and names that it must do without. A GPU with "sm_90a" has what needs "sm_80".
void add_shipped_intrinsics(Target& target);

}  // namespace tw
