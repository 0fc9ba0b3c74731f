// One relocatable object of a model, for programs that link it. Others see no name of it but those
// of its interface, so that several models go into one program. The bytes depend on nothing but the
// request.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"

namespace tw {

struct ObjectRequest {
  // Relocatable ELF files' bytes, of one machine; sections that no export reaches are left out
  std::vector<std::string> objects;
  std::vector<std::string> exports;  // the symbols that it defines for others, exactly
  std::string manifest;
  // Needs memcpy, memmove and memset at most, and its note takes no memory
  bool freestanding = false;
  uint64_t weight_bytes = 0;
};

// What an object takes of a program's memory.
struct ObjectSizes {
  uint64_t code = 0, constants = 0;  // constants: the weights, too
  uint64_t written = 0;              // in RAM
};

struct LinkedObject {
  std::string bytes;
  ObjectSizes sizes;
};

using FillBytes = std::function<Error(std::span<std::byte>)>;

// `fill` writes the weights. Errors: what lld says; an undefined symbol that is not allowed; an
// export that is missing; more weights than the machine's addresses hold.
Expected<LinkedObject> link_object(const ObjectRequest& request, const FillBytes& fill);

bool is_archive_name(std::string_view path);  // of a static library: .a

}  // namespace tw
