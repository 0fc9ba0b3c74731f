// Turns one scheduled kernel into LLVM functions. Statements walk top-down; `vector` loops make
// expressions of their variable into lanes, `unroll` loops repeat the emission, and register
// buffers become one stack slot a value, which SROA makes SSA.
#pragma once
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "backends/llvm/annotate.h"
#include "backends/llvm/index.h"
#include "backends/llvm/values.h"
#include "ir/program.h"
#include "ir/simplify.h"
#include "ir/target.h"

namespace tw {

struct EmittedKernel {
  // Void (ptr env, ptr per parameter buffer.., ptr workspace, i64 per symbol..)
  llvm::Function* function = nullptr;
};

// How many shares of at least that estimated time the work makes; at least 1, an expression of the
// kernel's symbols.
Expr shares_of(const Work& work, const Target& target, int64_t share_ns);

// What a function finds around it besides its parameters and its stack. A kernel without bound
// loops may use these variables like symbols.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
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

class KernelEmitter {
 public:
  // surroundings: null: none, as on a processor; must outlive it.
  KernelEmitter(llvm::Module& module, const CpuTraits& traits, const Kernel& kernel,
                const Target& target, const Surroundings* surroundings = nullptr);
  // Defines `symbol`; parallel loops run on env's threads, in at most `shares` parts; 1: one after
  // the other, and env is not read. Errors: what the kernel asks for that code generation does not
  // do (named), expansion beyond the limits.
  Expected<EmittedKernel> emit(const std::string& symbol, const Expr& shares);
  // Emit gives instructions their lines; must outlive it
  void set_lines(const KernelLines* lines) { lines_ = lines; }

 private:
  // Of one load or store for the present values of the loops, in elements
  struct Access {
    int64_t constant = 0;
    Value* dynamic = nullptr;  // i64, null: 0
    int64_t lane_stride = 0;
    Value* lane_offsets = nullptr;  // <L x i64>: lanes that are not a ramp
  };
  struct Region {  // buffers, variables and lanes of the function being emitted
    llvm::Function* function = nullptr;
    Value* env = nullptr;
    Value* workspace = nullptr;
    llvm::SmallVector<Value*> buffers;  // by buffer index: parameters and workspace temps
    std::map<std::string, Value*, std::less<>> vars;
  };

  // The loop inside the present parallel loop whose iterations are shared out too
  struct Shared {
    const StmtNode* loop = nullptr;
    std::string outer{};                     // the parallel loop's variable
    Value *begin = nullptr, *end = nullptr;  // of this share, counted over both loops
  };

  // kernel_emitter.cpp: statements
  void analyse();
  void check_temps();
  void emit_stmt(const Stmt& s);
  void emit_loop(const Stmt& s);
  void emit_serial(const Stmt& s, Value* begin, Value* end);
  void emit_prefetch(const StmtNode& s);
  bool emit_transpose(const Stmt& s);  // emit_transpose.cpp; false: the loop is no such copy
  // emit_intrinsic.cpp
  struct Operand {
    BufferId buffer;
    std::vector<Expr> at;  // of the first of
    int64_t count = 0;     // elements
  };
  struct Instruction {  // no words: the block's loops are emitted
    const Intrinsic* intrinsic = nullptr;
    std::vector<std::string> words;  // LLVM's intrinsic and its operands
    std::string result;
    std::map<std::string, Operand> operands;
  };
  void emit_region(const Stmt& s);
  const Instruction& instruction_of(const StmtNode& s);
  Value* load_operand(const Operand& operand);
  void store_operand(const Operand& operand, Value* value);
  Value* as_type(Value* value, llvm::Type* type);
  bool add_arguments(Value* operand, const llvm::FunctionType& type,
                     std::vector<Value*>& arguments);
  Value* joined(Value* result);
  Value* call_intrinsic(const Instruction& instruction, llvm::ArrayRef<Value*> operands,
                        llvm::Type* out);
  void emit_store(const Stmt& s);
  void emit_async(const StmtNode& s);
  void emit_update(const Stmt& s, const Access& access);
  Value* first_reduce_iteration();
  Expr resolved(const Expr& condition);
  void at_line(unsigned line);
  void fail(const std::string& message);
  // emit_parallel.cpp
  llvm::Function* start_function(const std::string& symbol, size_t integers,
                                 llvm::GlobalValue::LinkageTypes linkage);
  void enter(llvm::Function* function, Value* chunk = nullptr);
  Expr shares_here() const;  // of the loop that was entered last
  void emit_parallel(const Stmt& s);
  llvm::Value* chunk_count(llvm::Value* extent, const Expr& limit);
  // Calls the body on each chunk, on the pool's threads
  void call_in_chunks(llvm::Function* body, std::vector<llvm::Value*> arguments,
                      llvm::Value* extent, llvm::Value* chunks);
  void emit_chunk(const Stmt& s, llvm::Function* body, const std::vector<std::string>& outer_vars);
  void emit_shared(const Stmt& s);
  llvm::Function* make_thunk(llvm::Function* body, llvm::StructType* packed);
  // emit_expr.cpp
  Value* emit(const Expr& e);
  Value* emit_node(const Expr& e);
  Value* emit_binary(const Expr& e);
  // emit_products.cpp: sum + e; null: e is no sum of neighbouring products
  Value* add_products(const Expr& e, Value* sum);
  Value* emit_select(const Expr& e);
  Value* lane_comparison(const Expr& e);
  Value* index_division(const Expr& e);
  bool needs_guard(const Expr& e) const;
  // emit_access.cpp
  const IndexForm& form_of(const void* key, BufferId buffer, const std::vector<Expr>& indices);
  Access access_of(const IndexForm& form);
  Value* load(BufferId id, const Access& access);
  void store(BufferId id, const Access& access, Value* value);
  Value* load_memory(BufferId id, const Access& access, llvm::Type* type);
  Value* load_repeated(BufferId id, const Access& access, llvm::Type* type);
  void store_memory(BufferId id, const Access& access, Value* value);
  Value* load_register(BufferId id, const Access& access);
  void store_register(BufferId id, const Access& access, Value* value);
  std::optional<std::vector<int64_t>> register_elements(BufferId id, const Access& access);
  llvm::AllocaInst* register_slot(BufferId id, int64_t slot);
  Value* base_of(BufferId id);
  Value* pointer(BufferId id, const Access& access, int64_t lane);
  Value* lane_pointers(BufferId id, const Access& access);
  llvm::Align alignment(BufferId id, const Access& access, int64_t extra) const;
  Value* any_lane();
  int64_t elements(BufferId id) const;  // constant shapes only, else -1

  llvm::Module& module_;
  const Kernel kernel_;
  const Target& target_;
  std::unordered_map<const StmtNode*, Instruction> instructions_;  // by block
  Values v_;
  const Surroundings* around_;
  WorkspaceLayout layout_;
  // Slices that the workspace has for temps of scope thread
  int cores_;
  Region region_;
  Shared shared_;
  Expr shares_ = 1;
  const KernelLines* lines_ = nullptr;
  std::string symbol_;
  std::string error_;

  LoopDepths depths_;
  Ranges ranges_;
  std::map<std::string, AxisRole, std::less<>> roles_;
  std::vector<const StmtNode*> loops_;  // enclosing the present statement
  // Present values of the variables of expanded loops
  std::map<std::string, int64_t> expanded_;
  // By address of loads, stores and comparisons, which live as long:
  std::unordered_map<const void*, IndexForm> forms_;
  std::vector<Expr> resolved_;  // those that are not of the kernel's body
  // By buffer index: lanes of a register slot, 0: scalars
  std::vector<int64_t> slot_lanes_;
  std::map<std::pair<int32_t, int64_t>, llvm::AllocaInst*> slots_;
  std::map<int32_t, Value*> stack_;
  std::map<int32_t, llvm::Function*> owners_;  // of register and stack buffers
  std::string lane_var_;                       // of the vector loop around, empty: none
  int lane_count_ = 0;
  Value* mask_ = nullptr;  // <L x i1>: lanes that are active, null: all
  // The expression is kept alive: its address is the key
  struct Known {
    Expr expr;
    Value* value;
  };
  // Values of this statement, by scope
  std::vector<std::unordered_map<const ExprNode*, Known>> memo_;
  int64_t emitted_ = 0;
  int parallel_count_ = 0;
  bool in_parallel_ = false;
};

}  // namespace tw
