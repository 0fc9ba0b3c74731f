// Changes to inputs that keep more of their form than single bytes do.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw::fuzz {

using Mutator = size_t (*)(uint8_t* data, size_t size, size_t most, unsigned seed);

// Bytes as libFuzzer changes them.
size_t change_bytes(uint8_t* data, size_t size, size_t most, unsigned seed);
// Also whole lines, numbers and names of a text.
size_t change_text(uint8_t* data, size_t size, size_t most, unsigned seed);
// The checksums of a zip file's members, and of an archive's heads, are then those of the bytes.
size_t change_zip(uint8_t* data, size_t size, size_t most, unsigned seed);
size_t change_tar(uint8_t* data, size_t size, size_t most, unsigned seed);

}  // namespace tw::fuzz
