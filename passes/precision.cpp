#include "passes/precision.h"

#include <algorithm>

#include "ir/schedule/product_form.h"

namespace tw {

Expected<Precision> precision_from_name(std::string_view name) {
  if (name == "fp32") return Precision::fp32;
  if (name == "bf16") return Precision::bf16;
  if (name == "auto") return Precision::automatic;
  return make_error(DiagCode::invalid_argument,
                    "precision '{0}': one of fp32, bf16, auto (fp16 is not there yet)", name);
}

bool multiplies_bf16(const Target& target) {
  return best_product(
             target,
             [](const ProductForm& form) {
               return form.left_type == DType::bf16 && form.right_type == DType::bf16 &&
                      form.sum_type == DType::f32 && form.intrinsic->scopes.empty();
             },
             [&](const ProductForm& form) {
               return form.dense() &&
                      form.row_count() * form.column_count() * 32 <= target.vector_bits;
             })
      .has_value();
}

Expected<std::vector<std::string>> pipeline_of(Precision precision, const Target& target) {
  std::vector<std::string> passes = default_pipeline();
  const bool able = target.devices.empty() && multiplies_bf16(target);
  if (precision == Precision::fp32 || (precision == Precision::automatic && !able)) return passes;
  if (!target.devices.empty())
    return make_error(DiagCode::unsupported,
                      "precision bf16: target '{0}' has devices, and only processors multiply it",
                      target.name);
  if (!able)
    return make_error(DiagCode::unsupported,
                      "precision bf16: target '{0}' has no instruction that multiplies bf16 (on "
                      "x86-64 the feature avx512bf16); auto takes f32 there",
                      target.name);
  // Constants have been folded, which would widen the weights again; layouts come behind.
  passes.insert(std::ranges::find(passes, "assign-layouts"), "narrow-products");
  return passes;
}

}  // namespace tw
