#include "driver/bundle/bundle.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "driver/bundle/sbom.h"
#include "packager/artifact.h"
#include "support/hash.h"

namespace tw {

// LICENSE, and the runtime's licence with its exception; runtime/embed.cmake writes them.
extern const unsigned char kLicense0[], kLicense1[];
extern const std::size_t kLicense0Size, kLicense1Size;

namespace {

namespace fs = std::filesystem;
constexpr const char* kList = "bundle.json";  // the first member
constexpr const char *kApache = "LICENSE-Apache-2.0.txt", *kRuntime = "LICENSE-runtime.txt",
                     *kModelLicense = "LICENSE-model.txt", *kBill = "sbom.cdx.json";

std::string_view text_of(const unsigned char* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Appends the hash of the list itself, so that the list is checked too.
std::string list_text(Json::Object list) {
  list.push_back({"sha256", sha256_hex(dump(list))});
  return dump(list) + "\n";
}

std::string list_of(const std::string& name, const std::string& compiler,
                    const std::vector<BundlePart>& parts) {
  Json::Array entries;
  for (const BundlePart& part : parts)
    entries.push_back(
        Json::Object{{"name", part.name}, {"bytes", part.bytes}, {"sha256", part.wanted}});
  return list_text(Json::Object{
      {"tilewright_bundle", 1}, {"name", name}, {"compiler", compiler}, {"parts", entries}});
}

Expected<std::string> sha256_of(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return sha256_hex(file->text());
}

// The parts, and the storage that their bytes lie in
struct Contents {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::string bill;  // the SBOM
  std::vector<TarMember> members;
};

Expected<std::string> member_name(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (const std::string why = bad_member_name(name); !why.empty())
    return make_error(DiagCode::invalid_argument, "'{0}' cannot be in a bundle: {1}", path, why);
  return name;
}

Error add_file(const std::string& path, const std::string& name, bool executable,
               Contents& contents) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  contents.files.push_back(file);
  contents.members.push_back({name, file->text(), executable});
  return Error::success();
}

Expected<Contents> contents_of(const BundleRequest& request, const Manifest& manifest) {
  Contents contents;
  SbomParts parts;
  TW_ASSIGN(parts.library, member_name(request.library));
  TW_ASSIGN(const std::string header, member_name(request.header));
  TW_TRY(add_file(request.library, parts.library, true, contents));
  TW_TRY(add_file(request.header, header, false, contents));
  contents.members.push_back({kApache, text_of(kLicense0, kLicense0Size)});
  contents.members.push_back({kRuntime, text_of(kLicense1, kLicense1Size)});
  if (!request.license.empty()) {
    TW_TRY(add_file(request.license, kModelLicense, false, contents));
    parts.model_license = kModelLicense;
  }
  parts.library_sha256 = sha256_hex(contents.members.front().bytes);
  if (!request.lock.empty()) { TW_ASSIGN(parts.lock_sha256, sha256_of(request.lock)); }
  contents.bill = dump(sbom(manifest, parts)) + "\n";
  contents.members.push_back({kBill, contents.bill});
  return contents;
}

// A name that two parts have; "": none. Unpacking would hide one of the two. Case is ignored, as
// some systems ignore it.
std::string name_of_two(const std::vector<TarMember>& members) {
  std::vector<std::string> names;
  for (const TarMember& member : members) names.push_back(llvm::StringRef(member.name).lower());
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? "" : *twice;
}

// The first part that `bundle` does not write at this place; null: none. Behind the library and its
// header come texts, of which the model's licence may be missing.
const TarMember* foreign_part(const std::vector<TarMember>& members) {
  std::vector<std::string_view> texts{kApache, kRuntime, kModelLicense, kBill};
  if (std::ranges::count(members, kModelLicense, &TarMember::name) == 0)
    std::erase(texts, kModelLicense);
  for (size_t m = 1; m < members.size(); ++m) {
    const bool library = m == 1, text = m > 2;
    const size_t t = m - 3;
    if ((members[m].executable && !library) ||
        (text && (t >= texts.size() || members[m].name != texts[t])))
      return &members[m];
  }
  return nullptr;
}

// The bundle that the list describes, without the parts' `found`. nullopt: `bundle` does not write
// such a list.
std::optional<Bundle> parse_list(std::string_view text) {
  Expected<Json> json = parse_json(std::string(text), kList);
  if (!json) {
    llvm::consumeError(json.takeError());
    return std::nullopt;
  }
  Bundle bundle;
  bundle.name = (*json)["name"].text_or_empty();
  bundle.compiler = (*json)["compiler"].text_or_empty();
  for (const Json& part : (*json)["parts"].items())
    bundle.parts.push_back({part["name"].text_or_empty(),
                            static_cast<uint64_t>(part["bytes"].integer_or(0)),
                            part["sha256"].text_or_empty(),
                            {}});
  const bool names = std::ranges::all_of(
      bundle.parts, [](const BundlePart& part) { return bad_member_name(part.name).empty(); });
  if (!names || list_of(bundle.name, bundle.compiler, bundle.parts) != text) return std::nullopt;
  return bundle;
}

Error write_parts(const fs::path& folder, const std::vector<TarMember>& members) {
  std::error_code code;
  for (const TarMember& member : members)
    if (fs::exists(fs::symlink_status(folder / member.name, code)))
      return make_error(DiagCode::io, "'{0}' is there already: give another folder",
                        (folder / member.name).string());
  for (size_t m = 0; m < members.size(); ++m) {
    Error error = write_file((folder / members[m].name).string(), members[m].bytes,
                             members[m].executable);
    if (!error) continue;
    for (size_t done = 0; done < m; ++done) fs::remove(folder / members[done].name, code);
    return error;
  }
  return Error::success();
}

}  // namespace

bool Bundle::good() const {
  return problem.empty() && std::ranges::all_of(parts, &BundlePart::good);
}

Expected<Bundle> write_bundle(const BundleRequest& request) {
  TW_ASSIGN(const std::string text, read_manifest(request.library));
  TW_ASSIGN(const Manifest manifest, parse_manifest(text, request.library));
  TW_ASSIGN(Contents contents, contents_of(request, manifest));
  contents.members.insert(contents.members.begin(), {kList, {}});
  if (const std::string name = name_of_two(contents.members); !name.empty())
    return make_error(
        DiagCode::invalid_argument,
        "two parts of the bundle are called '{0}', but for the case of letters: rename "
        "the library or its header",
        name);
  std::vector<BundlePart> parts;
  for (const TarMember& member : std::span(contents.members).subspan(1))
    parts.push_back({member.name, member.bytes.size(), sha256_hex(member.bytes), {}});
  const std::string list = list_of(manifest.name, manifest.compiler, parts);
  contents.members.front().bytes = list;
  {
    TW_ASSIGN(OutputFile file, OutputFile::create(request.output, tar_bytes(contents.members)));
    TW_TRY(write_tar(file, contents.members));
    TW_TRY(file.commit());
  }
  return read_bundle(request.output);
}

Bundle check_bundle(std::string_view bytes, const std::string& file,
                    std::vector<TarMember>* members) {
  Bundle bundle;
  Expected<std::vector<TarMember>> parsed = parse_tar(bytes, file);
  if (!parsed) {
    bundle.problem = error_text(parsed.takeError());
    return bundle;
  }
  if (parsed->empty() || parsed->front().name != kList) {
    bundle.problem = "'" + file + "' is no bundle: its first member is not " + kList;
    return bundle;
  }
  if (std::optional<Bundle> list = parse_list(parsed->front().bytes)) bundle = std::move(*list);
  else bundle.problem = "'" + file + "': " + kList + " is not as 'bundle' writes it";
  if (const std::string name = name_of_two(*parsed); !name.empty())
    bundle.problem = "'" + file + "': two of its parts are called '" + name + "'";
  else if (const TarMember* foreign = foreign_part(*parsed))
    bundle.problem = "'" + file + "': '" + foreign->name +
                     "' is no part that 'bundle' writes there";
  for (size_t m = 1; m < parsed->size(); ++m) {
    const TarMember& member = (*parsed)[m];
    const std::string found = sha256_hex(member.bytes);
    const auto part = std::ranges::find_if(bundle.parts, [&](const BundlePart& p) {
      return p.name == member.name && p.found.empty();
    });
    if (part != bundle.parts.end()) part->found = found;
    else bundle.parts.push_back({member.name, member.bytes.size(), {}, found});
  }
  bundle.sha256 = sha256_hex(bytes);
  if (members) *members = std::move(*parsed);
  return bundle;
}

Expected<bool> is_bundle(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return file->text().starts_with(std::string(kList) + '\0');
}

Expected<Bundle> read_bundle(const std::string& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return check_bundle(file->text(), path);
}

Expected<Bundle> unpack_bundle(const std::string& path, const std::string& folder) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::vector<TarMember> members;
  const Bundle bundle = check_bundle(file->text(), path, &members);
  if (!bundle.good()) return bundle;
  std::error_code code;
  fs::create_directories(folder, code);
  if (code || !fs::is_directory(folder, code))
    return make_error(DiagCode::io, "cannot make the folder '{0}'", folder);
  TW_TRY(write_parts(folder, members));
  return bundle;
}

Json to_json(const Bundle& bundle) {
  Json::Array parts;
  for (const BundlePart& part : bundle.parts)
    parts.push_back(Json::Object{{"name", part.name},
                                 {"bytes", part.bytes},
                                 {"sha256", part.wanted},
                                 {"found", part.found},
                                 {"ok", part.good()}});
  return Json::Object{{"ok", bundle.good()},         {"name", bundle.name},
                      {"compiler", bundle.compiler}, {"sha256", bundle.sha256},
                      {"problem", bundle.problem},   {"parts", parts}};
}

std::string to_string(const Bundle& bundle) {
  std::string text;
  for (const BundlePart& part : bundle.parts) {
    const char* state = part.good()           ? "ok       "
                        : part.found.empty()  ? "missing  "
                        : part.wanted.empty() ? "unlisted "
                                              : "damaged  ";
    text += state + (part.found.empty() ? part.wanted : part.found).substr(0, 16) + "  " +
            part.name + ", " + std::to_string(part.bytes) + " bytes\n";
  }
  return text;
}

}  // namespace tw
