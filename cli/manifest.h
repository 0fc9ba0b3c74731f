// The JSON that an artifact carries: what it was made from, its interface, kernels, calls and memory. Equal inputs give equal text.
#pragma once
#include "cli/compile.h"
namespace tw {
std::string make_manifest(const Model& model, const Program& program, const Target& target, const std::string& symbol, const CompileReport& report);
}
