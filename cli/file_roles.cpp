#include "cli/file_roles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>
#include <tuple>

#include "cli/targets.h"
#include "frontend/frontend.h"
#include "frontend/mapped_file.h"
#include "support/hash.h"

namespace tw {
namespace {

// Device and inode of a file, and ""; for a file that does not exist, those of its folder, and its
// name
using Identity = std::tuple<dev_t, ino_t, std::string>;

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

Identity identity_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return {info.st_dev, info.st_ino, ""};
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (::stat(folder.c_str(), &info) == 0)
    return {info.st_dev, info.st_ino, file.filename().string()};
  std::error_code none;
  return {0, 0, std::filesystem::weakly_canonical(file, none).string()};
}

// Characters that Make and Ninja read in a name; ' ', '#', '$' and ':' need an escape.
bool is_plain_in_rules(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("!%()+,-./@_{}~ #$:").find(c) != std::string_view::npos;
}

// The path as a rule of Make spells it, which Ninja reads too. Errors: the two do not read it as
// this one name.
Expected<std::string> for_make(const std::string& path, bool target) {
  // Make reads some names otherwise: those in the user's home or in an archive, patterns, and
  // endings that it strips.
  const size_t first = std::min(path.find_first_not_of("./"), path.size());
  const bool sound = std::ranges::all_of(path, is_plain_in_rules) &&
                     !path.substr(first).starts_with('~') && !path.ends_with(')') &&
                     !path.ends_with(' ') && !path.ends_with(':') &&
                     !(target && path.find('%') != std::string::npos);
  if (!sound)
    return make_error(
        {DiagCode::invalid_argument,
         "--depfile: Make and Ninja do not both read '" + path + "' as the name of a file",
         {},
         {"rename it: letters, digits, spaces and !%()+,-./@_{}~#$: are read, '~' not as the "
          "first, ')', ':' and ' ' not as the last, '%' not in what is written"}});
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == ':') text += '\\';
    if (c == '$') text += '$';
    text += c;
  }
  return text;
}

}  // namespace

void FileRoles::reads(std::string what, std::string path) {
  if (!path.empty() && exists(path)) read_.push_back({std::move(what), std::move(path)});
}

void FileRoles::reads_model(const std::string& path) {
  std::vector<std::string> files = external_files(path);
  reads("the model", path);
  for (const std::string& file : files) reads("a file with the model's tensors", file);
  files.push_back(path);
  for (const std::string& file : files)
    if (const std::optional<Version> version = version_of(file))
      models_.push_back({file, *version});
}

std::optional<FileRoles::Version> FileRoles::version_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return Version{{info.st_dev, info.st_ino},
                 {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                  info.st_ctim.tv_nsec}};
}

Error FileRoles::models_are_unchanged() const {
  for (const auto& [path, before] : models_) {
    const std::optional<Version> now = version_of(path);
    // Another file took its place, so the one that was read is whole.
    if (!now || now->file != before.file || now->state == before.state) continue;
    return make_error(
        DiagCode::io,
        "'{0}' changed while it was read: whoever writes it gives a finished file its "
        "name, and writes over none",
        path);
  }
  return Error::success();
}

void FileRoles::reads_target(const std::string& name_or_path) {
  reads("the target's description", target_file(name_or_path, config_dirs()));
}

void FileRoles::writes(std::string what, std::string path) {
  if (!path.empty()) written_.push_back({std::move(what), std::move(path)});
}

Expected<std::string> FileRoles::dependencies() const {
  std::string text;
  for (const File& file : written_) {
    TW_ASSIGN(const std::string name, for_make(file.path, true));
    text += (text.empty() ? "" : " ") + name;
  }
  text += ":";
  for (const File& file : read_) {
    TW_ASSIGN(const std::string name, for_make(file.path, false));
    text += " \\\n  " + name;
  }
  return text + "\n";
}

Expected<std::string> FileRoles::hashes() const {
  std::string text;
  for (const File& file : read_) {
    TW_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::open(file.path));
    text += file.what + " " + sha256_hex(mapped->text()) + "\n";
  }
  return text;
}

Error FileRoles::check() const {
  std::map<Identity, const File*> known;
  for (const File& file : read_) known.emplace(identity_of(file.path), &file);
  std::vector<Diag> list;
  for (const File& file : written_) {
    const auto [at, fresh] = known.emplace(identity_of(file.path), &file);
    if (fresh) continue;
    const File& other = *at->second;
    const bool read = &other >= read_.data() && &other < read_.data() + read_.size();
    const std::string spelled = other.path == file.path ? "" : " ('" + other.path + "')";
    list.push_back({DiagCode::invalid_argument,
                    "'" + file.path + "': " + file.what + " would be written over " + other.what +
                        spelled + (read ? ", which is read" : ", which is written too"),
                    {},
                    {"give " + file.what + " a name of its own"}});
  }
  return make_error(std::move(list));
}

Error check_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path()
                                                           : fs::path(".");
  if (!fs::is_directory(folder, code))
    return make_error(DiagCode::io, "cannot write '{0}': there is no folder '{1}'", path,
                      folder.string());
  if (::access(folder.c_str(), W_OK) != 0)
    return make_error(DiagCode::io, "cannot write '{0}': the folder is not writable", path);
  if (fs::exists(path, code) && !fs::is_regular_file(path, code))
    return make_error(DiagCode::io, "cannot write '{0}': it is not a regular file", path);
  return Error::success();
}

}  // namespace tw
