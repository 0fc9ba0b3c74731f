// Ties machine code to the kernel's text. Every loop and store is a line of the text. LLVM carries
// the lines as debug locations, and they come back as comments between the instructions.
#pragma once
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace tw::codegen {

class KernelLines {
 public:
  explicit KernelLines(const Kernel& kernel);
  // Line numbers from 1; an unknown name gives 1, the kernel's head
  unsigned loop(const std::string& var) const { return find(loops_, var); }
  unsigned store(const std::string& label) const { return find(stores_, label); }

  // Adds debug information to a function whose instructions will carry lines.
  void describe(llvm::Function& function) const;
  // `assembly` is the text of a described module. Each run of instructions from one line gets that
  // line as a comment in front. Directives of the debug information are removed, and the numbered
  // text comes first.
  std::string annotated(const std::string& assembly, const std::string& comment) const;

 private:
  using Lines = std::map<std::string, unsigned>;
  static unsigned find(const Lines& lines, const std::string& name);
  std::vector<std::string> text_;
  Lines loops_, stores_;
};

}  // namespace tw::codegen
