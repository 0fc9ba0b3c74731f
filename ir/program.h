// The compiled model before code generation: distinct scheduled kernels, the calls in order, where every buffer lives,
// and how the weights of the artifact are made. passes build it, backends and packager read it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/blob.h"
#include "ir/kernel/work.h"

namespace tw {

struct TensorSpec {          // an input or output of the model
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> dims;    // constants, symbols or expressions of symbols
};

enum class Place : uint8_t { input, output, arena, weights };
struct Operand {
  Place place = Place::arena;
  int index = 0;             // input, output: which one
  Expr offset = 0;           // arena: bytes, may use symbols; weights: constant bytes
};

struct KernelCall {
  int kernel = 0;                      // index into Program::kernels
  std::vector<Operand> arguments;      // one a parameter buffer of the kernel (inputs, constants, outputs), in buffer order
  std::vector<Expr> symbols;           // values for the kernel's symbols, in its order, in terms of the model's symbols
  Expr workspace = 0;                  // arena offset of the kernel's global temps, laid out by workspace_layout()
  std::string name;                    // for people: the nodes it computes
  int device = 0;                      // that runs it: 0 the processor, else 1 + index into Target::devices. Arena, weights and workspace are the device's
  int from = 0;                        // other than `device`: a transfer, whose kernel is a copy: arguments[0] lies there
  bool is_transfer() const { return from != device; }
};

// Memory of a device besides the processor, and its code: what its back end made of the kernels called there.
struct DeviceLaunch {
  std::string function;
  std::vector<int> buffers;            // its arguments: the call's, by index; -1: the workspace
  std::vector<int> symbols;            // then the kernel's symbols, by index
  std::array<Expr, 3> global = {1, 1, 1}, local = {1, 1, 1};   // work-items of the launch and of a group, in the kernel's symbols
};
struct DeviceProgram {
  Expr arena_bytes = 0;
  uint64_t weights_offset = 0, weight_bytes = 0;        // its stretch of the artifact's weights
  std::string code;
  std::vector<std::vector<DeviceLaunch>> launches;      // by kernel of the program: in their order, each after the one before has ended
};

// One part of the artifact's weights: bytes copied from `source`, or, with a pack kernel, the kernel's output over it.
struct WeightPiece {
  uint64_t offset = 0, size = 0;       // 64-byte aligned offset
  Blob source;
  std::shared_ptr<const Kernel> pack;  // null: plain copy; else one input buffer (source) and one output buffer (the piece)
  std::string name;
};

struct Program {
  std::string name;
  std::vector<std::string> symbols;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<Kernel> kernels;         // scheduled
  std::vector<Work> work;              // of each kernel as lowered, in its symbols
  std::vector<KernelCall> calls;
  Expr arena_bytes = 0;                // peak, 64-byte aligned, in terms of symbols
  uint64_t weight_bytes = 0;           // of all, the devices' too
  std::vector<DeviceProgram> devices;  // of Target::devices
  std::vector<WeightPiece> weights;
  uint64_t naive_arena_bytes = 0;      // sum of all intermediates (symbols as 1), for the report
};

// Where a kernel's temps of scope global and thread lie in its workspace, 64-byte aligned: the global ones, then `threads`
// slices with the thread ones of each share of a parallel loop.
struct WorkspaceLayout {
  std::vector<Expr> offsets;           // by buffer index; undefined: not in the workspace. Scope thread: in slice 0
  Expr slice_bytes = 0;                // of one thread; 0: nothing is in scope thread
  Expr bytes = 0;                      // in all
};
WorkspaceLayout workspace_layout(const Kernel& kernel, int threads = 1);

// What a constant parameter of a kernel holds: bytes, or what `pack` (one input, one output) makes of them.
struct Constant {
  Blob source;
  std::shared_ptr<const Kernel> pack;
};
// The bytes of a constant parameter, by the interpreter. Errors: a pack kernel that fails.
Expected<std::vector<std::byte>> contents(const Constant& constant);
// Another piece at the end of a device's weights (1 + index), behind which everything moves up. The result: its offset in the device's stretch.
uint64_t add_weights(Program& program, int device, WeightPiece piece);
// The piece that an operand of a call on the device begins at; null: none.
const WeightPiece* find_weights(const Program& program, int device, const Operand& operand);

// By kernel: whether the device runs it; the processor (0) is there for what nobody calls.
std::vector<bool> kernels_of(const Program& program, int device);

std::string print(const Program& program);

}  // namespace tw
