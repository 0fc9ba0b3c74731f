// The compiled model before code generation: distinct scheduled kernels, the calls in order, where
// every buffer lives, and how the weights of the artifact are made. passes build it, backends and
// packager read it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/blob.h"
#include "ir/kernel/work.h"
#include "ir/simplify.h"

namespace tw {

struct TensorSpec {  // an input or output of the model
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> dims;  // constants, symbols or expressions of symbols
};

// Inputs and outputs of the model lie in the processor's memory. Those of a region may lie in a
// device's.
enum class Place : uint8_t { input, output, arena, weights, growable };
struct Operand {
  Place place = Place::arena;
  int index = 0;    // input, output, growable: which one
  Expr offset = 0;  // arena, growable: bytes, may use symbols; weights: constant bytes
};

// What must be true of the sizes of the inputs, a bool; it is false where a number in it has more
// than 64 bits. `what` says it to people.
struct SizeCondition {
  Expr holds;
  std::string what;
};

// What is done between calls where sizes are made from data; in this order in front of the same
// call.
struct SizeStep {
  enum class Kind : uint8_t {
    // Data symbol `symbol` is `dtype` at `at`; it must lie in [0, bound] and be `equals`, where
    // those are defined
    read,
    check,   // `equals` must hold (a bool)
    within,  // `bytes` bytes of `dtype` at `at` must lie in [least, bound]; bools must be true
    // `at` (a growable buffer, or an output of unknown size) gets `bytes`; what was in a growable
    // buffer before is gone
    grow,
  };
  Kind kind = Kind::read;
  size_t before = 0;  // which call; behind the last one: their number
  Operand at{};
  int symbol = 0;
  DType dtype = DType::i64;
  Expr least{}, bound{}, equals{}, bytes{};
  std::string what{};  // for messages: "element 0 of 'count'", "words (Gather): index"
};

// Regions that a call runs: a choice between two, or a loop over one. Offsets are in the call's
// workspace, which begins with the regions' arena; there is one in the memory of every place.
struct RegionCall {
  std::vector<int> regions;  // of Program::regions: then and else, or a loop's body
  bool loop = false, conditional = false;
  Expr trip;              // undefined: no limit
  std::string iteration;  // the body's symbol
  int carried = 0, sliced = 0;
  // Of each carried value before the first iteration, of a row of each sliced value and stacked
  // result
  std::vector<Expr> bytes;
  std::vector<Expr> growth;      // bytes that each carried value grows by in an iteration
  std::vector<Expr> spare;       // second memory of each carried value, where that lies
  Expr condition = 0;            // memory of the next one
  std::vector<Expr> workspaces;  // of each device, in its arena
};

// A call of a function of the runtime library instead of a kernel. Views describe its inputs, then
// its outputs; all are dense and row-major.
struct ExternCall {
  struct View {
    int argument = 0;  // of the call; -1: an optional input that is absent
    DType dtype = DType::f32;
    std::vector<Expr> dims;  // in the model's symbols
    int device = 0;          // in whose memory it lies, of regions: else the processor's
  };
  std::string function;  // the C function is tw_op_<function>
  std::string what;      // for messages: "words (Scatter)"
  std::vector<View> inputs, outputs;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  int in_place = -1;  // the input whose memory the first output may take
  // Instead of the function: what its inputs and outputs are is the operator's matter
  std::shared_ptr<const RegionCall> region = nullptr;
};

struct KernelCall {
  int kernel = 0;  // index into Program::kernels; -1: a call of `function`
  // One a parameter buffer of the kernel (inputs, constants, outputs), in buffer order
  std::vector<Operand> arguments;
  // Values for the kernel's symbols, in its order, in terms of the model's symbols
  std::vector<Expr> symbols;
  // Offset of the kernel's global temps, laid out by workspace_layout(), in the arena or in
  // growable buffer
  Expr workspace = 0;
  int workspace_buffer = -1;  // ... of this number
  std::string name;           // for people: the nodes it computes
  // That runs it: 0 the processor, else 1 + index into Target::devices. Arena, weights and
  // workspace are the device's
  int device = 0;
  // Other than `device`: a transfer, whose kernel is a copy: arguments[0] lies there
  int from = 0;
  bool moves = false;  // a copy within the device's memory, by its driver
  std::shared_ptr<const ExternCall> function = nullptr;
  bool is_transfer() const { return from != device; }
  bool is_launch() const { return device != 0 && !is_transfer() && !moves; }
};

// Memory of a device besides the processor, and its code: what its back end made of the kernels
// called there.
struct DeviceLaunch {
  std::string function;
  std::vector<int> buffers;  // its arguments: the call's, by index; -1: the workspace
  std::vector<int> symbols;  // then the kernel's symbols, by index
  // work-items of the launch and of a group, in the kernel's symbols
  std::array<Expr, 3> global = {1, 1, 1}, local = {1, 1, 1};
};
struct DeviceProgram {
  Expr arena_bytes = 0;
  uint64_t weights_offset = 0, weight_bytes = 0;  // its stretch of the artifact's weights
  std::string code;
  // By kernel of the program: in their order, each after the one before has ended
  std::vector<std::vector<DeviceLaunch>> launches;
};

// One part of the artifact's weights: bytes copied from `source`, or, with a pack kernel, the
// kernel's output over it.
struct WeightPiece {
  uint64_t offset = 0, size = 0;  // 64-byte aligned offset
  Blob source;
  // null: plain copy; else one input buffer (source) and one output buffer (the piece)
  std::shared_ptr<const Kernel> pack;
  std::string name;
};

// Calls that are made instead of the others when the symbols have these values.
struct FastPath {
  std::map<std::string, int64_t> sizes;
  size_t begin = 0, end = 0;  // of Program::calls
};

struct Program {
  std::string name;
  std::vector<std::string> symbols;
  SymbolLimitsOf limits;  // of those that have some
  std::vector<TensorSpec> inputs, outputs;
  std::vector<Kernel> kernels;            // scheduled; the regions' too
  std::vector<Work> work;                 // of each kernel as lowered, in its symbols
  std::vector<KernelCall> calls;          // for any sizes, then those of the fast paths
  std::vector<FastPath> fast_paths;       // of those that fit a run the last
  Expr arena_bytes = 0;                   // peak, 64-byte aligned, in terms of symbols
  std::vector<std::string> data_symbols;  // whose values are made while the model runs
  std::vector<SizeStep> steps;            // sorted by `before`
  // Looked at before a run, and before sizes of the arena are made of symbols
  std::vector<SizeCondition> conditions;
  // Conditions and steps that the model's operators ask for, for people: "y (Squeeze) needs n == 1"
  std::vector<std::string> needs;
  int growable_buffers = 0;  // memory that grows, for what has no bound before the run
  // For any symbols within their limits; undefined: they have none
  Expr max_arena_bytes{};
  uint64_t weight_bytes = 0;           // of all, the devices' too
  std::vector<DeviceProgram> devices;  // of Target::devices
  std::vector<WeightPiece> weights;
  // Sum of all intermediates and workspaces (symbols as 1), for the report
  uint64_t naive_arena_bytes = 0;
  // Of all calls, inner ones first: no kernels, weights and regions of their own
  std::vector<Program> regions;
};

// Where a kernel's temps of scope global and thread lie in its workspace, 64-byte aligned: the
// global ones, then `threads` slices with the thread ones of each chunk of a parallel loop.
struct WorkspaceLayout {
  // By buffer index; undefined: not in the workspace. Scope thread: in slice 0
  std::vector<Expr> offsets;
  Expr slice_bytes = 0;  // of one thread; 0: nothing is in scope thread
  Expr bytes = 0;        // in all
};
WorkspaceLayout workspace_layout(const Kernel& kernel, int threads = 1);

// What a constant parameter of a kernel holds: bytes, or what `pack` (one input, one output) makes
// of them.
struct Constant {
  Blob source;
  std::shared_ptr<const Kernel> pack;
};
// The bytes of a constant parameter, by the interpreter. Errors: a pack kernel that fails.
Expected<std::vector<std::byte>> contents(const Constant& constant);
// Another piece at the end of a device's weights (1 + index), behind which everything moves up. The
// result: its offset in the device's stretch.
uint64_t add_weights(Program& program, int device, WeightPiece piece);
// The piece that an operand of a call on the device begins at; null: none.
const WeightPiece* find_weights(const Program& program, int device, const Operand& operand);

// By kernel: whether the device runs it; the processor (0) is there for what nobody calls.
std::vector<bool> kernels_of(const Program& program, int device);

std::string print(const Program& program);

}  // namespace tw
