// The calls of a program: kernels, what devices do, functions of the runtime, regions.
#pragma once
#include <functional>
#include <span>

#include "backends/llvm/program_builder.h"

namespace tw::codegen {

// Code generation takes longer than in line with a function's size, so that long lists of calls are
// several functions.
inline constexpr size_t kCallsAPart = 512;

class CallEmitter : protected ProgramBuilder {
 protected:
  using ProgramBuilder::ProgramBuilder;

  // Calls that need the processor between what devices do.
  uint64_t host_calls() const;
  // i32 (ptr env): the calls of a region, on what the call that runs it gives it.
  void emit_region(size_t number);
  // i32 (ptr env): the calls in [begin, end) in order; profiled, with the nanoseconds of each
  // stored to env->call_ns.
  llvm::Function* emit_calls(bool profiled, size_t begin, size_t end);
  // i32 (ptr env): the calls for the run's sizes; with_clock: a run that asks for its calls' times
  // gets them, 0 of calls that are not made.
  llvm::Function* emit_dispatch(bool with_clock);
  // i64 (ptr symbols)
  llvm::Function* emit_arena_bytes(const std::string& name, const Expr& bytes);
  // ptr (ptr symbols): what does not hold, null where all does. Itself null: all sizes fit.
  Constant* emit_misfit();
  // The smallest and the largest value of each symbol.
  Constant* symbol_limits();

 private:
  struct Environment {
    Value *env, *inputs, *outputs, *arena, *weights, *symbols;
    // Of the symbols, in order; "": not read yet
    std::vector<std::string> names;
    Variables vars{};
    // Outputs of unknown size, and growable buffers
    std::map<std::pair<Place, int>, Value*> made{};
    // Where their addresses are kept for the next parts, by tw_grow's number
    Value* growable = nullptr;
    // Of a region: tw_env's
    Value* workspaces = nullptr;
  };
  using BeginPart = std::function<void(const Environment& at)>;
  struct Symbols {
    const std::vector<std::string>& given;  // in the order of the environment's symbols
    // Those behind them, which steps between the calls read from data
    std::vector<std::string> read;
  };
  struct Calls {  // those in [begin, end), and the steps in front of them
    size_t begin, end;
    const std::vector<SizeStep>& steps;
    bool steps_behind;  // those behind the last call too
    BeginPart at_end = nullptr;
  };
  using EmitCall = std::function<void(size_t call, const Environment& at)>;

  // i32 (ptr env): the calls by `emit_one`, in one function or in parts, which that one calls;
  // each begins with `begin_part`, where there is one. A status other than TW_OK ends it.
  llvm::Function* emit_in_parts(const std::string& name, const Calls& calls, const Symbols& symbols,
                                const BeginPart& begin_part, const EmitCall& emit_one);
  Environment environment(Value* env, const std::vector<std::string>& names);
  int growable_number(const Operand& at) const {
    return at.index + (at.place == Place::output ? program_.growable_buffers : 0);
  }

  // Where an operand lies in the processor's memory.
  Value* address(const Operand& o, const Environment& at);
  // A number of bytes behind the begin of a device's arena, or of its weights.
  Value* device_offset(const Operand& o, int device, const Environment& at);
  // What a region finds in its tables: an address, or such a number in its place.
  Value* handle(const Operand& o, int device, const Environment& at);
  void emit_call(const KernelCall& call, const Environment& at);
  void emit_step(const SizeStep& step, const Symbols& symbols, Environment& at);
  // The kernel's symbols as the call binds them.
  Expr bound(Expr e, const KernelCall& call) const;
  // Of a transfer: the side that is not the device's.
  static const Operand& host_side(const KernelCall& call) {
    return call.arguments[call.device == 0 ? 1 : 0];
  }
  // As runtime/model.h counts tensors: 0 is none.
  uint32_t tensor_number(const Operand& o) const;
  void emit_transfer(const KernelCall& call, const Environment& at);
  // Within a device's memory.
  void emit_move(const KernelCall& call, const Environment& at);
  Value* copied_bytes(const KernelCall& call, const Environment& at);
  // As runtime/model.h says the arguments of tw_device_launch.
  void emit_launches(const KernelCall& call, const Environment& at);
  // Launches of a device are numbered kernel by kernel.
  uint32_t first_launch(size_t device, int kernel) const;
  Value* views(const KernelCall& call, const std::vector<ExternCall::View>& list,
               const Environment& at);
  // A function of runtime/ops, as ops.h says its arguments; a status other than TW_OK ends the
  // program.
  void emit_extern(const KernelCall& call, const Environment& at);
  static std::string region_symbol(size_t number) { return "tw_region_" + std::to_string(number); }
  void emit_any_call(const KernelCall& call, const Environment& at);
  void emit_host_call(const KernelCall& call, const Environment& at);
  // A region's end, of what it does on devices.
  void end_region(const Program& region, Value* env);
  // Of the regions, by device; null: there are none.
  Value* region_workspaces(const KernelCall& call, const Environment& at);
  // The handles of a call's operands, behind `lead` free places.
  Value* operand_table(const KernelCall& call, std::span<const ExternCall::View> views, size_t lead,
                       const Environment& at);
  // A handle in the workspace of a call of regions that is in this memory.
  Value* in_workspace(const KernelCall& call, const Expr& offset, int device,
                      const Environment& at);
  Value* mover();  // tw_device_move
  // The values of a region's symbols; a loop writes its iteration itself.
  Value* region_symbols(const Program& region, const std::string& iteration, const Environment& at);
  // One of two regions, by a bool.
  void emit_choice(const KernelCall& call, const Environment& at);
  // By tw_loop of the runtime, which runtime/control.h tells about.
  void emit_loop(const KernelCall& call, const Environment& at);
  llvm::FunctionCallee kernel(int index, const std::vector<Value*>& arguments);
};

}  // namespace tw::codegen
