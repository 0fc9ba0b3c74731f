// SHA-256 as hex text: the identity of kernels, models and targets, equal on every machine.
#pragma once
#include <string>
#include <string_view>
namespace tw {
// Uses the processor's SHA instructions where it has them, unless `portable` asks for plain code.
// The result is the same.
std::string sha256_hex(std::string_view bytes, bool portable = false);
inline std::string short_hash(std::string_view bytes) { return sha256_hex(bytes).substr(0, 16); }
}  // namespace tw
