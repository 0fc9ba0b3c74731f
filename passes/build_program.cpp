#include "passes/build_program.h"

#include <map>

#include "passes/plan_memory.h"

namespace tw {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const std::vector<Group>& groups, const Target& target, const ProgramOptions& options)
      : graph_(graph), groups_(groups), target_(target), options_(options) {
    for (const std::string& symbol : graph.symbols) symbols_[symbol] = Range{Expr(1), Expr()};
  }

  Expected<Program> run() {
    describe();
    for (const Group& group : groups_) {
      if (is_view(graph_, group)) {
        const Node& node = graph_.node(group.nodes.front());
        alias_[node.output.index] = node.inputs[0];
      }
    }
    place_outputs();
    for (const Group& group : groups_) {
      if (is_view(graph_, group)) continue;
      if (Error error = add_group(group)) return error;
    }
    if (Error error = copy_outputs()) return error;
    plan();
    return std::move(program_);
  }

 private:
  ValueId root(ValueId v) const {
    for (auto it = alias_.find(v.index); it != alias_.end(); it = alias_.find(v.index)) v = it->second;
    return v;
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
      ValueId v = root(graph_.outputs()[i].value);
      bool made = graph_.def(v) != nullptr;
      if (made && !place_.count(v.index)) place_[v.index] = {Place::output, static_cast<int>(i), Expr(0)};
      else copies_.push_back(i);
    }
  }

  Error add_group(const Group& group) {
    TW_ASSIGN(LoweredGroup lowered, lower_group(graph_, group, target_));
    std::string hash = kernel_hash(lowered.kernel);
    auto found = kernels_.find(hash);
    if (found == kernels_.end()) {
      TW_ASSIGN(const int index, add_kernel(lowered, family_name(lowered.family)));
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
    int index = static_cast<int>(program_.calls.size());
    for (const std::string& symbol : symbols) call.symbols.push_back(var(symbol));
    const Kernel& k = program_.kernels[static_cast<size_t>(kernel)];
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].constant) call.arguments.push_back(weight(arguments[i], k.buffers[i]));
      else call.arguments.push_back(tensor(arguments[i].value, index));
    }
    WorkspaceLayout layout = workspace_layout(k);
    if (!is_const(layout.bytes, 0)) {
      workspace_.emplace_back(program_.calls.size(), lifetimes_.size());
      lifetimes_.push_back({layout.bytes, index, index});
    }
    program_.calls.push_back(std::move(call));
    return Error::success();
  }

  // Arena operands carry the lifetime's number as their index until the plan is made.
  Operand tensor(ValueId v, int call) {
    ValueId r = root(v);
    if (graph_.is_constant(r)) return weight({r, true, *graph_.value(r).constant, nullptr}, {graph_.value(r).name, graph_.value(r).type.dtype, graph_.value(r).type.shape, BufferRole::constant, "global"});
    auto found = place_.find(r.index);
    if (found == place_.end()) {
      const TensorType& t = graph_.value(r).type;
      Expr bytes(dtype_bytes(t.dtype));
      for (const Expr& extent : physical_shape(t)) bytes = bytes * extent;
      lifetimes_.push_back({simplify(bytes, symbols_), call, call});
      found = place_.emplace(r.index, Operand{Place::arena, static_cast<int>(lifetimes_.size()) - 1, Expr(0)}).first;
      naive_.push_back(lifetimes_.back().bytes);
    }
    if (found->second.place == Place::arena) lifetimes_[static_cast<size_t>(found->second.index)].last = call;
    return found->second;
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

  // Outputs that are inputs, constants or a second name of another output are copied.
  Error copy_outputs() {
    for (size_t i : copies_) {
      const Value& value = graph_.value(graph_.outputs()[i].value);
      Kernel copy;
      copy.name = "copy";
      copy.symbols = graph_.symbols;
      Expr count = simplify(element_count(value.type.shape), symbols_);
      copy.buffers = {{"x", value.type.dtype, {count}, BufferRole::input, "global"}, {"y", value.type.dtype, {count}, BufferRole::output, "global"}};
      StmtNode store{};
      store.label = "y";
      store.buffer = BufferId{1};
      store.indices = {var("i0")};
      store.value = load(BufferId{0}, value.type.dtype, {var("i0")});
      copy.body = make_loop("i0", count, make_store(std::move(store)));
      LoweredGroup lowered{copy, KernelFamily::elementwise, {}};
      KernelCall call;
      TW_ASSIGN(call.kernel, add_kernel(lowered, "copy"));
      call.name = graph_.outputs()[i].name;
      for (const std::string& symbol : copy.symbols) call.symbols.push_back(var(symbol));
      call.arguments = {tensor(graph_.outputs()[i].value, static_cast<int>(program_.calls.size())), {Place::output, static_cast<int>(i), Expr(0)}};
      program_.calls.push_back(std::move(call));
    }
    return Error::success();
  }

  void plan() {
    MemoryPlan memory = plan_memory(lifetimes_, symbols_);
    program_.arena_bytes = memory.bytes;
    for (KernelCall& call : program_.calls)
      for (Operand& operand : call.arguments)
        if (operand.place == Place::arena) operand = {Place::arena, 0, memory.offsets[static_cast<size_t>(operand.index)]};
    for (auto [call, lifetime] : workspace_) program_.calls[call].workspace = memory.offsets[lifetime];
    for (const Expr& bytes : naive_) program_.naive_arena_bytes += static_cast<uint64_t>(eval_int(bytes, [](std::string_view) { return int64_t{1}; }));
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const Target& target_;
  const ProgramOptions& options_;
  Program program_;
  Ranges symbols_;
  std::map<int32_t, ValueId> alias_;
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
