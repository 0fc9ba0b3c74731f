// The work of a kernel: arithmetic and memory traffic, counted from its loops. Times are compared
// with this measure.
#pragma once
#include "ir/kernel/kernel.h"

namespace tw {

struct Work {
  // Operations on floats, and on integers from tensors. A multiply-add counts 2, min, max and
  // comparisons 1, and functions what their polynomials cost (flops_of). Index arithmetic, casts,
  // selects and what is computed of constants alone are free. Points that a `where` leaves out
  // count, as is usual.
  Expr flops = 0;
  // Bytes of the touched parameters, each counted once: const buffers, then inputs and outputs
  Expr weight_bytes = 0, tensor_bytes = 0;
};

// Operations in one parallel loop of a scheduled kernel: arithmetic, and elements read and written
struct ParallelOperations {
  LoopRef loop;
  std::vector<const stmt::Loop*> around;  // loops around it, from the outside in
  Expr operations;
};
struct Operations {
  Expr all = 0;
  std::vector<ParallelOperations> parallel;  // one entry for each parallel loop
};
Operations count_operations(const Kernel& kernel);

// The work as an expression of the kernel's symbols. It is exact for kernels as lowered; a
// scheduled kernel repeats the points of overlapping blocks.
Work count_work(const Kernel& kernel);
// The type that a scheduled kernel multiplies. For blocks that an intrinsic computes, it is the
// narrowest operand. Otherwise it is f64 if the kernel has f64 numbers, or f32, to which shorter
// types are widened.
DType multiplied_type(const Kernel& kernel);
int64_t flops_of(UnaryOp op);
int64_t flops_of(BinaryOp op);

}  // namespace tw
