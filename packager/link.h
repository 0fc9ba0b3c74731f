// Links relocatable objects into a shared library, in this process, with lld. The result depends on
// nothing but the request: no path, time or thread count. Thread-safe (lld is not: calls take
// turns).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw {

// What a compiled model exports: `tw_<name>_query`, and TW_QUERY_SYMBOL for those who do not know
// the name.
std::vector<std::string> model_exports(const std::string& name);

struct LinkRequest {
  // Relocatable ELF files' bytes, of one machine, in link order; sections that nothing exported
  // reaches are left out
  std::vector<std::string> objects;
  // More of them, each taken only where the others lack a name that it defines
  std::vector<std::string> fallback{};
  std::string soname;                // the library's file name; empty: none
  std::string triple{};              // Android's: the library names those that it needs
  std::vector<std::string> exports;  // the symbols that it defines for others, exactly
  // An artifact: adds what packager/data_object.h defines and the note's segment
  std::optional<std::string> manifest;
};

struct LinkedImage {
  // a complete library; its weights are to be grafted by packager/artifact.h
  std::string bytes;
};

// Segments: read-only (note, symbols, constants), code, written data, and last, with a manifest,
// the weights. Errors: what lld says; an undefined symbol that is not allowed; an export that is
// missing or not asked for.
Expected<LinkedImage> link_shared(const LinkRequest& request);

// The only names that a library may take from the program that loads it: one safe version of each
// in glibc >= 2.17 and musl.
bool undefined_symbol_allowed(std::string_view name, bool weak);

}  // namespace tw
