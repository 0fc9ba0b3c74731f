// What the parts of a kernel's code generation share: the kernel and what is known of it, the
// function that is emitted into, the lanes of the vector loop around, the first error.
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

// What a function finds around it besides its parameters and its stack. A kernel without bound
// loops may use these variables like symbols.
class KernelEnvironment {
 public:
  virtual ~KernelEnvironment() = default;
  virtual const Ranges& variables() const = 0;
  // i64; asked for where a function begins
  virtual Value* variable(Values& v, const std::string& name) const = 0;
  // This temp lies elsewhere than on the stack
  virtual bool holds(BufferId buffer) const = 0;
  // Its address, 64-byte aligned
  virtual Value* buffer(Values& v, BufferId buffer) const = 0;
  virtual void barrier(Values& v) const = 0;
  // Starts a copy of that many bytes into a buffer that `holds`; `there`: i1, else zeros; null:
  // always. Copies since the last commit are a group; await: all of this thread's groups but the
  // last `groups` have landed.
  virtual void copy(Values& v, Value* to, Value* from, int64_t bytes, Value* there) const = 0;
  virtual void commit(Values& v) const = 0;
  virtual void await(Values& v, int64_t groups) const = 0;
  // What this thread has of the result of an instruction that several threads do together, from its
  // parts of the operands (vectors, in the order of `emit`); null: LLVM's intrinsic is to be
  // called.
  virtual Expected<Value*> together(Values& v, const Intrinsic& intrinsic,
                                    llvm::ArrayRef<Value*> operands) const = 0;
};

// The function that is emitted into.
struct FunctionState {
  llvm::Function* value = nullptr;
  Value* env = nullptr;
  Value* workspace = nullptr;
  llvm::SmallVector<Value*> buffers;  // by buffer index: parameters and workspace temps
  std::map<std::string, Value*, std::less<>> vars;
};

// The vector loop around.
struct Lanes {
  std::string var{};  // empty: none
  int count = 0;
  Value* mask = nullptr;  // <L x i1>: those that are active, null: all
};

struct Emission {
  llvm::Module& module;
  const Kernel kernel;
  const Target& target;
  Values v;
  const KernelEnvironment* environment;
  // Emit gives instructions their lines; null: none
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

// A part's view of it.
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
