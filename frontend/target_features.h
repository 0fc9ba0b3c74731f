// What LLVM knows about processors and their features; fills what a description leaves out.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"

namespace tw {

// Sorted names that code generation can use, of a processor LLVM knows; empty for others.
std::vector<std::string> cpu_features(Arch arch, const std::string& cpu);
bool known_cpu(Arch arch, const std::string& cpu);
// LLVM's name, of use to a kernel or not
bool known_feature(Arch arch, const std::string& feature);
// Of LLVM's processors and features for the architecture the few whose names are most like this
// one.
std::vector<std::string> like_cpu(Arch arch, const std::string& name);
std::vector<std::string> like_feature(Arch arch, const std::string& name);
// Adds what the features imply ("avx2" needs "avx"), drops what no kernel uses, sorts.
std::vector<std::string> normal_features(Arch arch, const std::vector<std::string>& features);

// The widest vectors that the features give, and the number of vector registers.
int default_vector_bits(Arch arch, const std::vector<std::string>& features);
int default_vector_registers(Arch arch, const std::vector<std::string>& features);

}  // namespace tw
