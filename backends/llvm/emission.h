// The state that the parts of a kernel's code generation share: the kernel and the facts known
// about it, the function in progress, the lanes of the enclosing vector loop, the first error.
#pragma once
#include <llvm/IR/Module.h>

#include <map>
#include <string>

#include "backends/llvm/annotate.h"
#include "backends/llvm/index.h"
#include "backends/llvm/values.h"
#include "ir/program.h"
#include "ir/simplify.h"
#include "ir/target.h"

namespace tw::codegen {

// The surroundings of a function besides its parameters and its stack. A kernel without bound loops
// may use these variables like symbols.
class KernelEnvironment {
 public:
  virtual ~KernelEnvironment() = default;
  virtual const Ranges& variables() const = 0;
  // Returns an i64; called at the beginning of a function.
  virtual Value* variable(Values& v, const std::string& name) const = 0;
  // True for a temp that lies elsewhere than on the stack.
  virtual bool holds(BufferId buffer) const = 0;
  // The buffer's address, 64-byte aligned
  virtual Value* buffer(Values& v, BufferId buffer) const = 0;
  virtual void barrier(Values& v) const = 0;
  // copy: starts a copy of `bytes` into a buffer that `holds`. `there` is an i1; where it is false
  // zeros are written instead; null: always true. Copies since the last commit form a group. await:
  // waits until all groups of this thread except the last `groups` have landed.
  virtual void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const = 0;
  virtual void commit(Values& v) const = 0;
  virtual void await(Values& v, int64_t groups) const = 0;
  // This thread's part of the result of an instruction that several threads execute together, from
  // its parts of the operands (vectors, in the order of `emit`). Null: LLVM's intrinsic must be
  // called.
  virtual Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                                    llvm::ArrayRef<Value*> operands) const = 0;
};

struct FunctionState {
  llvm::Function* value = nullptr;
  Value* env = nullptr;
  Value* workspace = nullptr;
  llvm::SmallVector<Value*> buffers;  // by buffer index: parameters and workspace temps
  std::map<std::string, Value*, std::less<>> vars;
};

// The enclosing vector loop
struct Lanes {
  std::string var{};  // empty: none
  int count = 0;
  Value* mask = nullptr;  // <L x i1> of active lanes; null: all are active
};

struct Emission {
  llvm::Module& module;
  const Kernel kernel;
  const Target& target;
  Values v;
  const KernelEnvironment* environment;
  // Set: instructions get line numbers; null: none
  const KernelLines* lines = nullptr;
  WorkspaceLayout layout;
  LoopDepths depths{};
  Ranges ranges{};
  FunctionState function{};
  Lanes lanes{};
  std::string error{};

  void fail(const std::string& message) {
    if (error.empty()) error = message;
  }
  void at_line(unsigned line) {
    if (lines)
      v.b.SetCurrentDebugLocation(
          llvm::DILocation::get(v.b.getContext(), line, 0, function.value->getSubprogram()));
  }
};

class EmissionPart {
 protected:
  explicit EmissionPart(Emission& emission)
      : emission_(emission),
        module_(emission.module),
        kernel_(emission.kernel),
        v_(emission.v),
        function_(emission.function),
        lanes_(emission.lanes) {}
  void fail(const std::string& message) { emission_.fail(message); }
  bool failed() const { return !emission_.error.empty(); }

  Emission& emission_;
  llvm::Module& module_;
  const Kernel& kernel_;
  Values& v_;
  FunctionState& function_;
  Lanes& lanes_;
};

}  // namespace tw::codegen
