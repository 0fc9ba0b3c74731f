// The compiled model before code generation: distinct scheduled kernels, the calls in order, the
// place of every buffer, and the recipe for each weight of the artifact. program/ builds it;
// backends/ and packager/ read it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/blob.h"
#include "ir/kernel/work.h"
#include "ir/schedule/constant_stages.h"
#include "ir/simplify.h"

namespace tw {

struct TensorSpec {  // an input or output of the model
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> dims;  // numbers, symbols or expressions of symbols
};

// The model's inputs and outputs lie in the processor's memory. A region's may lie in a device's.
enum class Place : uint8_t { input, output, arena, weights, growable };
struct Operand {
  Place place = Place::arena;
  int index = 0;    // number of the input, output or growable buffer
  Expr offset = 0;  // bytes; arena, growable: may use symbols; weights: constant
};

// A bool that must hold for the sizes of the inputs. It is false where a number in it needs more
// than 64 bits. `what` words it for people.
struct SizeCondition {
  Expr holds;
  std::string what;
};

// A step between calls where sizes depend on data. Steps in front of the same call run in this
// order.
struct SizeStep {
  enum class Kind : uint8_t {
    // Reads data symbol `symbol` as a `dtype` at `at`. It must lie in [0, bound] and equal
    // `equals`, where these are defined.
    read,
    check,  // requires that `equals` (a bool) holds
    // Requires that all `bytes` bytes of `dtype` at `at` lie in [least, bound], and that bools are
    // true
    within,
    // Gives `at`, a growable buffer or an output of unknown size, `bytes` bytes. A growable buffer
    // loses its contents.
    grow,
  };
  Kind kind = Kind::read;
  size_t before = 0;  // number of the call that follows the step; the call count: it comes last
  Operand at{};
  int symbol = 0;
  DType dtype = DType::i64;
  Expr least{}, bound{}, equals{}, bytes{};
  std::string what{};  // for messages: "element 0 of 'count'", "words (Gather): index"
};

// Regions that a call runs: a choice between two, or a loop over one. Offsets count in the call's
// workspace, which begins with the regions' arena. Each place has a workspace in its memory.
struct RegionCall {
  std::vector<int> regions;  // indices into Program::regions: then and else, or a loop's body
  bool loop = false, conditional = false;
  Expr trip;              // most iterations; undefined: no limit
  std::string iteration;  // symbol of the iteration's number in the body
  int carried = 0, sliced = 0;
  // Bytes of each carried value before the first iteration, then of a row of each sliced value and
  // of each stacked result
  std::vector<Expr> bytes;
  std::vector<Expr> growth;      // bytes by which each carried value grows in an iteration
  std::vector<Expr> spare;       // offset of each carried value's second memory
  Expr condition = 0;            // offset of the next iteration's condition
  std::vector<Expr> workspaces;  // offset of each device's workspace in its arena
};

// A call of a runtime library function instead of a kernel. The views describe its inputs and
// outputs, all dense and row-major.
struct ExternCall {
  struct View {
    int argument = 0;  // index into the call's arguments; -1: an absent optional input
    DType dtype = DType::f32;
    std::vector<Expr> dims;  // in the model's symbols
    int device = 0;          // regions: the device whose memory holds it; otherwise 0
  };
  std::string function;  // the C function is tw_op_<function>
  std::string what;      // for messages: "words (Scatter)"
  std::vector<View> inputs, outputs;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  int in_place = -1;  // the input whose memory the first output may take
  // Regions that run in place of the function. Their operator defines the meaning of inputs and
  // outputs.
  std::shared_ptr<const RegionCall> region = nullptr;
};

struct KernelCall {
  int kernel = 0;  // index into Program::kernels; -1: a call of `function`
  // One for each parameter buffer of the kernel (inputs, constants, outputs), in buffer order
  std::vector<Operand> arguments;
  // Values of the kernel's symbols, in its order, in terms of the model's symbols
  std::vector<Expr> symbols;
  // Offset of the kernel's global temps, which workspace_layout() lays out. It counts in the arena
  // or in a growable buffer.
  Expr workspace = 0;
  int workspace_buffer = -1;  // number of that growable buffer; -1: the arena
  std::string name;           // names of the computed nodes, for people
  // The place that runs the call: 0 the processor, otherwise 1 + index into Target::devices. Arena,
  // weights and workspace are those of that place.
  int device = 0;
  // A value other than `device` marks a transfer: the kernel is a copy, and arguments[0] lies in
  // the place `from`.
  int from = 0;
  bool moves = false;  // true: a copy within the device's memory, done by its driver
  std::shared_ptr<const ExternCall> function = nullptr;
  bool is_transfer() const { return from != device; }
  bool is_launch() const { return device != 0 && !is_transfer() && !moves; }
};

// A device's memory, and the code that its back end made of the kernels called there
struct DeviceLaunch {
  std::string function;
  std::vector<int> buffers;  // the function's arguments, as indices into the call's; -1: workspace
  std::vector<int> symbols;  // indices of the kernel's symbols, passed after the buffers
  // Work-items of the launch and of a group, in the kernel's symbols
  std::array<Expr, 3> global = {1, 1, 1}, local = {1, 1, 1};
};
struct DeviceProgram {
  Expr arena_bytes = 0;
  uint64_t weights_offset = 0, weight_bytes = 0;  // the device's stretch of the artifact's weights
  std::string code;
  // Launches of each kernel of the program. Each one starts when the one before it has ended.
  std::vector<std::vector<DeviceLaunch>> launches;
};

// One part of the artifact's weights: a copy of `source`, or the output of a pack kernel over it
struct WeightPiece {
  uint64_t offset = 0, size = 0;  // the offset is 64-byte aligned
  Blob source;
  // null: a plain copy. Otherwise the kernel has one input buffer (source) and one output buffer
  // (the piece).
  std::shared_ptr<const Kernel> pack;
  std::string name;
};

// Calls that replace the others when the symbols have these values
struct FastPath {
  std::map<std::string, int64_t> sizes;
  size_t begin = 0, end = 0;  // range in Program::calls
};

struct Program {
  std::string name;
  std::vector<std::string> symbols;
  SymbolLimitsOf limits;  // for the symbols that have limits
  std::vector<TensorSpec> inputs, outputs;
  std::vector<Kernel> kernels;            // scheduled; includes the regions' kernels
  std::vector<Work> work;                 // work of each kernel as lowered, in its symbols
  std::vector<KernelCall> calls;          // the calls for any sizes, then the fast paths' calls
  std::vector<FastPath> fast_paths;       // the last path that fits a run is taken
  Expr arena_bytes = 0;                   // peak, 64-byte aligned, in terms of symbols
  std::vector<std::string> data_symbols;  // symbols whose values are made while the model runs
  std::vector<SizeStep> steps;            // sorted by `before`
  // Checked before a run, and before the symbols give the arena its size
  std::vector<SizeCondition> conditions;
  // Conditions and steps that the model's operators require, for people: "y (Squeeze) needs n == 1"
  std::vector<std::string> needs;
  int growable_buffers = 0;  // memory that grows, for values without a bound before the run
  // Most arena bytes for any symbols within their limits; undefined: they have no limits
  Expr max_arena_bytes{};
  uint64_t weight_bytes = 0;           // bytes of all weights, the devices' included
  std::vector<DeviceProgram> devices;  // in the order of Target::devices
  std::vector<WeightPiece> weights;
  // Sum of all intermediates and workspaces, with each symbol as 1, for the report
  uint64_t naive_arena_bytes = 0;
  // The regions of all calls, inner ones first. They have no kernels, weights or regions of their
  // own.
  std::vector<Program> regions;
};

// Offsets of a kernel's global and thread temps in its workspace, 64-byte aligned. The global temps
// come first. `threads` slices follow, each with the thread temps for one chunk of a parallel loop.
struct WorkspaceLayout {
  // By buffer index; undefined: the buffer is not in the workspace. Thread temps: the offset in
  // slice 0.
  std::vector<Expr> offsets;
  Expr slice_bytes = 0;  // bytes of one thread's slice; 0: no buffer has scope thread
  Expr bytes = 0;
};
WorkspaceLayout workspace_layout(const Kernel& kernel, int threads = 1);

// Contents of a kernel's constant parameter: `source`, or the output of `pack` (one input, one
// output) over it
struct Constant {
  Blob source;
  std::shared_ptr<const Kernel> pack;
};
// The constants of a scheduled kernel, by parameter, from those of its lowered kernel
std::vector<Constant> constants_of(const RunKernel& run, const std::vector<Constant>& lowered);
// The bytes of a constant parameter, computed by the interpreter. Errors: the pack kernel fails.
Expected<std::vector<std::byte>> contents(const Constant& constant);
// Adds a piece at the end of a device's weights (1 + index); all that follows moves up. Returns its
// offset in the device's stretch.
uint64_t add_weights(Program& program, int device, WeightPiece piece);
// The piece at which an operand of a call on the device begins, or null
const WeightPiece* find_weights(const Program& program, int device, const Operand& operand);

// For each kernel, whether the device runs it. Kernels that nobody calls belong to the processor
// (0).
std::vector<bool> kernels_of(const Program& program, int device);

std::string print(const Program& program);

}  // namespace tw
