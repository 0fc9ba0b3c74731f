// Ties machine code to the kernel's text: every loop and store is a line of it, carried through
// LLVM as debug locations, which come back as comments between the instructions.
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
  // 1-based; 1, the kernel's head, when unknown
  unsigned loop(const std::string& var) const { return find(loops_, var); }
  unsigned store(const std::string& label) const { return find(stores_, label); }

  // Debug information of a function whose instructions will carry lines.
  void describe(llvm::Function& function) const;
  // `assembly` of a module that was described: each run of instructions of one line under that line
  // as a comment; directives of the debug information are gone. The numbered text stands in front.
  std::string annotated(const std::string& assembly, const std::string& comment) const;

 private:
  using Lines = std::map<std::string, unsigned>;
  static unsigned find(const Lines& lines, const std::string& name);
  std::vector<std::string> text_;
  Lines loops_, stores_;
};

}  // namespace tw::codegen
