// SHA-256 as hex text: the identity of kernels, models and targets, equal on every machine.
#pragma once
#include <string>
#include <string_view>
namespace tw {
std::string sha256_hex(std::string_view bytes);
inline std::string short_hash(std::string_view bytes) { return sha256_hex(bytes).substr(0, 16); }
}  // namespace tw
