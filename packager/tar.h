// Archives that any tar program reads: regular files in one folder. Their heads hold nothing but
// the fields of TarMember, so equal members give equal bytes, and a reader can demand exactly the
// bytes that the writer would make. It refuses an archive with links, folders, paths or bytes
// behind its end.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packager/output_file.h"

namespace tw {

struct TarMember {
  std::string name;
  std::string_view bytes;
  bool executable = false;
};

// Why the name is not allowed for a member; empty where it is allowed. A name has at most 99
// letters, digits, '.', '_', '+' and '-', and begins with neither '.' nor '-'.
std::string bad_member_name(std::string_view name);
uint64_t tar_bytes(std::span<const TarMember> members);
// Names must be allowed ones, and members smaller than 8 GiB.
Error write_tar(OutputFile& file, std::span<const TarMember> members);

// Members are views of `bytes`, which must outlive the result. Errors (parse): which member is
// wrong, and why.
Expected<std::vector<TarMember>> parse_tar(std::string_view bytes, const std::string& file);

}  // namespace tw
