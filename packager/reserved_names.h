// Names that a header of C and C++ must not give to what it declares.
#pragma once
#include <string_view>

namespace tw {

// Keywords of all versions of C and C++, names of the compiler's own, and macros that headers of
// the C library define. A '_' behind such a name makes it another one, or an 'x' before
// one that begins with '_': a '_' behind that may make another macro.
bool is_reserved_name(std::string_view name);

}  // namespace tw
