// Counts of a manifest, which are expressions of the model's symbols.
#pragma once
#include <string>

#include "driver/compile/manifest.h"
#include "driver/run/tensors.h"

namespace tw {

// 0 for an empty text: a library of a version that did not count. Errors: it is no expression of
// the symbols.
Expected<double> value_of(const std::string& text, const Symbols& symbols,
                          const SymbolNames& names);

}  // namespace tw
