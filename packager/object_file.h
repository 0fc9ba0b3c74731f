// Links one relocatable object of a model, for programs that link it. Others see only the names of
// its interface, so that several models can go into one program. The bytes depend on nothing but
// the request.
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
  // Bytes of relocatable ELF files of one machine. Sections that no export reaches are left out.
  std::vector<std::string> objects;
  std::vector<std::string> exports;  // exactly the symbols that it defines for others
  std::string manifest;
  // A freestanding object needs at most memcpy, memmove and memset, and its note takes no memory.
  bool freestanding = false;
  uint64_t weight_bytes = 0;
};

// Bytes of a program's memory that an object takes
struct ObjectSizes {
  uint64_t code = 0, constants = 0;  // constants include the weights
  uint64_t written = 0;              // data in RAM
};

struct LinkedObject {
  std::string bytes;
  ObjectSizes sizes;
};

using FillBytes = std::function<Error(std::span<std::byte>)>;

// `fill` writes the weights. Errors: lld's messages; an undefined symbol that is not allowed; an
// export that is missing; more weights than the machine's addresses reach.
Expected<LinkedObject> link_object(const ObjectRequest& request, const FillBytes& fill);

bool is_archive_name(std::string_view path);  // ends with .a, as static libraries do

}  // namespace tw
