// What a kernel has to do: arithmetic and memory traffic, counted from its loops. The measure that
// times are compared with.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

struct Work {
  // Floating-point (and integer tensor) operations. A multiply-add counts 2; min, max and
  // comparisons 1; functions what their polynomials cost (flops_of). Index arithmetic, casts and
  // selects are free. Points that a `where` leaves out count, as is usual.
  Expr flops = 0;
  // Bytes of parameters that are touched, each once: const buffers, and inputs plus outputs.
  Expr weight_bytes = 0, tensor_bytes = 0;
};

// Arithmetic, and elements read and written, of a scheduled kernel.
struct ParallelOperations {
  LoopRef loop;
  std::vector<const stmt::Loop*> around;  // from the outside in
  Expr operations;
};
struct Operations {
  Expr all = 0;
  std::vector<ParallelOperations> parallel;  // of its parallel loops
};
Operations count_operations(const Kernel& kernel);

// Exact for kernels as lowered; a scheduled one repeats the points of overlapping blocks.
// Expressions of the kernel's symbols.
Work count_work(const Kernel& kernel);
// The type that a scheduled kernel multiplies: of blocks that an intrinsic computes the narrowest
// operand; else f64 where it has such numbers, else f32, which shorter types are widened to.
DType multiplied_type(const Kernel& kernel);
int64_t flops_of(UnaryOp op);
int64_t flops_of(BinaryOp op);

}  // namespace tw
