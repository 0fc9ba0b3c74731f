// Names that a header for C and C++ must not give to its declarations
#pragma once
#include <string_view>

namespace tw {

// True for keywords of all versions of C and C++, names that belong to the compiler, and macros
// that headers of the C library define. A '_' behind such a name makes it free. A name that begins
// with '_' needs an 'x' before it instead, as a '_' behind it may make another macro.
bool is_reserved_name(std::string_view name);

}  // namespace tw
