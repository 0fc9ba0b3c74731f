// Sizes of dimensions as users write them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/simplify.h"
#include "support/diag.h"

namespace tw {

// {"batch=1", "seq=128"} -> {{"batch", 1}, {"seq", 128}}. Errors: no '=', no integer of at least 1
// (for --dim at least 0), a name twice.
Expected<std::map<std::string, int64_t>> parse_dims(const std::vector<std::string>& texts,
                                                    const char* flag = "--dim");
// Takes ranges, too: {"seq=1..512", "H=32..960/32"}.
Error parse_dims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims,
                 SymbolLimitsOf& limits, const char* flag = "--dim");
// {"seq=64,batch=1", "seq=128"}: a map of sizes for each text
Expected<std::vector<std::map<std::string, int64_t>>> parse_specialize(
    const std::vector<std::string>& texts);

}  // namespace tw
