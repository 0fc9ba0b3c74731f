#include "passes/build_program.h"

#include <map>

#include "passes/in_place.h"
#include "passes/storage.h"

namespace tw {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const std::vector<Group>& groups, const Target& target, const ProgramOptions& options)
      : graph_(graph), groups_(groups), target_(target), options_(options), storage_(graph, groups) {
    for (const std::string& symbol : graph.symbols) symbols_[symbol] = Range{Expr(1), Expr()};
  }

  Expected<Program> run() {
    describe();
    place_outputs();
    for (const Group& group : groups_) {
      if (!storage_.in_place(group)) {
        if (Error error = add_group(group)) return error;
        continue;
      }
      for (const PartCopy& copy : storage_.copies(group)) {
        Operand to = shifted(tensor(copy.into, next_call()), copy.offset);
        if (Error error = add_copy(copy.part, to, graph_.value(copy.part).name)) return error;
      }
    }
    if (Error error = copy_outputs()) return error;
    plan();
    return std::move(program_);
  }

 private:
  int next_call() const { return static_cast<int>(program_.calls.size()); }

  static Operand shifted(Operand operand, const Expr& bytes) {
    operand.offset = simplify_dim(operand.offset + bytes);
    return operand;
  }

  void describe() {
    program_.name = graph_.name;
    program_.symbols = graph_.symbols;
    for (ValueId v : graph_.inputs()) program_.inputs.push_back({graph_.value(v).name, graph_.value(v).type.dtype, graph_.value(v).type.shape});
    for (const Graph::Output& o : graph_.outputs())
      program_.outputs.push_back({o.name, graph_.value(o.value).type.dtype, graph_.value(o.value).type.shape});
  }

  // A value that some kernel makes is made in the output's buffer itself, for the first output that shows it.
  void place_outputs() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) place_[graph_.inputs()[i].index] = {Place::input, static_cast<int>(i), Expr(0)};
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      auto [v, offset] = storage_.of(graph_.outputs()[i].value);
      bool made = graph_.def(v) != nullptr && is_const(offset, 0) && same_bytes(v, graph_.outputs()[i].value);
      if (made && !place_.count(v.index)) place_[v.index] = {Place::output, static_cast<int>(i), Expr(0)};
      else copies_.push_back(i);
    }
  }

  bool same_bytes(ValueId a, ValueId b) const {
    return is_const(simplify_dim(byte_count(graph_.value(a).type) - byte_count(graph_.value(b).type)), 0);
  }

  Error add_group(const Group& group) {
    TW_ASSIGN(LoweredGroup lowered, lower_group(graph_, group, target_));
    std::string hash = kernel_hash(lowered.kernel);
    auto found = kernels_.find(hash);
    if (found == kernels_.end()) {
      TW_ASSIGN(const int index, add_kernel(lowered, lowered.kernel.name));
      found = kernels_.emplace(hash, index).first;
    }
    std::string name;
    for (NodeId id : group.nodes) {
      const Node& node = graph_.node(id);
      const std::string& own = node.name.empty() ? graph_.value(node.output).name : node.name;
      if (name.find(own) == std::string::npos) name += (name.empty() ? "" : "+") + own;
    }
    return add_call(found->second, lowered.kernel.symbols, lowered.arguments, name);
  }

  Expected<int> add_kernel(const LoweredGroup& lowered, const std::string& stem) {
    TW_ASSIGN(Kernel scheduled, options_.schedule(lowered));
    const int index = static_cast<int>(program_.kernels.size());
    scheduled.name = stem + "_" + std::to_string(index);
    if (options_.on_kernel) options_.on_kernel(lowered.kernel, scheduled);
    program_.kernels.push_back(std::move(scheduled));
    program_.work.push_back(count_work(lowered.kernel));
    return index;
  }

  Error add_call(int kernel, const std::vector<std::string>& symbols, const std::vector<LoweredArgument>& arguments, const std::string& name) {
    KernelCall call;
    call.kernel = kernel;
    call.name = name;
    int index = next_call();
    for (const std::string& symbol : symbols) call.symbols.push_back(var(symbol));
    const Kernel& k = program_.kernels[static_cast<size_t>(kernel)];
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].constant) call.arguments.push_back(weight(arguments[i], k.buffers[i]));
      else call.arguments.push_back(tensor(arguments[i].value, index));
    }
    WorkspaceLayout layout = workspace_layout(k, target_.cores);
    if (!is_const(layout.bytes, 0)) {
      workspace_.emplace_back(program_.calls.size(), lifetimes_.size());
      lifetimes_.push_back({layout.bytes, index, index});
    }
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  // Arena operands carry the lifetime's number as their index until the plan is made.
  Operand tensor(ValueId v, int call) {
    auto [r, offset] = storage_.of(v);
    if (graph_.is_constant(r)) return weight({r, true, *graph_.value(r).constant, nullptr}, {graph_.value(r).name, graph_.value(r).type.dtype, graph_.value(r).type.shape, BufferRole::constant, "global"});
    auto found = place_.find(r.index);
    if (found == place_.end()) {
      lifetimes_.push_back({byte_count(graph_.value(r).type), call, call});
      found = place_.emplace(r.index, Operand{Place::arena, static_cast<int>(lifetimes_.size()) - 1, Expr(0)}).first;
      naive_.push_back(lifetimes_.back().bytes);
    }
    if (found->second.place == Place::arena) lifetimes_[static_cast<size_t>(found->second.index)].last = call;
    return shifted(found->second, offset);
  }

  Operand weight(const LoweredArgument& argument, const Buffer& buffer) {
    std::string key = std::to_string(reinterpret_cast<uintptr_t>(argument.blob.bytes.data())) + ":" + (argument.pack ? print(*argument.pack) : "");
    auto found = weights_.find(key);
    if (found == weights_.end()) {
      int64_t size = dtype_bytes(buffer.dtype);
      for (const Expr& extent : buffer.shape) size *= as_const(simplify(extent)).value_or(1);
      WeightPiece piece;
      piece.offset = program_.weight_bytes;
      piece.size = static_cast<uint64_t>(size);
      piece.source = argument.blob;
      piece.pack = argument.pack;
      piece.name = argument.value.valid() ? graph_.value(argument.value).name : buffer.name;
      program_.weight_bytes = (piece.offset + piece.size + 63) / 64 * 64;
      found = weights_.emplace(key, program_.weights.size()).first;
      program_.weights.push_back(std::move(piece));
    }
    return {Place::weights, 0, Expr(static_cast<int64_t>(program_.weights[found->second].offset))};
  }

  // Outputs that are inputs, constants, parts of a value or a second name of another output are copied.
  Error copy_outputs() {
    for (size_t i : copies_)
      if (Error error = add_copy(graph_.outputs()[i].value, {Place::output, static_cast<int>(i), Expr(0)}, graph_.outputs()[i].name)) return error;
    return Error::success();
  }

  Error add_copy(ValueId from, const Operand& to, const std::string& name) {
    const TensorType& type = graph_.value(from).type;
    Expr count = simplify(element_count(physical_shape(type)), symbols_);
    Kernel copy;
    copy.name = "copy";
    copy.symbols = graph_.symbols;
    copy.buffers = {{"x", type.dtype, {count}, BufferRole::input, "global"}, {"y", type.dtype, {count}, BufferRole::output, "global"}};
    StmtNode store{};
    store.label = "y";
    store.buffer = BufferId{1};
    store.indices = {var("i0")};
    store.value = load(BufferId{0}, type.dtype, {var("i0")});
    copy.body = make_loop("i0", count, make_store(std::move(store)));
    std::string hash = kernel_hash(copy);
    auto found = kernels_.find(hash);
    if (found == kernels_.end()) {
      TW_ASSIGN(const int index, add_kernel({copy, KernelFamily::elementwise, {}}, "copy"));
      found = kernels_.emplace(hash, index).first;
    }
    KernelCall call;
    call.kernel = found->second;
    call.name = name;
    for (const std::string& symbol : copy.symbols) call.symbols.push_back(var(symbol));
    call.arguments = {tensor(from, next_call()), to};
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  void plan() {
    join_in_place(program_, lifetimes_);
    MemoryPlan memory = plan_memory(lifetimes_, symbols_);
    program_.arena_bytes = memory.bytes;
    if (options_.on_plan) options_.on_plan(memory, lifetimes_);
    for (KernelCall& call : program_.calls)
      for (Operand& operand : call.arguments)
        if (operand.place == Place::arena) operand = {Place::arena, 0, simplify_dim(memory.offsets[static_cast<size_t>(operand.index)] + operand.offset)};
    for (auto [call, lifetime] : workspace_) program_.calls[call].workspace = memory.offsets[lifetime];
    for (const Expr& bytes : naive_) program_.naive_arena_bytes += static_cast<uint64_t>(eval_int(bytes, [](std::string_view) { return int64_t{1}; }));
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const Target& target_;
  const ProgramOptions& options_;
  Program program_;
  Ranges symbols_;
  Storage storage_;
  std::map<int32_t, Operand> place_;
  std::map<std::string, int> kernels_;          // unscheduled hash -> index
  std::map<std::string, size_t> weights_;
  std::vector<size_t> copies_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::pair<size_t, size_t>> workspace_;   // call, lifetime
  std::vector<Expr> naive_;
};

}  // namespace

Expected<Program> build_program(const Graph& graph, const std::vector<Group>& groups, const Target& target, const ProgramOptions& options) {
  return ProgramBuilder(graph, groups, target, options).run();
}

}  // namespace tw
