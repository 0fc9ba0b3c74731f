// A file of its own, as the names of LLVM's headers are macros of elf.h.
#include "packager/llvm_object.h"

#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

namespace tw {
namespace {

// Sections for exceptions, which the code does not use, from compilers, and for lld alone
constexpr const char* kDropped[] = {".ARM.exidx*",   ".rel.ARM.exidx*", ".comment",
                                    ".llvm_addrsig", ".eh_frame",       ".rela.eh_frame",
                                    ".rel.eh_frame"};

llvm::Error add_name(llvm::objcopy::NameMatcher& names, llvm::StringRef name,
                     llvm::objcopy::MatchStyle style) {
  return names.addMatcher(
      llvm::objcopy::NameOrPattern::create(name, style, [](llvm::Error error) { return error; }));
}

}  // namespace

Expected<std::string> keep_global(const std::string& bytes,
                                  const std::vector<std::string>& exports) {
  llvm::objcopy::ConfigManager config;
  config.Common.StripDebug = true;
  for (const std::string& name : exports)
    if (llvm::Error error = add_name(config.Common.SymbolsToKeepGlobal, name,
                                     llvm::objcopy::MatchStyle::Literal))
      return make_error(DiagCode::io, "{0}", llvm::toString(std::move(error)));
  for (const char* name : kDropped)
    if (llvm::Error error = add_name(config.Common.ToRemove, name,
                                     llvm::objcopy::MatchStyle::Wildcard))
      return make_error(DiagCode::io, "{0}", llvm::toString(std::move(error)));
  auto binary = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "model.o"));
  if (!binary)
    return make_error(DiagCode::io, "linking failed: {0}", llvm::toString(binary.takeError()));
  std::string out;
  llvm::raw_string_ostream stream(out);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, stream))
    return make_error(DiagCode::io, "linking failed: {0}", llvm::toString(std::move(error)));
  return out;
}

Expected<std::string> archive_of(const std::string& member, std::string_view object) {
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(object, member));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, true, false);
  if (!archive)
    return make_error(DiagCode::io, "cannot make an archive: {0}",
                      llvm::toString(archive.takeError()));
  return (*archive)->getBuffer().str();
}

Expected<std::string_view> archive_member(std::string_view archive, const std::string& name) {
  const auto damaged = [&](llvm::Error error) {
    return make_error(DiagCode::invalid_argument, "'{0}' is a damaged archive: {1}", name,
                      llvm::toString(std::move(error)));
  };
  auto file = llvm::object::Archive::create(llvm::MemoryBufferRef(archive, name));
  if (!file) return damaged(file.takeError());
  std::vector<std::string_view> members;
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : (*file)->children(error)) {
    llvm::Expected<llvm::StringRef> bytes = child.getBuffer();
    if (!bytes) {
      llvm::consumeError(std::move(error));
      return damaged(bytes.takeError());
    }
    members.push_back(*bytes);
  }
  if (error) return damaged(std::move(error));
  if (members.size() == 1) return members.front();
  return make_error(DiagCode::invalid_argument,
                    "'{0}' is not an archive that Tilewright wrote: it has {1} members, not one",
                    name, members.size());
}

}  // namespace tw
