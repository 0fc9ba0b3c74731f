// SHA-256 as hex text: the identity of kernels, models and targets, equal on every machine.
#pragma once
#include <string>
#include <string_view>
namespace tw {
// With the processor's own instructions where there are any, unless `portable` asks for the other
// way: the result is the same.
std::string sha256_hex(std::string_view bytes, bool portable = false);
inline std::string short_hash(std::string_view bytes) { return sha256_hex(bytes).substr(0, 16); }
}  // namespace tw
