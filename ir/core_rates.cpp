#include "ir/core_rates.h"

#include <algorithm>

#include "ir/target.h"

namespace tw {
namespace {

bool has_any(const Target& target, std::initializer_list<const char*> features) {
  return std::ranges::any_of(features, [&](const char* f) { return target.has(f); });
}

// The rules of docs/reference/targets.md. Matrix registers (amx-tile) mark the chips with two
// 512-bit units behind slow outer caches.
CoreRates usual_rates(const Target& target) {
  const bool wide = target.vector_bits >= 512, server = wide && target.has("amx-tile");
  const double lanes = target.lanes(4), units = wide && !server ? 1 : 2;
  CoreRates r;
  r.clock = 3e9;
  r.f32 = units * lanes;
  r.loads = units;
  r.stores = units / 2;
  r.l2_bytes = 32;
  r.l3_bytes = server ? 10 : 20;
  r.memory_bytes = server ? 5 : 8;
  r.tensor_bytes = 20.0 / 3;
  r.sums = lanes / (server ? 16 : 8);
  r.scattered = 2.5;
  r.fork_join = 1e-6;
  return r;
}

// Rates that follow from the f32 multiply-adds. 0: the target has no instruction for the type.
CoreRates rates_by_type(const Target& target, double f32) {
  CoreRates r;
  r.f64 = f32 / 2;
  r.i16 = (target.arch() == Arch::x86_64 ? 2 : 1) * f32;  // in pairs
  r.i8 = has_any(target, {"avx512vnni", "avxvnni", "dotprod"}) ? 4 * f32 : r.i16;
  if (has_any(target, {"avx512bf16", "bf16"})) r.bf16 = 2 * f32;
  if (has_any(target, {"avx512fp16", "fullfp16"})) r.f16 = 2 * f32;
  // A tile product takes sixteen cycles. In that time two vector units make 512 products.
  if (target.has("amx-int8")) r.i8 = 32 * f32;
  if (target.has("amx-bf16")) r.bf16 = 16 * f32;
  if (target.has("amx-fp16")) r.f16 = 16 * f32;
  return r;
}

}  // namespace

double CoreRates::multiply_adds(DType operand) const {
  const double own = operand == DType::f64                            ? f64
                     : operand == DType::bf16                         ? bf16
                     : operand == DType::f16                          ? f16
                     : operand == DType::i8 || operand == DType::u8   ? i8
                     : operand == DType::i16 || operand == DType::u16 ? i16
                                                                      : f32;
  return own > 0 ? own : f32;  // half floats are widened to f32 first
}

CoreRates with_defaults(CoreRates rates, const CoreRates& defaults) {
  for (const CoreRateKey& key : kCoreRateKeys)
    if (rates.*key.rate == 0) rates.*key.rate = defaults.*key.rate;
  return rates;
}

CoreRates core_rates(const Target& target) {
  const CoreRates rates = with_defaults(target.core, usual_rates(target));
  return with_defaults(rates, rates_by_type(target, rates.f32));
}

double vector_products(const Target& target) { return core_rates(target).f32 / target.lanes(4); }

}  // namespace tw
