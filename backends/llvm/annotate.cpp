#include "backends/llvm/annotate.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>

namespace tw::codegen {
namespace {

using llvm::StringRef;

// Drops lines that LLVM's printer writes for debuggers only. A section of debug information lasts
// until the next section.
class DebugLines {
 public:
  bool drop(StringRef line) {
    StringRef text = line.trim();
    if (text.starts_with(".section") || text == ".text") {
      inside_ = text.contains(".debug_");
      return inside_;
    }
    if (inside_) return true;
    for (const char* word : {".file", ".loc", ".cfi_", ".Ltmp", ".Lfunc_begin", ".Lsec_end"})
      if (text.starts_with(word)) return true;
    return text.starts_with(".ident");
  }

 private:
  bool inside_ = false;
};

// The line number in "\t.loc\t1 14 0 ..."; 0: another directive or instruction
unsigned location(StringRef line) {
  StringRef text = line.trim();
  if (!text.consume_front(".loc")) return 0;
  unsigned file = 0, number = 0;
  text = text.ltrim();
  if (text.consumeInteger(10, file)) return 0;
  text = text.ltrim();
  return text.consumeInteger(10, number) ? 0 : number;
}
}  // namespace

KernelLines::KernelLines(const Kernel& kernel) {
  const std::string text = print(kernel);
  llvm::SmallVector<StringRef> lines;
  StringRef(text).rtrim().split(lines, '\n');
  for (StringRef line : lines) {
    text_.push_back(line.str());
    StringRef rest = line.trim();
    const unsigned number = static_cast<unsigned>(text_.size());
    if (rest.consume_front("for "))
      loops_[rest.take_until([](char c) { return c == ' '; }).str()] = number;
    else if (number > 1 && !rest.starts_with("temp ") && rest.contains(": "))
      stores_[rest.take_until([](char c) { return c == ':'; }).str()] = number;
  }
}

unsigned KernelLines::find(const Lines& lines, const std::string& name) {
  auto found = lines.find(name);
  return found == lines.end() ? 1 : found->second;
}

void KernelLines::describe(llvm::Function& function) const {
  llvm::Module& module = *function.getParent();
  if (!module.getModuleFlag("Debug Info Version"))
    module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  llvm::DIBuilder builder(module);
  llvm::DIFile* file = builder.createFile("kernel", "");
  builder.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C), file, "tilewright",
                            true, "", 0, "", llvm::DICompileUnit::LineTablesOnly);
  auto* type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
  function.setSubprogram(builder.createFunction(file, function.getName(), "", file, 1, type, 1,
                                                llvm::DINode::FlagZero,
                                                llvm::DISubprogram::SPFlagDefinition));
  builder.finalize();
}

std::string KernelLines::annotated(const std::string& assembly, const std::string& comment) const {
  std::string out;
  auto numbered = [&](unsigned line) {
    return comment + " " + llvm::utostr(line) + ": " + text_[line - 1] + "\n";
  };
  for (unsigned line = 1; line <= text_.size(); ++line) out += numbered(line);
  llvm::SmallVector<StringRef> lines;
  StringRef(assembly).split(lines, '\n');
  DebugLines debug;
  unsigned shown = 0, wanted = 0;
  for (StringRef line : lines) {
    if (unsigned number = location(line)) wanted = number;
    if (debug.drop(line)) continue;
    const bool instruction = line.starts_with("\t") && !line.trim().starts_with(".") &&
                             !line.trim().starts_with(comment);
    if (line.ends_with(":") || line.contains(":  ")) shown = 0;  // a new block repeats its line
    if (instruction && wanted != shown && wanted > 0 && wanted <= text_.size()) {
      out += numbered(wanted);
      shown = wanted;
    }
    out += line.str() + "\n";
  }
  return out;
}

}  // namespace tw::codegen
