#include "packager/loaded_model.h"

#include <dlfcn.h>
#include <llvm/Support/MemoryBuffer.h>

#include <vector>

#include "packager/elf_view.h"

namespace tw {
namespace {

Expected<std::string> query_name(const std::string& path, Integrity integrity) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer) return make_error(DiagCode::io, "cannot read '{0}': {1}", path, buffer.getError().message());
  const std::string_view bytes((*buffer)->getBufferStart(), (*buffer)->getBufferSize());
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, path));
  TW_ASSIGN(const std::vector<ElfSymbol> symbols, view.dynamic_symbols());
  std::string found;
  for (const ElfSymbol& s : symbols) {
    if (!s.defined || !s.name.starts_with("tw_") || !s.name.ends_with("_query")) continue;
    if (!found.empty()) return make_error(DiagCode::invalid_argument, "'{0}' holds several models: {1}, {2}", path, found, s.name);
    found = s.name;
  }
  if (found.empty()) return make_error(DiagCode::invalid_argument, "'{0}' is not a Tilewright library: no tw_NAME_query function", path);
  if (integrity == Integrity::check) TW_TRY(check_integrity(view, bytes, path));
  return found;
}

}  // namespace

Expected<LoadedModel> LoadedModel::open(const std::string& path, Integrity integrity) {
  TW_ASSIGN(const std::string name, query_name(path, integrity));
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;  // a bare name would be searched for
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return make_error(DiagCode::invalid_argument, "cannot load '{0}': {1}", path, ::dlerror());
  LoadedModel model(handle, nullptr);
  const auto query = reinterpret_cast<tw_query_fn>(::dlsym(handle, name.c_str()));
  model.api_ = query ? query(TW_ABI_VERSION) : nullptr;
  if (!model.api_) return make_error(DiagCode::unsupported, "'{0}' does not serve ABI version {1}", path, TW_ABI_VERSION);
  const tw_status status = model.api_->check_cpu();
  if (status != TW_OK) return make_error(DiagCode::unsupported, "cannot run '{0}' here: {1}", path, model.api_->status_text(status));
  return model;
}

LoadedModel::LoadedModel(LoadedModel&& other) noexcept : handle_(other.handle_), api_(other.api_) { other.handle_ = nullptr; }

LoadedModel::~LoadedModel() {
  if (handle_) ::dlclose(handle_);
}

}  // namespace tw
