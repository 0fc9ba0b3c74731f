#include "ir/kernel/work.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {
namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& n) { found |= n->kind == ExprKind::load; });
  return found;
}

// Integer operators count where they work on elements; index arithmetic reads no memory.
bool counts(const Expr& e) { return is_float(e->args[0].type()) || reads_memory(e); }

int64_t flops(const Expr& e) {
  if (!e.defined()) return 0;
  switch (e->kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::var:
    case ExprKind::load: return 0;  // indices are free
    case ExprKind::cast: return flops(e->args[0]);
    case ExprKind::unary: return flops(e->args[0]) + (counts(e) ? flops_of(e->unary) : 0);
    case ExprKind::binary:
      return flops(e->args[0]) + flops(e->args[1]) + (counts(e) ? flops_of(e->binary) : 0);
    case ExprKind::select:
      return flops(e->args[0]) + std::max(flops(e->args[1]), flops(e->args[2]));
  }
  TW_UNREACHABLE("an expression");
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel)
      : kernel_(kernel), touched_(kernel.buffers.size(), Expr(0)) {
    for (const std::string& symbol : kernel.symbols) ranges_[symbol] = {1, Expr()};
  }

  Work run() {
    walk(kernel_.body, 1);
    Work work;
    work.flops = simplify(flops_, ranges_);
    for (size_t i = 0; i < touched_.size(); ++i) {
      const Buffer& buffer = kernel_.buffers[i];
      if (buffer.role == BufferRole::temp) continue;
      Expr whole(1);
      for (const Expr& extent : buffer.shape) whole = whole * extent;
      Expr bytes = min(whole, touched_[i]) * dtype_bytes(buffer.dtype);
      Expr& sum = buffer.role == BufferRole::constant ? work.weight_bytes : work.tensor_bytes;
      sum = simplify(sum + bytes, ranges_);
    }
    return work;
  }

  Operations run_operations() {
    walk(kernel_.body, 1);
    return {simplify(operations_, ranges_), std::move(parallel_)};
  }

 private:
  // points: how often the statement runs. An extent that depends on a loop around counts with the
  // middle of that loop.
  void walk(const Stmt& s, const Expr& points) {
    switch (s->kind) {
      case StmtKind::sequence:
      case StmtKind::block:
      case StmtKind::roles:
        for (const Stmt& child : s->body) walk(child, points);
        return;
      case StmtKind::if_then:
        walk(s->body[0], of_symbols(s->condition)
                             ? simplify(points * select(s->condition, Expr(1), Expr(0)), ranges_)
                             : points);
        return;
      case StmtKind::loop: {
        Expr extent = s->extent;
        for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
          extent = substitute(extent, (*loop)->var, floor_div((*loop)->extent, 2));
        const Expr before = operations_;
        loops_.push_back(s.get());
        walk(s->body[0], simplify(points * extent, ranges_));
        loops_.pop_back();
        if (s->loop_kind == LoopKind::parallel)
          parallel_.push_back({s, loops_, simplify(operations_ - before, ranges_)});
        return;
      }
      case StmtKind::store: return count(*s, points);
      case StmtKind::signal:
      case StmtKind::wait:
      case StmtKind::barrier:
      case StmtKind::prefetch: return;
    }
  }

  // The same in all of a run.
  bool of_symbols(const Expr& e) const {
    bool all = true;
    visit(e, [&](const Expr& n) {
      all &= n->kind != ExprKind::load && (n->kind != ExprKind::var || ranges_.contains(n->name));
    });
    return all;
  }

  void count(const StmtNode& s, const Expr& points) {
    const bool real = s.combiner != Combiner::none;
    const int64_t arithmetic = flops(s.value) + flops(s.where) + (real ? 1 : 0);
    flops_ = flops_ + points * arithmetic;
    touch(s.buffer, points);
    int64_t elements = 1;
    auto note = [&](const Expr& e) {
      if (e.defined())
        visit(e, [&](const Expr& n) {
          if (n->kind == ExprKind::load) touch(n->buffer, points), ++elements;
        });
    };
    note(s.value);
    note(s.where);
    note(s.init);
    for (const Expr& index : s.indices) note(index);
    operations_ = operations_ + points * (arithmetic + elements);
  }

  void touch(BufferId id, const Expr& points) {
    Expr& sum = touched_[static_cast<size_t>(id.index)];
    sum = simplify(sum + points, ranges_);
  }

  const Kernel& kernel_;
  Ranges ranges_;
  Expr flops_ = 0, operations_ = 0;
  std::vector<ParallelOperations> parallel_;
  std::vector<Expr> touched_;  // by buffer: elements read or written
  std::vector<const StmtNode*> loops_;
};
}  // namespace

Work count_work(const Kernel& kernel) { return Counter(kernel).run(); }
Operations count_operations(const Kernel& kernel) { return Counter(kernel).run_operations(); }

DType multiplied_type(const Kernel& kernel) {
  const bool doubles = std::ranges::any_of(
      kernel.buffers, [](const Buffer& buffer) { return buffer.dtype == DType::f64; });
  DType type = doubles ? DType::f64 : DType::f32;
  const auto narrow = [&](const Expr& e) {
    if (e->kind == ExprKind::load && dtype_bytes(e.type()) < dtype_bytes(type)) type = e.type();
  };
  visit(kernel.body, [&](const Stmt& block) {
    if (block->kind != StmtKind::block || block->names.empty()) return;
    visit(block, [&](const Stmt& s) {
      if (s->kind == StmtKind::store) visit(s->value, narrow);
    });
  });
  return type;
}

int64_t flops_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round:
    case UnaryOp::trunc:
    case UnaryOp::tf32:
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not: return 1;
    case UnaryOp::sign: return 2;
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt: return 4;
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1: return 24;
    case UnaryOp::log:
    case UnaryOp::log1p:
    case UnaryOp::sigmoid:
    case UnaryOp::tanh:
    case UnaryOp::sin:
    case UnaryOp::cos: return 32;
    case UnaryOp::erf:
    case UnaryOp::normal_cdf:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan: return 40;
  }
  TW_UNREACHABLE("a unary operator");
}

int64_t flops_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shl:
    case BinaryOp::shr: return 1;
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::mod: return 4;
    case BinaryOp::pow: return 80;
  }
  TW_UNREACHABLE("a binary operator");
}
}  // namespace tw
