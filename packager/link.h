// Links relocatable objects into a shared library, in this process, with lld. The result depends on
// nothing but the request: no path, time or thread count. Thread-safe: calls take turns, since lld
// itself is not.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

// The names that a compiled model exports: `tw_<name>_query`, and TW_QUERY_SYMBOL for programs that
// do not know the model's name.
std::vector<std::string> model_exports(const std::string& name);

struct LinkRequest {
  // Bytes of relocatable ELF files of one machine, in link order. Sections that no export reaches
  // are left out.
  std::vector<std::string> objects;
  // More objects; each is taken only where it defines a name that the others lack.
  std::vector<std::string> fallback{};
  std::string soname;    // the library's file name; empty: none
  std::string triple{};  // on Android the library lists the system's libraries that it needs
  std::vector<std::string> exports;  // exactly the symbols that it defines for others
  // Present for an artifact, which gets the symbols of packager/data_object.h and a segment for the
  // note
  std::optional<std::string> manifest;
};

struct LinkedImage {
  // A complete library. packager/artifact.h grafts its weights.
  std::string bytes;
};

// The segments are: read-only (note, symbols, constants), code, written data, and last, with a
// manifest, the weights. Errors: lld's messages; an undefined symbol that is not allowed; an export
// that is missing or that nobody asked for.
Expected<LinkedImage> link_shared(const LinkRequest& request);

// The only names that a library may take from the program that loads it. Each has one safe version
// in glibc >= 2.17 and in musl.
bool undefined_symbol_allowed(std::string_view name, bool weak);

}  // namespace tw
