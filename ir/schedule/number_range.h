// The values that integer expressions may have, as their types and constants show.
#pragma once
#include <optional>

#include "ir/simplify.h"

namespace tw::sched {

struct Values {
  int64_t least = 0, most = 0;
};

bool is_narrow(DType type);  // an integer of 8 or 16 bits
Values all_of(DType type);   // all values of an integer of 32 bits at most
// True: the type has all of these integers.
bool has_values(DType type, const Values& values);
// Values before they wrap; nullopt: unknown. `ranges` are those of loop variables.
std::optional<Values> values_of(const Expr& e, const Ranges& ranges);

}  // namespace tw::sched
