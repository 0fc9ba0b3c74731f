// Evaluates the counts in a manifest, which are expressions of the model's symbols.
#pragma once
#include <string>

#include "driver/compile/manifest.h"
#include "driver/run/tensors.h"

namespace tw {

// An empty text is 0: the library's version did not count. Errors: no expression of the symbols.
Expected<double> value_of(const std::string& text, const Symbols& symbols,
                          const SymbolNames& names);

}  // namespace tw
