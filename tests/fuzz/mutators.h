// Changes to inputs that keep more of their form than changes of single bytes do.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw::fuzz {

using Mutator = size_t (*)(uint8_t* data, size_t size, size_t most, unsigned seed);

// Changes bytes as libFuzzer does.
size_t change_bytes(uint8_t* data, size_t size, size_t most, unsigned seed);
// Changes whole lines, numbers and names of a text, too.
size_t change_text(uint8_t* data, size_t size, size_t most, unsigned seed);
// Change bytes and, mostly, mend the checksums: of a zip file's members, of a tar archive's heads.
size_t change_zip(uint8_t* data, size_t size, size_t most, unsigned seed);
size_t change_tar(uint8_t* data, size_t size, size_t most, unsigned seed);

}  // namespace tw::fuzz
