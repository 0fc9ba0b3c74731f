// Errors as JSON.
#pragma once
#include <vector>

#include "support/json.h"

namespace tw {

Json to_json(const Diag& diag, const char* code);
Json errors_json(const std::vector<Diag>& diags);  // a list; each has the name of its code

}  // namespace tw
