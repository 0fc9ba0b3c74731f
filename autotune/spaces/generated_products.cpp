// Finds the target's instructions that can compute a sum of any kernel. Their semantics tell what
// they add, and a trial shows if the operands lie as they need them.
#include <algorithm>

#include "autotune/spaces/generated.h"
#include "ir/schedule/product_form.h"

namespace tw::generated {
namespace {

// Types of the elements that the sum's products load, in the order of the store's value
std::vector<DType> loaded_types(const Kernel& kernel, const Nest& sum) {
  std::vector<DType> types;
  visit(sum.store->value, [&](const Expr& e) {
    if (const auto* load = as<expr::Load>(e)) types.push_back(kernel.buffer(load->buffer).dtype);
  });
  return types;
}

// True when the instruction computes a block of the sum's own nest, with all other loops around it.
bool matches(const Kernel& kernel, const Target& target, const Nest& sum, const Product& product) {
  ScheduleBuilder s(kernel, target);
  Loops around = sum.spatial;
  around.pop_back();
  if (product.row.defined()) std::erase(around, product.row);
  for (const Loop& loop : sum.reduce)
    if (loop != product.depth) around.push_back(loop);
  SumInstruction instruction = product.instruction();
  if (s.extent(product.depth) != product.steps) {
    const auto cut = s.split(product.depth, product.steps, Tail::guard, product.depth.name() + "_c",
                             product.depth.name() + "_i");
    around.push_back(cut.outer);
    instruction.depth = cut.inner;
  }
  if (around.empty()) return false;
  s.accumulate(sum.stage, around, {}, sum.spatial.back(), instruction);
  return s.sound();
}

// Loops that may be an instruction's rows; one undefined loop for an instruction with a single row
Loops rows_of(const Nest& sum, const ProductForm& form) {
  if (form.row_count() == 1) return {Loop()};
  return {sum.spatial.begin(), sum.spatial.end() - 1};
}

}  // namespace

std::vector<Product> products_of(const Kernel& kernel, const Target& target, const Nest& sum) {
  const std::vector<DType> loaded = loaded_types(kernel, sum);
  const DType type = kernel.buffer(sum.store->buffer).dtype;
  std::vector<std::pair<double, Product>> found;
  for (const Intrinsic& intrinsic : target.intrinsics) {
    if (!intrinsic.scopes.empty()) continue;  // operands lie in memories of their own
    const auto form = product_form(intrinsic, [&](const ProductForm& f) {
      return f.sum_type == type &&
             std::ranges::is_permutation(loaded, std::vector{f.left_type, f.right_type});
    });
    if (!form) continue;
    const ScheduleBuilder as_lowered(kernel, target);
    const auto whole = [&](const Loop& loop, int64_t part) {
      return !loop.defined() || as_lowered.extent(loop).value_or(part) % part == 0;
    };
    for (const Loop& depth : sum.reduce)
      for (const Loop& row : rows_of(sum, *form)) {
        const Product product{intrinsic.name,
                              form->row_count(),
                              form->column_count(),
                              form->depth_count(),
                              depth,
                              row};
        if (whole(row, product.rows) && whole(sum.spatial.back(), product.columns) &&
            whole(depth, product.steps) && matches(kernel, target, sum, product))
          found.emplace_back(form->products_a_cycle(), product);
      }
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& one) { return one.first; });
  std::vector<Product> products;
  for (auto& [rate, product] : found) products.push_back(std::move(product));
  return products;
}

}  // namespace tw::generated
