#include "packager/loaded_model.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <vector>

#include "packager/artifact.h"
#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/weights_file.h"
#include "support/json.h"
#include "support/regular_file.h"

namespace tw {
namespace {

// The library's manifest; an empty document where there is none that can be read
Json manifest_of(const std::string& path) {
  Expected<std::string> text = read_manifest(path, Integrity::trust);
  Expected<Json> json = text ? parse_json(*text, path) : Expected<Json>(text.takeError());
  if (json) return std::move(*json);
  llvm::consumeError(json.takeError());
  return Json();
}

struct Machine {
  uint16_t number;
  bool bits64;
  const char* name;
};
constexpr Machine kMachines[] = {{EM_X86_64, true, "x86-64"},
                                 {EM_AARCH64, true, "AArch64"},
                                 {EM_ARM, false, "32-bit Arm"},
                                 {EM_RISCV, true, "64-bit RISC-V"}};

#if defined(__x86_64__)
constexpr const Machine& kHere = kMachines[0];
#elif defined(__aarch64__)
constexpr const Machine& kHere = kMachines[1];
#elif defined(__riscv)
constexpr const Machine& kHere = kMachines[3];
#else
constexpr const Machine& kHere = kMachines[2];
#endif

// Checks the machine first: the system would only say that there is no such file.
Error check_machine(const ElfView& view, const std::string& path) {
  if (view.machine() == kHere.number && view.is64() == kHere.bits64) return Error::success();
  const auto* machine = std::find_if(
      std::begin(kMachines), std::end(kMachines),
      [&](const Machine& m) { return m.number == view.machine() && m.bits64 == view.is64(); });
  const std::string name = machine != std::end(kMachines)
                               ? machine->name
                               : "ELF machine " + std::to_string(view.machine());
  const std::string target = manifest_of(path)["target"]["name"].text_or_empty();
  return make_error(Diag{
      DiagCode::unsupported,
      llvm::formatv("'{0}' is for {1}{2}, and this machine is {3}", path, name,
                    target.empty() ? "" : " (target " + target + ")", kHere.name)
          .str(),
      {},
      {"run it there, or compile the model for this machine: 'tilewright compile' without -t"}});
}

Error check_library(const std::string& path, Integrity integrity) {
  TW_ASSIGN(const auto buffer, regular_file(path));
  const std::string_view bytes(buffer->getBufferStart(), buffer->getBufferSize());
  const auto object = [&] {
    return make_error(
        DiagCode::invalid_argument,
        "'{0}' is an object for a program to link: compile the model with '--emit so' "
        "for a library that runs here",
        path);
  };
  if (bytes.starts_with("!<arch>")) return object();
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    return make_error(
        DiagCode::invalid_argument, "'{0}' is not a compiled library{1}", path,
        path.ends_with(".onnx")
            ? llvm::formatv(": compile it first, by 'tilewright compile {0}'", path).str()
            : "");
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, path));
  if (view.segments().empty()) return object();
  TW_ASSIGN(const std::vector<ElfSymbol> symbols, view.dynamic_symbols());
  const bool there = std::ranges::any_of(
      symbols, [](const ElfSymbol& s) { return s.defined && s.name == TW_QUERY_SYMBOL; });
  if (!there)
    return make_error(DiagCode::invalid_argument,
                      "'{0}' is not a library of this Tilewright: no function " TW_QUERY_SYMBOL,
                      path);
  if (integrity == Integrity::check) TW_TRY(check_integrity(view, bytes, path));
  TW_TRY(check_machine(view, path));
  const ElfSection* weights = view.section(kWeightsSection);
  const std::string_view manifest = view.note(kNoteOwner, kManifestNote);
  if (!weights || manifest.empty()) return Error::success();
  return check_weights_file(path, std::string(manifest.substr(0, manifest.find('\0'))),
                            view.contents(*weights), integrity);
}

}  // namespace

Expected<LoadedModel> LoadedModel::open(const std::string& path, Integrity integrity) {
  TW_TRY(check_library(path, integrity));
  // dlopen searches the system's folders for a name without '/'.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return make_error(DiagCode::invalid_argument, "cannot load '{0}': {1}", path, ::dlerror());
  LoadedModel model(handle, nullptr);
  const auto query = reinterpret_cast<tw_query_fn>(::dlsym(handle, TW_QUERY_SYMBOL));
  model.api_ = query ? query(TW_ABI_VERSION) : nullptr;
  if (!model.api_) {
    const Json manifest = manifest_of(path);
    return make_error(DiagCode::unsupported,
                      "'{0}' serves version {1} of the C interface (made by tilewright {2}), not "
                      "version {3}: compile its model again",
                      path, manifest["abi"].integer_or(0), manifest["tilewright"].text_or_empty(),
                      TW_ABI_VERSION);
  }
  const tw_status status = model.api_->check_cpu();
  if (status != TW_OK)
    return make_error(DiagCode::unsupported, "cannot run '{0}' here: {1}", path,
                      model.api_->status_text(status));
  return model;
}

LoadedModel::LoadedModel(LoadedModel&& other) noexcept : handle_(other.handle_), api_(other.api_) {
  other.handle_ = nullptr;
}

LoadedModel::~LoadedModel() {
  if (handle_) ::dlclose(handle_);
}

}  // namespace tw
