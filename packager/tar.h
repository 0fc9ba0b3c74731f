// Archives that any tar reads: regular files in one folder, with nothing in their heads that is not
// given here. So equal members give equal bytes, and a reader can ask for the very bytes that the
// writer would have made: an archive with links, folders, paths or anything behind its end is none.
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

// Why the name is none of a member; "": it is one: at most 99 letters, digits, '.', '_', '+' and
// '-', of which the first is no '.' and no '-'.
std::string bad_member_name(std::string_view name);
uint64_t tar_bytes(std::span<const TarMember> members);
// Names must be good ones, and members below 8 GiB.
Error write_tar(OutputFile& file, std::span<const TarMember> members);

// Of any bytes, which must outlive the result. Errors (parse): what is wrong with which member.
Expected<std::vector<TarMember>> parse_tar(std::string_view bytes, const std::string& file);

}  // namespace tw
