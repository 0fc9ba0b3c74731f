// Importers of matrix products.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {

Val matrix_product(NodeImport& n, Val a, Val b, int64_t a_zero) {
  const int64_t rank_a = n.rank(a), rank_b = n.rank(b);
  if (rank_a == 0 || rank_b == 0) n.invalid("a scalar operand");
  if (rank_a == 1) a = n.reshape(a, {1, n.dim(a, 0)});
  if (rank_b == 1) b = n.reshape(b, {n.dim(b, 0), 1});
  const Val product = n.emit(op::MatMul{false, false, a_zero}, {a, b});
  Shape shape = n.shape(product);
  if (n.failed() || (rank_a > 1 && rank_b > 1)) return product;
  if (rank_b == 1) shape.pop_back();
  if (rank_a == 1) shape.erase(shape.end() - (rank_b == 1 ? 1 : 2));
  return n.reshape(product, std::move(shape));
}

void import_matmul(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1);
  if (!n.failed()) n.set(matrix_product(n, a, b));
}

Val general_product(NodeImport& n) {
  const Val a = n.in(0), b = n.in(1);
  if (!n.failed() && (n.rank(a) != 2 || n.rank(b) != 2)) n.invalid("Gemm needs matrices");
  if (n.failed()) return {};
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  Val y = n.emit(op::MatMul{n.integer("transA", 0) != 0, n.integer("transB", 0) != 0}, {a, b});
  if (alpha != 1) y = n.mul(y, n.scalar(alpha, y));
  if (n.has(2) && beta != 0) {
    Val c = n.in(2);
    if (beta != 1) c = n.mul(c, n.scalar(beta, c));
    y = n.add(y, c);
  }
  return y;
}

void import_gemm(NodeImport& n) { n.set(general_product(n)); }

}  // namespace tw::onnx_import
