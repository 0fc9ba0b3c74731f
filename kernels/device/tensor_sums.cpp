// Reads sums of products, and maxima over windows, out of a kernel's stages acc and y.
#include <algorithm>

#include "ir/simplify.h"
#include "kernels/device/tensor_form.h"

namespace tw {
namespace {

int64_t factor_of(const Expr& e, const std::string& loop) {
  const Expr step = simplify(substitute(e, loop, var(loop) + Expr(1)) - e);
  return as_const(step).value_or(0);
}

class SumReader {
 public:
  SumReader(const Kernel& kernel, int64_t lanes) : kernel_(kernel), lanes_(lanes) {}

  std::optional<TensorSums> run() {
    for (const Stmt& store : stores_of(kernel_.body)) {
      if (store->combiner != Combiner::none) {
        if (out_.acc) return std::nullopt;
        out_.acc = store;
      } else if (kernel_.buffer(store->buffer).role == BufferRole::output) {
        out_.y = store;
      }
    }
    if (!out_.acc || !out_.y || kernel_.buffer(out_.acc->buffer).role != BufferRole::temp ||
        !out_.acc->init.defined())
      return std::nullopt;
    out_.acc = with_loops(out_.acc), out_.y = with_loops(out_.y);
    if (!operands() || !outputs() || !inputs()) return std::nullopt;
    return out_;
  }

 private:
  std::optional<int64_t> extent(const std::string& loop) const {
    const Stmt found = find_loop(kernel_.body, loop);
    return found ? as_const(found->extent) : std::nullopt;
  }
  std::vector<std::string> loops_of(const Stmt& store, AxisRole role) const {
    std::vector<std::string> loops;
    for (const Stmt& s : path_to(kernel_.body, store->label))
      if (s->kind == StmtKind::loop && s->role == role) loops.push_back(s->var);
    return loops;
  }
  // Axes of one iteration are index 0 in kernels: their loops again.
  Stmt with_loops(const Stmt& s) const {
    const std::vector<std::string> loops = loops_of(s, AxisRole::spatial);
    StmtNode store = *s;
    for (size_t d = 0; loops.size() == store.indices.size() && d < loops.size(); ++d)
      if (is_const(store.indices[d], 0) && extent(loops[d]) == 1) store.indices[d] = var(loops[d]);
    return make_store(std::move(store));
  }
  static const Expr& unwidened(const Expr& e) {
    return e->kind == ExprKind::cast && e->type == DType::i32 ? e->args[0] : e;
  }

  bool operands() {
    const Expr& value = out_.acc->value;
    if (out_.acc->combiner == Combiner::max) {
      out_.problem.weights = false;
      out_.left = value;
      return value->kind == ExprKind::load && value->type == DType::i8;
    }
    if (out_.acc->combiner != Combiner::add || value->type != DType::i32 ||
        value->kind != ExprKind::binary || value->binary != BinaryOp::mul)
      return false;
    for (size_t i = 0; i < 2; ++i) {
      Expr left = value->args[i];
      const Expr& right = unwidened(value->args[1 - i]);
      if (right->kind != ExprKind::load || right->type != DType::i8 ||
          kernel_.buffer(right->buffer).role != BufferRole::constant)
        continue;
      out_.zero_point = 0;
      if (left->kind == ExprKind::binary && left->binary == BinaryOp::sub &&
          as_const(left->args[1]))
        out_.zero_point = *as_const(left->args[1]), left = left->args[0];
      else if (left->kind == ExprKind::binary && left->binary == BinaryOp::add &&
               as_const(left->args[1]))
        out_.zero_point = -*as_const(left->args[1]), left = left->args[0];
      out_.left = unwidened(left), out_.right = right;
      return out_.left->kind == ExprKind::load && out_.left->type == DType::i8 &&
             kernel_.buffer(out_.left->buffer).role != BufferRole::constant &&
             out_.zero_point >= -128 && out_.zero_point <= 127;
    }
    return false;
  }

  // acc[n, block, spatial ..., lane], or acc[row, channel]; y has the same axes.
  bool outputs() {
    std::vector<std::string> loops;
    for (const Expr& index : out_.acc->indices) {
      if (index->kind != ExprKind::var) return false;
      loops.push_back(index->name);
    }
    const size_t rank = loops.size();
    out_.blocked = rank >= 4 && extent(loops.back()) == lanes_;
    if (!out_.blocked && rank != 2) return false;
    out_.spatial = out_.blocked ? std::vector<std::string>(loops.begin() + 2, loops.end() - 1)
                                : std::vector<std::string>{loops[0]};
    out_.channel = loops[1];
    if (out_.blocked) out_.lane = loops.back();
    if (out_.y->indices.size() != rank) return false;
    for (size_t d = 0; d < rank; ++d) {
      const Expr& index = out_.y->indices[d];
      const std::optional<int64_t> n = index->kind == ExprKind::var ? extent(index->name)
                                                                    : std::nullopt;
      if (!n) return false;
      if (out_.blocked ? d >= 2 && d + 1 < rank : d == 0) out_.problem.out.push_back(*n);
      if (d == 1) out_.problem.blocks = out_.blocked ? *n : *n / lanes_;
      if (d == 1 && !out_.blocked && *n % lanes_ != 0) return false;
    }
    return true;
  }

  // x[n, depth, window ..., lane], or x[row, depth].
  bool inputs() {
    const std::vector<Expr>& at = out_.left->args;
    if (at.size() != out_.acc->indices.size()) return false;
    const auto is_loop = [&](const Expr& e, const std::string& name) {
      return (e->kind == ExprKind::var && e->name == name) || (is_const(e, 0) && extent(name) == 1);
    };
    if (out_.blocked && !is_loop(at[0], out_.acc->indices[0]->name)) return false;
    if (!out_.problem.weights) {
      if (!out_.blocked || !is_loop(at[1], out_.channel) || !is_loop(at.back(), out_.lane))
        return false;
    } else {
      const std::vector<std::string> reduce = loops_of(out_.acc, AxisRole::reduce);
      if (at[1]->kind == ExprKind::var) out_.depth = at[1]->name;
      else if (out_.blocked && is_const(at[1], 0) && !reduce.empty() && extent(reduce[0]) == 1)
        out_.depth = reduce[0];
      else return false;
      const std::optional<int64_t> n = extent(out_.depth);
      if (!n) return false;
      out_.problem.depth = out_.blocked ? *n : *n / lanes_;
      if (!out_.blocked && *n % lanes_ != 0) return false;
      if (out_.blocked) {
        if (at.back()->kind != ExprKind::var || extent(at.back()->name) != lanes_) return false;
        out_.depth_lane = at.back()->name;
      }
    }
    for (size_t d = 0; d < out_.spatial.size(); ++d)
      if (!window(at[out_.blocked ? d + 2 : 0], out_.spatial[d])) return false;
    return reductions();
  }

  bool window(const Expr& at, const std::string& spatial) {
    std::string tap;
    bool other = false;
    visit(at, [&](const Expr& e) {
      if (e->kind != ExprKind::var || e->name == spatial) return;
      other |= !tap.empty() && tap != e->name;
      tap = e->name;
    });
    const int64_t stride = extent(spatial) == 1 ? 1 : factor_of(at, spatial),
                  dilation = tap.empty() ? 1 : factor_of(at, tap);
    const std::optional<int64_t> taps = tap.empty() ? 1 : extent(tap);
    if (other || stride < 1 || dilation < 1 || !taps) return false;
    out_.taps.push_back(tap);
    out_.problem.strides.push_back(*taps == 1 ? 1 : stride);
    out_.problem.skips = *taps == 1 && (stride > 1 || copy_skips());
    out_.problem.dilations.push_back(dilation);
    out_.problem.kernel.push_back(*taps);
    return true;
  }

  // In the form: the stage that copies the input does so with a step along the last spatial axis.
  bool copy_skips() const {
    for (const Stmt& store : stores_of(kernel_.body)) {
      if (store->buffer != out_.left->buffer) continue;
      const size_t dim = store->indices.size() - (out_.blocked ? 2 : 1);
      bool skips = false;
      visit(store->value, [&](const Expr& e) {
        if (e->kind == ExprKind::load && store->indices[dim]->kind == ExprKind::var)
          skips |= factor_of(e->args[dim], store->indices[dim]->name) > 1;
      });
      return skips;
    }
    return false;
  }

  // All reduce loops are taps or channels.
  bool reductions() const {
    for (const Stmt& s : path_to(kernel_.body, out_.acc->label)) {
      if (s->kind == StmtKind::if_then) return false;
      if (s->kind != StmtKind::loop || s->role != AxisRole::reduce) continue;
      if (s->var != out_.depth && s->var != out_.depth_lane &&
          std::ranges::find(out_.taps, s->var) == out_.taps.end())
        return false;
    }
    return true;
  }

  const Kernel& kernel_;
  int64_t lanes_;
  TensorSums out_;
};

}  // namespace

std::optional<TensorSums> tensor_sums(const Kernel& kernel, int64_t lanes) {
  return SumReader(kernel, lanes).run();
}

}  // namespace tw
