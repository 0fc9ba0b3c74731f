// LLVM's knowledge of processors and their features. It fills in what a description leaves out.
#pragma once
#include <string>
#include <vector>

#include "ir/target.h"

namespace tw {

// The features of a processor that code generation can use, sorted. ARM, RISC-V and processors that
// LLVM does not know get those of a baseline.
std::vector<std::string> cpu_features(Arch arch, const std::string& cpu);
bool known_cpu(Arch arch, const std::string& cpu);
// True if LLVM knows the feature, whether kernels use it or not
bool known_feature(Arch arch, const std::string& feature);
// The names among LLVM's processors and features for the architecture that are most like this one.
std::vector<std::string> like_cpu(Arch arch, const std::string& name);
std::vector<std::string> like_feature(Arch arch, const std::string& name);
// Adds the features that these imply ("avx2" needs "avx"), drops those that no kernel uses, and
// sorts.
std::vector<std::string> normal_features(Arch arch, const std::vector<std::string>& features);

// Width of the widest vectors that the features give, and the number of vector registers.
int default_vector_bits(Arch arch, const std::vector<std::string>& features);
int default_vector_registers(Arch arch, const std::vector<std::string>& features);

}  // namespace tw
