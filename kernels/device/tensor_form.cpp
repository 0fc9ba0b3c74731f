#include "kernels/device/tensor_form.h"

#include <algorithm>

#include "ir/simplify.h"

namespace tw {
namespace {

Ranges ranges_of(const Kernel& kernel) {
  Ranges ranges;
  visit(kernel.body, [&](const Stmt& s) {
    if (const auto* loop = as<stmt::Loop>(s))
      ranges[loop->var] = {Expr(0), simplify(loop->extent - Expr(1))};
  });
  return ranges;
}

std::vector<Expr> conjuncts(const Expr& e) {
  if (!e.defined()) return {};
  const auto* both = as_binary(e, BinaryOp::logical_and);
  if (!both) return {e};
  std::vector<Expr> out = conjuncts(both->a), rest = conjuncts(both->b);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

class Former {
 public:
  Former(GroupKernel& group, const TensorSums& sums, int64_t lanes)
      : group_(group),
        kernel_(group.kernel),
        sums_(sums),
        lanes_(lanes),
        ranges_(ranges_of(group.kernel)) {}

  void run() {
    if (!find_windows() || !where_is_inside()) return;
    std::optional<Kernel> weights, correction;
    Expr channel;
    if (sums_.problem.weights) {
      channel = channel_of_weights();
      if (!channel.defined() || !repack(weights)) return;
      if (sums_.zero_point != 0) correction = corrections();
    }
    Kernel out = kernel_;
    if (weights) {
      Buffer& w = out.buffer(sums_.right.buffer);
      w.shape = weights->buffers[1].shape;
      group_.arguments[static_cast<size_t>(sums_.right.buffer.index)].pack =
          std::make_shared<const Kernel>(std::move(*weights));
    }
    const BufferId xp = pad_input(out);
    Stmt acc = sum_nest(out, xp, channel);
    Stmt y = find_loop(kernel_.body, outermost(sums_.y->label));
    if (correction) y = corrected(out, y, channel, *correction, acc);
    out.body = make_sequence({pad_, acc, y});
    group_.kernel = std::move(out);
  }

 private:
  int64_t extent(const std::string& loop) const {
    return *as_const(find_loop(kernel_.body, loop)->extent);
  }
  std::string outermost(const std::string& label) const {
    return get<stmt::Loop>(path_to(kernel_.body, label).front()).var;
  }

  // Finds for each spatial axis the rows in whole tiles, the window's first element in the input,
  // the elements that a step skips, and those that the copy holds.
  bool find_windows() {
    for (size_t d = 0; d < sums_.spatial.size(); ++d) {
      const Expr at = sums_.left.indices[sums_.blocked ? d + 2 : 0];
      Expr first = substitute(at, sums_.spatial[d], Expr(0));
      if (!sums_.taps[d].empty()) first = substitute(first, sums_.taps[d], Expr(0));
      const std::optional<int64_t> begin = as_const(simplify(first));
      if (!begin) return false;
      const TensorProblem& p = sums_.problem;
      rows_.push_back(most_rows(p.out[d]));
      begin_.push_back(*begin);
      step_.push_back(p.kernel[d] > 1 || p.out[d] == 1
                          ? 1
                          : *as_const(simplify(substitute(at, sums_.spatial[d], Expr(1)) - first)));
      extent_.push_back((rows_[d] - 1) * p.strides[d] + (p.kernel[d] - 1) * p.dilations[d] + 1);
    }
    return true;
  }

  // True: the `where` accepts exactly the points inside the input, tested axis by axis.
  bool where_is_inside() const {
    std::vector<Expr> atoms = conjuncts(sums_.acc->where);
    for (size_t d = 0; d < sums_.spatial.size(); ++d) {
      const size_t dim = sums_.blocked ? d + 2 : 0;
      std::vector<Expr> own;
      std::erase_if(atoms, [&](const Expr& atom) {
        bool here = true;
        visit(atom, [&](const Expr& e) {
          const auto* loop = as<expr::Var>(e);
          here &= !loop || loop->name == sums_.spatial[d] || loop->name == sums_.taps[d];
        });
        if (here) own.push_back(atom);
        return here;
      });
      const std::optional<int64_t> in = as_const(kernel_.buffer(sums_.left.buffer).shape[dim]);
      if (!in) return false;
      for (int64_t i = 0; i < sums_.problem.out[d]; ++i)
        for (int64_t k = 0; k < sums_.problem.kernel[d]; ++k) {
          const auto value = [&](std::string_view name) {
            return name == sums_.spatial[d] ? i : k;
          };
          const int64_t at = eval_int(sums_.left.indices[dim], value);
          const bool counts = std::ranges::all_of(
              own, [&](const Expr& atom) { return eval_int(atom, value) != 0; });
          if (counts != (at >= 0 && at < *in)) return false;
        }
    }
    return atoms.empty();
  }

  // The output channel whose weights are read, in loops of acc. The weights are w[panel, ...,
  // depth, lane of the panel].
  Expr channel_of_weights() const {
    const Shape& shape = kernel_.buffer(sums_.right.buffer).shape;
    const std::optional<int64_t> panel = as_const(shape.back()),
                                 inner = as_const(shape[shape.size() - 2]);
    if (shape.size() < 3 || !panel || *panel % lanes_ != 0 || !inner || *inner % lanes_ != 0 ||
        !as_const(shape[0]))
      return {};
    const std::vector<Expr>& at = sums_.right.indices;
    const Expr channel = simplify(at[0] * Expr(*panel) + at.back(), ranges_),
               wanted = sums_.blocked ? var(sums_.channel) * Expr(lanes_) + var(sums_.lane)
                                      : var(sums_.channel);
    return is_const(simplify(channel - wanted, ranges_), 0) ? wanted : Expr();
  }

  // Changes the pack kernel to write [o blocks][...][i blocks][lanes o][lanes i] instead of
  // [panels][...][depth][panel].
  bool repack(std::optional<Kernel>& out) const {
    const auto& argument = group_.arguments[static_cast<size_t>(sums_.right.buffer.index)];
    if (!argument.constant || !argument.pack || argument.pack->buffers.size() != 2) return false;
    const std::vector<StoreRef> stores = stores_of(argument.pack->body);
    if (stores.size() != 1 || stores[0]->combiner != Combiner::none) return false;
    out = *argument.pack;
    out->buffers[1].shape = blocks_of(out->buffers[1].shape);
    const Ranges ranges = ranges_of(*argument.pack);
    out->body = rewrite(out->body, [&](const Stmt& s) -> Stmt {
      const auto* store = as<stmt::Store>(s);
      if (!store) return nullptr;
      const Expr panel = argument.pack->buffers[1].shape.back();
      const std::vector<Expr>& at = store->indices;
      stmt::Store blocked = *store;
      blocked.indices = blocked_index(at, at[0] * panel + at.back(), ranges);
      return make_store(std::move(blocked));
    });
    return true;
  }

  Shape blocks_of(const Shape& shape) const {
    const int64_t panels = *as_const(shape[0]), panel = *as_const(shape.back()),
                  inner = *as_const(shape[shape.size() - 2]);
    Shape out(shape.begin(), shape.end() - 2);
    out[0] = Expr(panels * (panel / lanes_));
    if (!sums_.blocked) out.push_back(Expr(inner / lanes_));
    out.push_back(Expr(lanes_)), out.push_back(Expr(lanes_));
    return out;
  }

  std::vector<Expr> blocked_index(const std::vector<Expr>& at, const Expr& channel,
                                  const Ranges& ranges) const {
    std::vector<Expr> out(at.begin(), at.end() - 2);
    const Expr& inner = at[at.size() - 2];
    out[0] = floor_div(channel, Expr(lanes_));
    if (!sums_.blocked) out.push_back(floor_div(inner, Expr(lanes_)));
    out.push_back(floor_mod(channel, Expr(lanes_)));
    out.push_back(sums_.blocked ? inner : floor_mod(inner, Expr(lanes_)));
    for (Expr& e : out) e = simplify(e, ranges);
    return out;
  }

  // The kernel of corr[o] = -zero_point * sum of w[o]
  Kernel corrections() const {
    const Kernel& pack = *group_.arguments[static_cast<size_t>(sums_.right.buffer.index)].pack;
    const stmt::Store& from = *stores_of(pack.body)[0];
    const Shape& shape = pack.buffers[1].shape;
    Kernel out = pack;
    out.name = "corr";
    out.buffers[1].name = "corr";
    out.buffers[1].dtype = DType::i32;
    out.buffers[1].shape = {simplify(shape[0] * shape.back())};
    stmt::Store store = from;
    store.label = "corr";
    store.indices = {simplify(from.indices[0] * shape.back() + from.indices.back())};
    store.value = cast(DType::i32, from.value) * int_imm(-sums_.zero_point, DType::i32);
    store.combiner = Combiner::add;
    store.init = int_imm(0, DType::i32);
    Stmt nest = make_store(std::move(store));
    const std::vector<Stmt> path = path_to(pack.body, from.label);
    for (const bool spatial : {false, true})
      for (size_t l = path.size(); l-- > 0;) {
        const auto* loop = as<stmt::Loop>(path[l]);
        if (!loop || spatial != (uses_var(from.indices[0], loop->var) ||
                                 uses_var(from.indices.back(), loop->var)))
          continue;
        nest = make_loop(loop->var, loop->extent, nest, LoopKind::serial,
                         spatial ? AxisRole::spatial : AxisRole::reduce);
      }
    out.body = nest;
    return out;
  }

  // Adds stage pad. xp holds the windows of whole tiles, and beyond the input the zero point (for
  // maxima the least value).
  BufferId pad_input(Kernel& out) {
    const Buffer& x = kernel_.buffer(sums_.left.buffer);
    Buffer xp{"xp", DType::i8, x.shape, BufferRole::temp, "global"};
    std::vector<Expr> to, from;
    Expr inside;
    Ranges ranges;
    for (size_t dim = 0; dim < x.shape.size(); ++dim) {
      const std::string loop = "xp" + std::to_string(dim);
      const bool spatial = sums_.blocked ? dim >= 2 && dim + 1 < x.shape.size() : dim == 0;
      const size_t d = sums_.blocked ? dim - 2 : 0;
      if (spatial) xp.shape[dim] = Expr(extent_[d]);
      ranges[loop] = {Expr(0), simplify(xp.shape[dim] - Expr(1))};
      to.push_back(var(loop));
      from.push_back(simplify(spatial ? var(loop) * Expr(step_[d]) + Expr(begin_[d]) : var(loop)));
      if (spatial)
        inside = logical_and(inside,
                             logical_and(le(Expr(0), from.back()), lt(from.back(), x.shape[dim])));
    }
    out.buffers.push_back(xp);
    const BufferId id{static_cast<int32_t>(out.buffers.size()) - 1};
    inside = simplify(inside, ranges);
    const Expr element = load(sums_.left.buffer, DType::i8, from);
    const Expr value = is_const(inside, 1)
                           ? element
                           : select(inside, element,
                                    int_imm(sums_.problem.weights ? sums_.zero_point : -128,
                                            DType::i8));
    pad_ = make_store({.label = "pad", .buffer = id, .indices = to, .value = value});
    for (size_t dim = x.shape.size(); dim-- > 0;)
      pad_ = make_loop("xp" + std::to_string(dim), xp.shape[dim], pad_);
    return id;
  }

  Stmt sum_nest(Kernel& out, BufferId xp, const Expr& channel) {
    Buffer& acc = out.buffer(sums_.acc->buffer);
    for (size_t d = 0; d < rows_.size(); ++d) acc.shape[sums_.blocked ? d + 2 : 0] = Expr(rows_[d]);
    stmt::Store store = *sums_.acc;
    store.where = Expr();
    std::vector<Expr> at = sums_.left.indices;
    for (size_t d = 0; d < rows_.size(); ++d) {
      Expr& e = at[sums_.blocked ? d + 2 : 0];
      e = simplify(floor_div(e - Expr(begin_[d]), Expr(step_[d])), ranges_);
    }
    store.value = load(xp, DType::i8, at);
    if (sums_.problem.weights) {
      if (!sums_.blocked) acc.shape[1] = Expr(sums_.problem.blocks * lanes_);
      const Expr weight = load(sums_.right.buffer, DType::i8,
                               blocked_index(sums_.right.indices, channel, ranges_));
      store.value = cast(DType::i32, store.value) * cast(DType::i32, weight);
    }
    Stmt nest = make_store(std::move(store));
    const std::vector<Stmt> path = path_to(kernel_.body, sums_.acc->label);
    for (size_t l = path.size(); l-- > 0;) {
      const auto* around = as<stmt::Loop>(path[l]);
      if (!around) continue;
      stmt::Loop loop = *around;
      const auto axis = std::ranges::find(sums_.spatial, loop.var);
      if (axis != sums_.spatial.end())
        loop.extent = Expr(rows_[static_cast<size_t>(axis - sums_.spatial.begin())]);
      if (!sums_.blocked && loop.var == sums_.channel)
        loop.extent = Expr(sums_.problem.blocks * lanes_);
      loop.body = nest;
      nest = make_stmt(std::move(loop));
    }
    return nest;
  }

  // Adds a parameter corr behind the weights, and adds it to every sum that y reads.
  Stmt corrected(Kernel& out, Stmt y, const Expr& channel, Kernel& correction, Stmt& acc) {
    const auto at = static_cast<int32_t>(sums_.right.buffer.index) + 1;
    const Shape shape = correction.buffers[1].shape;
    // Rewritten before the other buffers move up
    const BufferId sums = sums_.acc->buffer, corr{at},
                   added{static_cast<int32_t>(out.buffers.size())};
    y = rewrite_exprs(y, [&](const Expr& whole) {
      return rewrite(whole, [&](const Expr& e) -> Expr {
        const auto* read = as<expr::Load>(e);
        if (!read || read->buffer != sums) return {};
        Expr index = channel;
        for (size_t d = 0; d < read->indices.size(); ++d)
          index = substitute(index, as<expr::Var>(sums_.acc->indices[d])->name, read->indices[d]);
        return e + load(added, DType::i32, {index});
      });
    });
    const auto moved = [&](BufferId id) {
      return id == added ? corr : id.index >= at ? BufferId{id.index + 1} : id;
    };
    const auto shift = [&](const Stmt& s) {
      const Stmt stores = rewrite(s, [&](const Stmt& n) -> Stmt {
        const auto* store = as<stmt::Store>(n);
        if (!store) return nullptr;
        stmt::Store shifted = *store;
        shifted.buffer = moved(store->buffer);
        return make_store(std::move(shifted));
      });
      return rewrite_exprs(stores, [&](const Expr& whole) {
        return rewrite(whole, [&](const Expr& e) {
          const auto* read = as<expr::Load>(e);
          return read ? load(moved(read->buffer), e->type, read->indices) : Expr();
        });
      });
    };
    out.buffers.insert(out.buffers.begin() + at,
                       {"corr", DType::i32, shape, BufferRole::constant, "global"});
    LoweredArgument argument = group_.arguments[static_cast<size_t>(at) - 1];
    argument.pack = std::make_shared<const Kernel>(std::move(correction));
    group_.arguments.insert(group_.arguments.begin() + at, std::move(argument));
    pad_ = shift(pad_), acc = shift(acc);
    return shift(y);
  }

  GroupKernel& group_;
  const Kernel kernel_;
  const TensorSums& sums_;
  int64_t lanes_;
  Ranges ranges_;
  std::vector<int64_t> rows_, begin_, step_, extent_;
  Stmt pad_;
};

}  // namespace

void to_tensor_form(GroupKernel& group, const Target& target) {
  for (const bool weights : {true, false}) {
    const std::optional<TensorInstruction> instruction = tensor_instruction(target, weights);
    if (!instruction || !group.kernel.symbols.empty()) continue;
    const std::optional<TensorSums> sums = tensor_sums(group.kernel, instruction->lanes);
    if (!sums || sums->problem.weights != weights) continue;
    if (tensor_tile(sums->problem, *instruction, target))
      return Former(group, *sums, instruction->lanes).run();
  }
}

}  // namespace tw
