// Errors as programs read them.
#pragma once
#include <vector>

#include "support/json.h"

namespace tw {

Json to_json(const Diag& diag, const char* code);
Json errors_json(const std::vector<Diag>& diags);  // a list, under the names of their codes

}  // namespace tw
