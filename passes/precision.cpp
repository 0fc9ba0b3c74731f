#include "passes/precision.h"

#include "ir/schedule/product_form.h"
#include "kernels/device/tiles.h"

namespace tw {

namespace {

bool widens_f16(const Target& target) {
  switch (target.arch()) {
    case Arch::x86_64: return target.has("f16c") || target.has("avx512f");
    case Arch::aarch64: return true;
    case Arch::arm: return target.has("fp16");
    case Arch::riscv64: return target.has("zfhmin");
  }
  TW_UNREACHABLE("bad architecture");
}

}  // namespace

bool multiplies_bf16(const Target& whole) {
  const Target& target = whole.main_device();
  if (!tile_instructions(target, {DType::bf16}).empty()) return true;
  return best_product(
             target,
             [](const ProductForm& form) {
               return form.left_type == DType::bf16 && form.right_type == DType::bf16 &&
                      form.sum_type == DType::f32 &&
                      (form.intrinsic->scopes.empty() || form.in_tiles);
             },
             [&](const ProductForm& form) {
               return form.dense() && !form.sums_in_memory &&
                      (form.in_tiles ||
                       form.row_count() * form.column_count() * 32 <= target.vector_bits);
             })
      .has_value();
}

bool multiplies_tf32(const Target& whole) {
  const Target& target = whole.main_device();
  return block_memory(target) && !tile_instructions(target, {DType::f32, true}).empty();
}

void set_precision(Target& target, Precision precision) {
  target.precision = precision;
  for (Target& device : target.devices) set_precision(device, precision);
  for (Target& wider : target.wider) set_precision(wider, precision);
}

Precision precision_of(const Target& target) {
  if (target.precision != Precision::automatic) return target.precision;
  const CoreRates rates = core_rates(target);
  const bool pays = !target.devices.empty() || rates.bf16 == 0 || rates.bf16 > rates.f32;
  return pays && multiplies_bf16(target) ? Precision::bf16 : Precision::fp32;
}

Error check_precision(const Target& target) {
  const Precision precision = precision_of(target);
  if (precision == Precision::fp32) return Error::success();
  if (precision == Precision::tf32)
    return multiplies_tf32(target)
               ? Error::success()
               : make_error(DiagCode::unsupported,
                            "precision tf32: '{0}' has no instruction that threads multiply tf32 "
                            "with together, one like mma.m16n8k8.tf32",
                            target.main_device().name);
  if (!target.devices.empty() && precision == Precision::fp16)
    return make_error(DiagCode::unsupported,
                      "precision fp16: target '{0}' has devices, and only processors keep weights "
                      "in f16 for a model in f32",
                      target.name);
  if (!target.devices.empty() && !multiplies_bf16(target))
    return make_error(DiagCode::unsupported,
                      "precision bf16: device '{0}' has no instruction that multiplies bf16, one "
                      "like mma.m16n8k16.bf16; auto takes f32 there",
                      target.main_device().name);
  if (precision == Precision::fp16 && !widens_f16(target))
    return make_error(DiagCode::unsupported,
                      "precision fp16: target '{0}' has no instruction that widens f16 (on x86-64 "
                      "the feature f16c); bf16 needs none",
                      target.name);
  return Error::success();
}

}  // namespace tw
