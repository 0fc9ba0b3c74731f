// Statements: loops of every kind run in order, stores combine, errors stop the run.
#include "ir/kernel/interpreter.h"

#include "ir/kernel/machine.h"

namespace tw {
namespace {

using namespace interpreter;

constexpr int64_t kMaxElements = int64_t{1} << 32;  // of one buffer

struct Node {                   // one statement
  StmtKind kind = StmtKind::block;
  std::vector<Node> body{};
  int slot = 0;                 // loop: of the variable; store: the buffer
  Code expr{};                  // loop: extent; if: condition; store: value
  std::string label{};
  std::vector<Code> indices{};
  Combiner combiner = Combiner::none;
  bool is_float = false, has_where = false, has_init = false;
  Code where{}, init{};
  std::vector<int> reduce_slots{};  // all 0: store init first
};

class Runner {
 public:
  explicit Runner(const Kernel& kernel) : kernel_(kernel) {}

  Error run(std::span<KernelArgument> arguments, const std::map<std::string, int64_t>& symbols) {
    TW_TRY(verify(kernel_));
    for (const std::string& name : kernel_.symbols) {
      auto value = symbols.find(name);
      if (value == symbols.end() || value->second < 1)
        return make_error(DiagCode::invalid_argument, "kernel @{0}: symbol '{1}' needs a value of at least 1", kernel_.name, name);
      machine_.slots[static_cast<size_t>(machine_.add_slot(name))] = value->second;
    }
    TW_TRY(make_memories(arguments));
    Node root = compile(kernel_.body);
    execute(root);
    if (machine_.problem.empty()) return Error::success();
    std::string stage = stage_.empty() ? "" : "stage '" + stage_ + "': ";
    return make_error(DiagCode::mismatch, "kernel @{0}: {1}{2}", kernel_.name, stage, machine_.problem);
  }

 private:
  Error make_memories(std::span<KernelArgument> arguments) {
    size_t next = 0;
    for (const Buffer& b : kernel_.buffers) {
      Memory m{.name = b.name, .dtype = b.dtype, .shape = {}, .own = {}, .written = {}};
      int64_t count = 1;
      for (const Expr& extent : b.shape) {
        m.shape.push_back(machine_.eval_int(machine_.compile(extent)));
        if (m.shape.back() < 0 || (m.shape.back() > 0 && count > kMaxElements / m.shape.back()))
          return make_error(DiagCode::limit, "kernel @{0}: buffer '{1}' is too large or of a negative size", kernel_.name, b.name);
        count *= m.shape.back();
      }
      size_t bytes = static_cast<size_t>(count * dtype_bytes(b.dtype));
      if (b.role == BufferRole::temp) {
        m.own.resize(bytes);
      } else {
        if (next >= arguments.size() || arguments[next].bytes.size() != bytes)
          return make_error(DiagCode::invalid_argument, "kernel @{0}: argument '{1}' needs {2} bytes, not {3}", kernel_.name, b.name, bytes,
                            next < arguments.size() ? std::to_string(arguments[next].bytes.size()) : "none");
        m.data = arguments[next++].bytes.data();
      }
      if (b.role == BufferRole::temp || b.role == BufferRole::output) m.written.assign(static_cast<size_t>(count), 0);
      machine_.memories.push_back(std::move(m));
    }
    for (Memory& m : machine_.memories)
      if (!m.data) m.data = m.own.data();
    if (next == arguments.size()) return Error::success();
    return make_error(DiagCode::invalid_argument, "kernel @{0} takes {1} arguments, not {2}", kernel_.name, next, arguments.size());
  }

  Node compile(const Stmt& s) {
    Node n{.kind = s->kind};
    if (s->kind == StmtKind::loop) {
      n.expr = machine_.compile(s->extent);
      n.slot = machine_.add_slot(s->var);
      if (s->role == AxisRole::reduce) reduce_slots_.push_back(n.slot);
    } else if (s->kind == StmtKind::if_then) {
      n.expr = machine_.compile(s->condition);
    } else if (s->kind == StmtKind::store) {
      compile_store(n, *s);
    }
    for (const Stmt& child : s->body) n.body.push_back(compile(child));
    if (s->kind == StmtKind::loop && s->role == AxisRole::reduce) reduce_slots_.pop_back();
    return n;
  }

  void compile_store(Node& n, const StmtNode& s) {
    n.label = s.label;
    n.slot = s.buffer.index;
    n.is_float = is_float(kernel_.buffer(s.buffer).dtype);
    n.expr = machine_.compile(s.value);
    n.combiner = s.combiner;
    for (const Expr& index : s.indices) n.indices.push_back(machine_.compile(index));
    if ((n.has_where = s.where.defined())) n.where = machine_.compile(s.where);
    if ((n.has_init = s.init.defined())) n.init = machine_.compile(s.init);
    n.reduce_slots = reduce_slots_;
  }

  void execute(const Node& n) {
    if (!machine_.problem.empty()) return;
    switch (n.kind) {
      case StmtKind::block:
        for (const Node& child : n.body) execute(child);
        return;
      case StmtKind::loop: {
        int64_t extent = machine_.eval_int(n.expr);
        for (int64_t i = 0; i < extent && machine_.problem.empty(); ++i) {
          machine_.slots[static_cast<size_t>(n.slot)] = i;
          execute(n.body[0]);
        }
        return;
      }
      case StmtKind::if_then:
        if (machine_.eval_int(n.expr)) execute(n.body[0]);
        return;
      case StmtKind::store:
        store(n);
        if (!machine_.problem.empty()) stage_ = n.label;
        return;
    }
    TW_UNREACHABLE("bad statement");
  }

  bool starts_reduction(const Node& n) const {
    for (int slot : n.reduce_slots)
      if (machine_.slots[static_cast<size_t>(slot)] != 0) return false;
    return true;
  }

  void store(const Node& n) {
    bool init = n.has_init && starts_reduction(n), update = !n.has_where || machine_.eval_int(n.where);
    if ((!init && !update) || !machine_.problem.empty()) return;
    int64_t element = machine_.locate(n.slot, n.indices, "store");
    if (element < 0) return;
    if (init) put(n, element, n.init, Combiner::none);
    if (update) put(n, element, n.expr, n.combiner);
  }

  // Nothing is written once something went wrong.
  void put(const Node& n, int64_t element, const Code& value, Combiner combiner) {
    if (combiner != Combiner::none) machine_.check_written(n.slot, element);
    if (n.is_float) {
      double v = machine_.eval_float(value);
      if (combiner != Combiner::none) v = combine(combiner, machine_.read_float(n.slot, element), v);
      if (machine_.problem.empty()) machine_.write_float(n.slot, element, v);
    } else {
      int64_t v = machine_.eval_int(value);
      if (combiner != Combiner::none) v = combine(combiner, value.type, machine_.read_int(n.slot, element), v);
      if (machine_.problem.empty()) machine_.write_int(n.slot, element, v);
    }
  }

  const Kernel& kernel_;
  Machine machine_;
  std::vector<int> reduce_slots_;
  std::string stage_;
};

}  // namespace

Error interpret(const Kernel& kernel, std::span<KernelArgument> arguments, const std::map<std::string, int64_t>& symbols) {
  return Runner(kernel).run(arguments, symbols);
}

}  // namespace tw
