// storage_align c 0 32 16
//   temp c: f32[14, 64]    ->    temp c: f32[14, 80]
//
// Makes the stride of dimension 0, in elements, equal 16 modulo 32 by the fewest unused elements at
// the end of dimension 1. Strides of large powers of two would map the rows of a tile to one set of
// the cache. Legal: a temp of constant shape; a factor of at most 2^20; the dimension is not the
// last one; some extent gives that stride. A later compute_at of its stage gives the temp a new
// shape.
#include <numeric>

#include "ir/schedule/nest.h"

namespace tw::sched {

static constexpr int64_t kMostFactor = 1 << 20;

Expected<Kernel> apply_step(const Kernel& kernel, const step::StorageAlign& s) {
  TW_ASSIGN(const BufferId id, buffer_named(kernel, s.buffer));
  const Buffer& buffer = kernel.buffer(id);
  if (buffer.role != BufferRole::temp)
    return illegal("'{0}' is a parameter of the kernel: its strides are given", s.buffer);
  if (s.factor < 1 || s.factor > kMostFactor || s.offset < 0 || s.offset >= s.factor)
    return illegal("'{0}' needs a factor of 1 to {1} and an offset below it, not {2} and {3}",
                   s.buffer, kMostFactor, s.factor, s.offset);
  if (!constant_bytes(buffer)) return illegal("the shape of '{0}' is not constant", s.buffer);
  const int64_t last = static_cast<int64_t>(buffer.shape.size()) - 1;
  if (s.dim < 0 || s.dim >= last)
    return illegal(
        "'{0}' has no dimension {1} with another one inside it: it has {2}, counted from 0",
        s.buffer, s.dim, last + 1);
  const size_t padded = static_cast<size_t>(s.dim) + 1;
  int64_t inner = 1;
  for (size_t d = padded + 1; d < buffer.shape.size(); ++d) inner *= *as_const(buffer.shape[d]);
  const int64_t old = *as_const(buffer.shape[padded]);
  if (s.offset % std::gcd(inner % s.factor, s.factor) != 0 || inner == 0)
    return illegal(
        "no extent of dimension {0} gives '{1}' a stride of {2} modulo {3}: a row inside it has "
        "{4} elements",
        padded, s.buffer, s.offset, s.factor, inner);
  int64_t extent = old;
  while ((extent % s.factor) * (inner % s.factor) % s.factor != s.offset) ++extent;
  Kernel out = kernel;
  out.buffer(id).shape[padded] = Expr(extent);
  return out;
}

}  // namespace tw::sched
