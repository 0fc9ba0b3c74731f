#include "ir/schedule/product_form.h"

#include <algorithm>

#include "ir/schedule/intrinsic.h"
#include "ir/simplify.h"

namespace tw {
namespace {

const expr::Load* load_in(const Expr& e) {
  const auto* converted = as<expr::Cast>(e);
  return as<expr::Load>(converted ? converted->a : e);
}

// Elements between one iteration of the loop and the next; nullopt: the distance varies.
std::optional<int64_t> stride_of(const Buffer& buffer, const std::vector<Expr>& indices,
                                 const std::string& loop, const Ranges& ranges) {
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) flat = flat * buffer.shape[d] + indices[d];
  const Expr step = simplify(substitute(flat, loop, var(loop) + Expr(1)) - flat, ranges);
  return as_const(step);
}

}  // namespace

int64_t ProductForm::count(const std::vector<ProductAxis>& axes) {
  int64_t n = 1;
  for (const ProductAxis& axis : axes) n *= axis.extent;
  return n;
}

bool ProductForm::dense() const {
  if (rows.size() > 1 || columns.size() > 1 || depth.size() > 2) return false;
  const int64_t side_by_side = neighbours();
  const bool depth_inside = depth.empty() || (depth.back().left == 1 && depth.back().right == 1);
  const bool steps = depth.size() < 2 || (depth[0].left == side_by_side &&
                                          depth[0].right == side_by_side * column_count());
  return depth_inside && steps &&
         (rows.empty() || (rows[0].left == depth_count() && rows[0].sum == column_count())) &&
         (columns.empty() || (columns[0].right == side_by_side && columns[0].sum == 1));
}

std::optional<ProductForm> product_form(const Intrinsic& intrinsic, const ProductTest& types_fit) {
  Expected<std::shared_ptr<const Kernel>> parsed = semantics_of(intrinsic);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return std::nullopt;
  }
  const Kernel* kernel = parsed->get();
  std::vector<LoopRef> loops;
  Stmt s = kernel->body;
  Ranges ranges;
  for (; is<stmt::Loop>(s); s = loops.back()->body) {
    const LoopRef& loop = loops.emplace_back(s);
    if (!as_const(loop->extent)) return std::nullopt;
    ranges[loop->var] = {Expr(0), loop->extent - Expr(1)};
  }
  const auto* store = as<stmt::Store>(s);
  if (intrinsic.emit.threads > 1 || !store || store->combiner != Combiner::add) return std::nullopt;
  const auto* product = as_binary(store->value, BinaryOp::mul);
  if (!product) return std::nullopt;
  const expr::Load *left = load_in(product->a), *right = load_in(product->b);
  if (!left || !right) return std::nullopt;
  const auto innermost = std::find_if(loops.rbegin(), loops.rend(), [](const LoopRef& loop) {
    return loop->role == AxisRole::spatial;
  });
  const auto has = [](const expr::Load* load, const std::string& name) {
    return std::ranges::any_of(load->indices, [&](const Expr& e) { return uses_var(e, name); });
  };
  if (innermost != loops.rend() && has(left, (*innermost)->var)) std::swap(left, right);
  ProductForm form;
  form.intrinsic = &intrinsic;
  form.left_type = kernel->buffer(left->buffer).dtype;
  form.right_type = kernel->buffer(right->buffer).dtype;
  form.sum_type = kernel->buffer(store->buffer).dtype;
  form.in_tiles = intrinsic.scopes.size() == 3 &&
                  std::ranges::all_of(intrinsic.scopes,
                                      [](const std::string& scope) { return scope == kTileScope; });
  for (const EmitCalls::Call& call : intrinsic.emit.calls)
    for (const EmitCalls::Operand& operand : call.operands)
      form.sums_in_memory |= operand.kind == EmitCalls::OperandKind::address &&
                             operand.name == kernel->buffer(store->buffer).name;
  if (!types_fit(form)) return std::nullopt;
  for (const LoopRef& loop : loops) {
    const auto stride = [&](BufferId buffer, const std::vector<Expr>& at) {
      return stride_of(kernel->buffer(buffer), at, loop->var, ranges);
    };
    const auto l = stride(left->buffer, left->indices), r = stride(right->buffer, right->indices),
               c = stride(store->buffer, store->indices);
    if (!l || !r || !c) return std::nullopt;
    const bool reduces = loop->role == AxisRole::reduce;
    if (!reduces && *l != 0 && *r != 0) return std::nullopt;
    (reduces   ? form.depth
     : *r != 0 ? form.columns
               : form.rows)
        .push_back({*as_const(loop->extent), *l, *r, *c});
  }
  return form;
}

std::optional<ProductForm> best_product(const Target& target, const ProductTest& types_fit,
                                        const ProductTest& fits) {
  std::optional<ProductForm> best;
  for (const Intrinsic& intrinsic : target.intrinsics) {
    std::optional<ProductForm> form = product_form(intrinsic, types_fit);
    if (form && fits(*form) && (!best || form->products_a_cycle() > best->products_a_cycle()))
      best = std::move(form);
  }
  return best;
}

}  // namespace tw
