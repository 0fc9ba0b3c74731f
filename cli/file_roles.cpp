#include "cli/file_roles.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <tuple>

#include "cli/targets.h"
#include "frontend/frontend.h"
#include "frontend/mapped_file.h"
#include "support/hash.h"

namespace tw {
namespace {

// The name: of a file that does not exist, in the folder that the numbers say
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

// A path as a rule of make has it.
std::string for_make(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') text += '\\';
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
  reads("the model", path);
  for (const std::string& file : external_files(path))
    reads("a file with the model's tensors", file);
}

void FileRoles::reads_target(const std::string& name_or_path) {
  reads("the target's description", target_file(name_or_path, config_dirs()));
}

void FileRoles::writes(std::string what, std::string path) {
  if (!path.empty()) written_.push_back({std::move(what), std::move(path)});
}

std::string FileRoles::dependencies() const {
  std::string text;
  for (const File& file : written_) text += (text.empty() ? "" : " ") + for_make(file.path);
  text += ":";
  for (const File& file : read_) text += " \\\n  " + for_make(file.path);
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
