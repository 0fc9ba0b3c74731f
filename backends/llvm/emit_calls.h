// Emits the calls of a program: kernels, operations of devices, functions of the runtime, regions.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>

#include "backends/llvm/program_builder.h"

namespace tw::codegen {

// The time of code generation grows faster than a function's size, so long lists of calls become
// several functions.
inline constexpr size_t kCallsAPart = 512;

class CallEmitter : protected ProgramBuilder {
 protected:
  using ProgramBuilder::ProgramBuilder;

  // Number of calls that need the processor between operations of devices
  uint64_t host_calls() const;
  // i32 (ptr env): the calls of a region, on the operands that the calling program provides.
  void emit_region(size_t number);
  // i32 (ptr env): the calls in [begin, end) in order. With `profiled`, env->call_ns gets the
  // nanoseconds of each.
  llvm::Function* emit_calls(bool profiled, size_t begin, size_t end);
  // i32 (ptr env): the calls for the run's sizes. `with_clock`: a run that asks for its calls'
  // times gets them, and 0 for calls that are not made.
  llvm::Function* emit_dispatch(bool with_clock);
  // i64 (ptr symbols)
  llvm::Function* emit_arena_bytes(const std::string& name, const Expr& bytes);
  // ptr (ptr symbols): the condition that does not hold, null where all hold. Null instead of a
  // function: all sizes fit.
  Constant* emit_misfit();
  Constant* symbol_limits();

 private:
  struct Environment {
    Value *env, *inputs, *outputs, *arena, *weights, *symbols;
    // Names of the symbols, in order; "": not read yet
    std::vector<std::string> names;
    Variables vars{};
    // Addresses of outputs of unknown size, and of growable buffers
    std::map<std::pair<Place, int>, Value*> made{};
    // Table that keeps these addresses for the next parts, by tw_grow's number
    Value* growable = nullptr;
    // tw_env's workspaces, in a region
    Value* workspaces = nullptr;
  };
  using BeginPart = std::function<void(const Environment& at)>;
  struct Symbols {
    const std::vector<std::string>& given;  // names in the order of the environment's symbols
    // Names of the symbols behind them, which steps between the calls read from data
    std::vector<std::string> read;
  };
  struct Calls {  // the calls in [begin, end), and the steps in front of them
    size_t begin, end;
    const std::vector<SizeStep>& steps;
    bool steps_behind;  // also the steps behind the last call
    BeginPart at_end = nullptr;
  };
  using EmitCall = std::function<void(size_t call, const Environment& at)>;

  // i32 (ptr env): emits each call by `emit_one`, in one function or in parts that it calls. Each
  // part begins with `begin_part`, if given. A status other than TW_OK ends the function.
  llvm::Function* emit_in_parts(const std::string& name, const Calls& calls, const Symbols& symbols,
                                const BeginPart& begin_part, const EmitCall& emit_one);
  Environment environment(Value* env, const std::vector<std::string>& names);
  int growable_number(const Operand& at) const {
    return at.index + (at.place == Place::output ? program_.growable_buffers : 0);
  }

  // The address of an operand in the processor's memory
  Value* address(const Operand& o, const Environment& at);
  // The byte offset from the beginning of a device's arena, or of its weights
  Value* device_offset(const Operand& o, int device, const Environment& at);
  // An entry of a region's tables: an address, or a device offset in its place
  Value* handle(const Operand& o, int device, const Environment& at);
  void emit_call(const KernelCall& call, const Environment& at);
  void emit_step(const SizeStep& step, const Symbols& symbols, Environment& at);
  // Replaces the kernel's symbols by the call's values.
  Expr bound(Expr e, const KernelCall& call) const;
  // The side of a transfer that is not the device's
  static const Operand& host_side(const KernelCall& call) {
    return call.arguments[call.device == 0 ? 1 : 0];
  }
  // The tensor's number as runtime/model.h counts: 0 is none.
  uint32_t tensor_number(const Operand& o) const;
  void emit_transfer(const KernelCall& call, const Environment& at);
  // Emits a copy within a device's memory.
  void emit_move(const KernelCall& call, const Environment& at);
  Value* copied_bytes(const KernelCall& call, const Environment& at);
  // runtime/model.h describes the arguments of tw_device_launch.
  void emit_launches(const KernelCall& call, const Environment& at);
  // The number of the kernel's first launch; a device's launches are numbered kernel by kernel.
  uint32_t first_launch(size_t device, int kernel) const;
  Value* views(const KernelCall& call, const std::vector<ExternCall::View>& list,
               const Environment& at);
  // Emits a call of a function of runtime/ops, whose arguments ops.h describes. A status other than
  // TW_OK ends the program.
  void emit_extern(const KernelCall& call, const Environment& at);
  static std::string region_symbol(size_t number) { return "tw_region_" + std::to_string(number); }
  void emit_any_call(const KernelCall& call, const Environment& at);
  void emit_host_call(const KernelCall& call, const Environment& at);
  // Emits the end of a region for the devices that it uses.
  void end_region(const Program& region, Value* env);
  // The regions' workspaces, by device; null: none
  Value* region_workspaces(const KernelCall& call, const Environment& at);
  // The handles of a call's operands, behind `lead` free places
  Value* operand_table(const KernelCall& call, std::span<const ExternCall::View> views, size_t lead,
                       const Environment& at);
  // A handle in the workspace of a call of regions, in the memory of `device`
  Value* in_workspace(const KernelCall& call, const Expr& offset, int device,
                      const Environment& at);
  Value* mover();  // tw_device_move
  // The values of a region's symbols. A loop writes its iteration itself.
  Value* region_symbols(const Program& region, const std::string& iteration, const Environment& at);
  // Emits a call of one of two regions, by a bool.
  void emit_choice(const KernelCall& call, const Environment& at);
  // Emits a call of the runtime's tw_loop, which runtime/control.h describes.
  void emit_loop(const KernelCall& call, const Environment& at);
  llvm::FunctionCallee kernel(int index, const std::vector<Value*>& arguments);

  std::map<int, std::string> kernel_symbols_;
};

}  // namespace tw::codegen
