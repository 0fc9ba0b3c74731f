#include "ir/multiprocessors.h"

#include "ir/target.h"

namespace tw {

int64_t Multiprocessors::multiply_adds(DType operand, bool rounds_tf32) const {
  if (rounds_tf32) return tf32;
  return operand == DType::f16 ? f16 : operand == DType::bf16 ? bf16 : is_float(operand) ? f32 : i8;
}

Multiprocessors multiprocessors(const Target& target) {
  Multiprocessors m = target.multiprocessors;
  const auto usual = [](int64_t& said, int64_t by_rule) {
    if (said == 0) said = by_rule;
  };
  usual(m.count, 16);
  usual(m.clock, 1000000000);
  usual(m.threads, 2 * target.max_group);
  usual(m.blocks, 16);
  usual(m.registers, 65536);
  usual(m.local_bytes, 2 * target.local_bytes);
  usual(m.f32, 64);
  usual(m.tf32, 4 * m.f32);
  usual(m.f16, 2 * m.tf32);
  usual(m.bf16, m.f16);
  usual(m.i8, 2 * m.f16);
  usual(m.local_rate, 128);
  usual(m.l2_rate, 32 * m.count);
  usual(m.memory_rate, 8 * m.count);
  usual(m.latency, 500);
  return m;
}

}  // namespace tw
