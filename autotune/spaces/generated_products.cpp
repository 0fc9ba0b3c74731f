// Which instructions of the target can make a sum, whatever the kernel is about: their semantics
// say what they add, and trying it out says whether the operands lie as they want them.
#include <algorithm>

#include "autotune/spaces/generated.h"
#include "ir/schedule/product_form.h"

namespace tw::generated {
namespace {

// The element types that the sum's products load, in the order of the store's value.
std::vector<DType> loaded_types(const Kernel& kernel, const Nest& sum) {
  std::vector<DType> types;
  visit(sum.store->value, [&](const Expr& e) {
    if (e->kind == ExprKind::load) types.push_back(kernel.buffer(e->buffer).dtype);
  });
  return types;
}

// A block of the sum's own nest, the other reduce loops around it, is what the instruction does.
bool matches(const Kernel& kernel, const Target& target, const Nest& sum, const Product& product) {
  ScheduleBuilder s(kernel, target);
  Loops order = sum.spatial, reduce = sum.reduce;
  Loop lane = order.back(), depth = product.depth;
  order.pop_back();
  std::erase(reduce, depth);
  const auto inner = [&](Loop& loop, int64_t factor, Loops& around) {
    if (s.extent(loop) == factor) return;
    const auto cut = s.split(loop, factor, Tail::guard, loop.name() + "_c", loop.name() + "_i");
    around.push_back(cut.outer);
    loop = cut.inner;
  };
  inner(lane, product.columns, order);
  inner(depth, product.steps, reduce);
  if (reduce.empty()) return false;
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.insert(order.end(), {lane, depth});
  s.reorder(order);
  s.decompose(sum.stage, reduce.front());
  s.tensorize(lane, product.intrinsic, sum.stage.label() + "_block");
  return s.sound();
}

}  // namespace

std::vector<Product> products_of(const Kernel& kernel, const Target& target, const Nest& sum) {
  const std::vector<DType> loaded = loaded_types(kernel, sum);
  const DType type = kernel.buffer(sum.store->buffer).dtype;
  std::vector<std::pair<double, Product>> found;
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (!intrinsic.scopes.empty()) continue;  // its operands lie in memories of their own
    const auto form = product_form(intrinsic, [&](const ProductForm& f) {
      return f.sum_type == type &&
             std::ranges::is_permutation(loaded, std::vector{f.left_type, f.right_type});
    });
    if (!form || form->row_count() != 1) continue;
    for (const Loop& depth : sum.reduce) {
      const Product product{intrinsic.name, form->column_count(), form->depth_count(), depth};
      const ScheduleBuilder as_lowered(kernel, target);
      const auto whole = [&](const Loop& loop, int64_t part) {
        return as_lowered.extent(loop).value_or(part) % part == 0;
      };
      if (whole(sum.spatial.back(), product.columns) && whole(depth, product.steps) &&
          matches(kernel, target, sum, product))
        found.emplace_back(form->products_a_cycle(), product);
    }
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& one) { return one.first; });
  std::vector<Product> products;
  for (auto& [rate, product] : found) products.push_back(std::move(product));
  return products;
}

}  // namespace tw::generated
