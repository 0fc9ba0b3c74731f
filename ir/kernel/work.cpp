#include "ir/kernel/work.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {
namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& n) { found |= is<expr::Load>(n); });
  return found;
}

// True: the operand is a float or reads memory. Index arithmetic does neither.
bool counts(const Expr& e, const Expr& operand) {
  return is_float(operand.type()) || reads_memory(e);
}

// True: all that it reads is constant, so that a compiler can compute it.
bool reads_constants(const Kernel& kernel, const Expr& e) {
  bool some = false, all = true;
  visit(e, [&](const Expr& n) {
    const auto* read = as<expr::Load>(n);
    if (!read) return;
    some = true;
    all &= kernel.buffer(read->buffer).role == BufferRole::constant;
  });
  return some && all;
}

int64_t flops(const Kernel& kernel, const Expr& e) {
  if (!e.defined() || reads_constants(kernel, e)) return 0;
  const auto flops_in = [&](const Expr& part) { return flops(kernel, part); };
  return match(
      e,
      [&](const expr::Unary& unary) {
        return flops_in(unary.a) + (counts(e, unary.a) ? flops_of(unary.op) : 0);
      },
      [&](const expr::Binary& binary) {
        // A zero point is a part of the numbers.
        const bool offset = binary.op == BinaryOp::sub && is_int(e.type()) && as_const(binary.b);
        return flops_in(binary.a) + flops_in(binary.b) +
               (counts(e, binary.a) && !offset ? flops_of(binary.op) : 0);
      },
      [&](const expr::Select& select) {
        return flops_in(select.condition) +
               std::max(flops_in(select.then), flops_in(select.otherwise));
      },
      [&](const expr::Cast& cast) { return flops_in(cast.a); },
      [](const expr::Load&) { return int64_t{0}; },  // indices are free
      [](const expr::Int&) { return int64_t{0}; }, [](const expr::Float&) { return int64_t{0}; },
      [](const expr::Var&) { return int64_t{0}; });
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel)
      : kernel_(kernel), touched_(kernel.buffers.size(), Expr(0)) {
    for (const std::string& symbol : kernel.symbols) ranges_[symbol] = symbol_range(symbol);
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
  // points: how often the statement runs. An extent that depends on an outer loop counts with the
  // middle of that loop.
  void walk(const Stmt& s, const Expr& points) {
    if (const auto* store = as<stmt::Store>(s)) return count(*store, points);
    if (is<stmt::Loop>(s)) return walk_loop(LoopRef(s), points);
    if (const auto* guard = as<stmt::If>(s)) {
      const Expr& condition = guard->condition;
      return walk(guard->body, of_symbols(condition)
                                   ? simplify(points * select(condition, Expr(1), Expr(0)), ranges_)
                                   : points);
    }
    for (const Stmt& child : children(s)) walk(child, points);
  }

  void walk_loop(const LoopRef& loop, const Expr& points) {
    Expr extent = loop->extent;
    for (auto outer = loops_.rbegin(); outer != loops_.rend(); ++outer)
      extent = substitute(extent, (*outer)->var, floor_div((*outer)->extent, 2));
    const Expr before = operations_;
    loops_.push_back(&*loop);
    walk(loop->body, simplify(points * extent, ranges_));
    loops_.pop_back();
    if (loop->kind == LoopKind::parallel)
      parallel_.push_back({loop, loops_, simplify(operations_ - before, ranges_)});
  }

  // True: the value stays the same throughout a run.
  bool of_symbols(const Expr& e) const {
    bool all = true;
    visit(e, [&](const Expr& n) {
      const auto* variable = as<expr::Var>(n);
      all &= !is<expr::Load>(n) && (!variable || ranges_.contains(variable->name));
    });
    return all;
  }

  void count(const stmt::Store& s, const Expr& points) {
    const bool real = s.combiner != Combiner::none;
    const int64_t arithmetic = flops(kernel_, s.value) + flops(kernel_, s.where) + (real ? 1 : 0);
    flops_ = flops_ + points * arithmetic;
    touch(s.buffer, points);
    int64_t elements = 1;
    auto note = [&](const Expr& e) {
      if (e.defined())
        visit(e, [&](const Expr& n) {
          if (const auto* load = as<expr::Load>(n)) touch(load->buffer, points), ++elements;
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
  std::vector<Expr> touched_;  // elements read or written, by buffer
  std::vector<const stmt::Loop*> loops_;
};
}  // namespace

Work count_work(const Kernel& kernel) { return Counter(kernel).run(); }
Operations count_operations(const Kernel& kernel) { return Counter(kernel).run_operations(); }

DType multiplied_type(const Kernel& kernel) {
  const bool doubles = std::ranges::any_of(
      kernel.buffers, [](const Buffer& buffer) { return buffer.dtype == DType::f64; });
  DType type = doubles ? DType::f64 : DType::f32;
  const auto narrow = [&](const Expr& e) {
    if (is<expr::Load>(e) && dtype_bytes(e.type()) < dtype_bytes(type)) type = e.type();
  };
  visit(kernel.body, [&](const Stmt& s) {
    const auto* block = as<stmt::Block>(s);
    if (!block || block->intrinsic.empty()) return;
    for (const StoreRef& store : stores_of(block->body)) visit(store->value, narrow);
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
