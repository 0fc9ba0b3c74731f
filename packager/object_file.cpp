#include "packager/object_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "packager/data_object.h"
#include "packager/elf_view.h"
#include "packager/link.h"
#include "packager/lld.h"
#include "packager/llvm_object.h"

namespace tw {
namespace {

bool may_be_undefined(const ElfSymbol& symbol, bool freestanding) {
  if (!freestanding) return undefined_symbol_allowed(symbol.name, symbol.weak);
  return symbol.name == "memcpy" || symbol.name == "memmove" || symbol.name == "memset";
}

Error check_symbols(const ElfView& view, const ObjectRequest& request) {
  TW_ASSIGN(const std::vector<ElfSymbol> symbols, view.global_symbols());
  std::vector<Diag> diags;
  for (const ElfSymbol& s : symbols)
    if (!s.defined && s.name != "__ehdr_start" && !may_be_undefined(s, request.freestanding))
      diags.push_back({DiagCode::unsupported,
                       llvm::formatv("the generated code needs '{0}', which {1}", s.name,
                                     request.freestanding
                                         ? "a freestanding object may not take from the program: "
                                           "only memcpy, memmove and memset"
                                         : "an object may not take from the program")
                           .str(),
                       {},
                       {}});
  for (const std::string& name : request.exports)
    if (std::ranges::none_of(symbols,
                             [&](const ElfSymbol& s) { return s.defined && s.name == name; }))
      diags.push_back({DiagCode::unsupported,
                       "no object defines '" + name + "', which the object is to export",
                       {},
                       {}});
  return make_error(std::move(diags));
}

template <class Section>
ObjectSizes sizes_of(const std::string& bytes, const ElfView& view) {
  ObjectSizes sizes;
  for (const ElfSection& section : view.sections()) {
    Section h;
    std::memcpy(&h, bytes.data() + section.header_offset, sizeof h);
    if (!(h.sh_flags & SHF_ALLOC)) continue;
    if (h.sh_flags & SHF_EXECINSTR) sizes.code += h.sh_size;
    else if (h.sh_flags & SHF_WRITE) sizes.written += h.sh_size;
    else sizes.constants += h.sh_size;
  }
  return sizes;
}

}  // namespace

Expected<LinkedObject> link_object(const ObjectRequest& request, const FillBytes& fill) {
  TW_CHECK(!request.objects.empty(), "nothing to link");
  const DataForm form = request.freestanding ? DataForm::freestanding : DataForm::object;
  TW_ASSIGN(std::string data, make_data_object(request.objects.front(), request.manifest, form));
  std::vector<std::string> arguments = {"-r", "--gc-sections"};
  for (const std::string& name : request.exports) arguments.push_back("--undefined=" + name);
  const std::vector<std::string> last = {std::move(data)};
  TW_ASSIGN(std::string merged,
            run_lld(std::move(arguments), {{request.objects, false}, {last, false}}));
  TW_ASSIGN(std::string bytes, keep_global(merged, request.exports));
  TW_ASSIGN(const ElfView view, ElfView::parse(bytes, "object"));
  TW_TRY(check_symbols(view, request));
  // Code reaches constants within 2 GiB only.
  if (request.weight_bytes >= uint64_t{1} << 31)
    return make_error(DiagCode::limit,
                      "{0} bytes of weights are too many for an object, which has less than 2 GiB: "
                      "--emit so takes them",
                      request.weight_bytes);
  const ElfSection* section = view.section(kObjectWeightsSection);
  if (section) {  // a model without weights has no such section
    const uint64_t start = (bytes.size() + kObjectWeightsAlignment - 1) / kObjectWeightsAlignment *
                           kObjectWeightsAlignment;
    give_bytes(bytes, view.is64(), *section, start, request.weight_bytes);
    bytes.resize(start + request.weight_bytes);
    auto* weights = reinterpret_cast<std::byte*>(bytes.data() + start);
    TW_TRY(fill(std::span(weights, request.weight_bytes)));
  }
  TW_ASSIGN(const ElfView done, ElfView::parse(bytes, "object"));
  const ObjectSizes sizes = done.is64() ? sizes_of<Elf64_Shdr>(bytes, done)
                                        : sizes_of<Elf32_Shdr>(bytes, done);
  return LinkedObject{std::move(bytes), sizes};
}

bool is_archive_name(std::string_view path) { return path.ends_with(".a"); }

}  // namespace tw
