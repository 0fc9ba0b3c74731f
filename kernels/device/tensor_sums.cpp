// Extracts sums of products, and maxima over windows, from a kernel's stages acc and y.
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
    for (const StoreRef& store : stores_of(kernel_.body)) {
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
    out_.acc = with_loops(*out_.acc), out_.y = with_loops(*out_.y);
    if (!operands() || !outputs() || !inputs()) return std::nullopt;
    return out_;
  }

 private:
  std::optional<int64_t> extent(const std::string& loop) const {
    const LoopRef found = find_loop(kernel_.body, loop);
    return found ? as_const(found->extent) : std::nullopt;
  }
  std::vector<std::string> loops_of(const stmt::Store& store, AxisRole role) const {
    std::vector<std::string> loops;
    for (const Stmt& s : path_to(kernel_.body, store.label))
      if (const auto* loop = as<stmt::Loop>(s); loop && loop->role == role)
        loops.push_back(loop->var);
    return loops;
  }
  // Restores the loops of axes with one iteration, for which kernels have index 0.
  StoreRef with_loops(stmt::Store store) const {
    const std::vector<std::string> loops = loops_of(store, AxisRole::spatial);
    for (size_t d = 0; loops.size() == store.indices.size() && d < loops.size(); ++d)
      if (is_const(store.indices[d], 0) && extent(loops[d]) == 1) store.indices[d] = var(loops[d]);
    return StoreRef(make_store(std::move(store)));
  }
  static const Expr& unwidened(const Expr& e) {
    const auto* widened = as<expr::Cast>(e);
    return widened && e->type == DType::i32 ? widened->a : e;
  }
  // The expression as a load of i8, or null
  static const expr::Load* load_of_i8(const Expr& e) {
    return e->type == DType::i8 ? as<expr::Load>(e) : nullptr;
  }

  bool operands() {
    const Expr& value = out_.acc->value;
    if (out_.acc->combiner == Combiner::max) {
      out_.problem.weights = false;
      const expr::Load* input = load_of_i8(value);
      if (!input) return false;
      out_.left = *input;
      return true;
    }
    const auto* product = as_binary(value, BinaryOp::mul);
    if (out_.acc->combiner != Combiner::add || value->type != DType::i32 || !product) return false;
    return factors(product->a, product->b) || factors(product->b, product->a);
  }

  // The left factor must be the input, maybe minus its zero point, and the right one the weights.
  bool factors(Expr left, const Expr& right) {
    const expr::Load* weights = load_of_i8(unwidened(right));
    if (!weights || kernel_.buffer(weights->buffer).role != BufferRole::constant) return false;
    out_.zero_point = 0;
    if (const auto* less = as_binary(left, BinaryOp::sub); less && as_const(less->b))
      out_.zero_point = *as_const(less->b), left = less->a;
    else if (const auto* more = as_binary(left, BinaryOp::add); more && as_const(more->b))
      out_.zero_point = -*as_const(more->b), left = more->a;
    const expr::Load* input = load_of_i8(unwidened(left));
    if (!input || kernel_.buffer(input->buffer).role == BufferRole::constant) return false;
    out_.left = *input, out_.right = *weights;
    return out_.zero_point >= -128 && out_.zero_point <= 127;
  }

  // The output must be acc[n, block, spatial ..., lane] or acc[row, channel]. y has the same axes.
  bool outputs() {
    std::vector<std::string> loops;
    for (const Expr& index : out_.acc->indices) {
      const auto* loop = as<expr::Var>(index);
      if (!loop) return false;
      loops.push_back(loop->name);
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
      const auto* loop = as<expr::Var>(out_.y->indices[d]);
      const std::optional<int64_t> n = loop ? extent(loop->name) : std::nullopt;
      if (!n) return false;
      if (out_.blocked ? d >= 2 && d + 1 < rank : d == 0) out_.problem.out.push_back(*n);
      if (d == 1) out_.problem.blocks = out_.blocked ? *n : *n / lanes_;
      if (d == 1 && !out_.blocked && *n % lanes_ != 0) return false;
    }
    return true;
  }

  // The input must be x[n, depth, window ..., lane] or x[row, depth].
  bool inputs() {
    const std::vector<Expr>& at = out_.left.indices;
    if (at.size() != out_.acc->indices.size()) return false;
    const auto is_loop = [&](const Expr& e, const std::string& name) {
      return is_var(e, name) || (is_const(e, 0) && extent(name) == 1);
    };
    if (out_.blocked && !is_loop(at[0], as<expr::Var>(out_.acc->indices[0])->name)) return false;
    if (!out_.problem.weights) {
      if (!out_.blocked || !is_loop(at[1], out_.channel) || !is_loop(at.back(), out_.lane))
        return false;
    } else {
      const std::vector<std::string> reduce = loops_of(*out_.acc, AxisRole::reduce);
      if (const auto* depth = as<expr::Var>(at[1])) out_.depth = depth->name;
      else if (out_.blocked && is_const(at[1], 0) && !reduce.empty() && extent(reduce[0]) == 1)
        out_.depth = reduce[0];
      else return false;
      const std::optional<int64_t> n = extent(out_.depth);
      if (!n) return false;
      out_.problem.depth = out_.blocked ? *n : *n / lanes_;
      if (!out_.blocked && *n % lanes_ != 0) return false;
      if (out_.blocked) {
        const auto* lane = as<expr::Var>(at.back());
        if (!lane || extent(lane->name) != lanes_) return false;
        out_.depth_lane = lane->name;
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
      const auto* loop = as<expr::Var>(e);
      if (!loop || loop->name == spatial) return;
      other |= !tap.empty() && tap != loop->name;
      tap = loop->name;
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

  // True: the kernel is in the form, and the stage that copies the input steps over elements of the
  // last spatial axis.
  bool copy_skips() const {
    for (const StoreRef& store : stores_of(kernel_.body)) {
      if (store->buffer != out_.left.buffer) continue;
      const size_t dim = store->indices.size() - (out_.blocked ? 2 : 1);
      const auto* loop = as<expr::Var>(store->indices[dim]);
      bool skips = false;
      visit(store->value, [&](const Expr& e) {
        const auto* load = as<expr::Load>(e);
        if (load && loop) skips |= factor_of(load->indices[dim], loop->name) > 1;
      });
      return skips;
    }
    return false;
  }

  // True: all reduce loops are taps or channels.
  bool reductions() const {
    for (const Stmt& s : path_to(kernel_.body, out_.acc->label)) {
      if (is<stmt::If>(s)) return false;
      const auto* loop = as<stmt::Loop>(s);
      if (!loop || loop->role != AxisRole::reduce) continue;
      if (loop->var != out_.depth && loop->var != out_.depth_lane &&
          std::ranges::find(out_.taps, loop->var) == out_.taps.end())
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
