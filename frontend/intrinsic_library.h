// The instructions that the compiler ships for architectures, and for devices by their driver:
// configs/intrinsics/*.yaml. They are a part of the program, so that a host's code does not hang on
// finding a folder.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"

namespace tw {

// A file of the library: the key `intrinsics` of a description and nothing else.
Expected<std::vector<Intrinsic>> parse_intrinsics(const std::string& yaml, const std::string& file);
// Name and text of the files for an architecture.
struct LibraryFile {
  std::string name, text;
};
std::vector<LibraryFile> intrinsic_files(Arch arch);

bool is_shipped(Arch arch, const std::string& name);
// Behind the target's own all whose features it has, but for those of its own names and those that
// it is to be without. A GPU's "sm_90a" has what needs "sm_80".
void add_shipped_intrinsics(Target& target);

}  // namespace tw
