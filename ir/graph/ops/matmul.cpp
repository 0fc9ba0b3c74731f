// Batched matrix multiplication; batches broadcast.
#include "ir/graph/ops/common.h"

namespace tw {
namespace {

template <class In, class Acc>
struct Problem {
  int64_t m, n, k, a_row, a_col, b_row, b_col;  // a_row to b_col: strides
  // Computes sums[j] += a[i, p] * b[p, j] in the order of p. The columns of b are contiguous unless
  // b is transposed.
  void row(const In* a, const In* b, Acc* sums, int64_t i) const {
    if (b_col == 1) {
      for (int64_t p = 0; p < k; ++p) {
        Acc left = static_cast<Acc>(a[i * a_row + p * a_col]);
        const In* right = b + p * b_row;
        for (int64_t j = 0; j < n; ++j) sums[j] += left * static_cast<Acc>(right[j]);
      }
      return;
    }
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        sums[j] += static_cast<Acc>(a[i * a_row + p * a_col]) *
                   static_cast<Acc>(b[p * b_row + j * b_col]);
  }
};

}  // namespace

Expected<TensorType> infer_matmul(const OpAttrs& attrs, const Types& in) {
  const op::MatMul& matmul = std::get<op::MatMul>(attrs);
  for (size_t i = 0; i < 2; ++i) {
    if (in[i]->shape.size() < 2)
      return input_error(i, i ? "b" : "a", "rank {0} of {1}, expected at least 2",
                         in[i]->shape.size(), to_string(*in[i]));
  }
  if (in[0]->dtype == DType::boolean) return input_error(0, "a", "bool, expected a number type");
  TW_TRY(check_product_types(1, "b", *in[1], in[0]->dtype));
  TW_TRY(check_zero("a_zero", matmul.a_zero, in[0]->dtype));
  const Shape &a = in[0]->shape, &b = in[1]->shape;
  const Expr &m = matmul.trans_a ? a.back() : a[a.size() - 2],
             &k = matmul.trans_a ? a[a.size() - 2] : a.back();
  const Expr &kb = matmul.trans_b ? b.back() : b[b.size() - 2],
             &n = matmul.trans_b ? b[b.size() - 2] : b.back();
  TW_TRY(check_dim(1, "b", matmul.trans_b ? "columns" : "rows", kb, k));
  TW_ASSIGN(Shape shape,
            broadcast_shapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
  shape.push_back(m);
  shape.push_back(n);
  return TensorType{product_type(in[0]->dtype), std::move(shape), {}};
}

Expected<Tensor> evaluate_matmul(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::MatMul& matmul = std::get<op::MatMul>(attrs);
  const Tensor a = less_zero(*in[0], matmul.a_zero);
  const Tensor& b = *in[1];
  std::vector<int64_t> shape = extents(out.shape);
  size_t rank = shape.size();
  auto batches = [](const Tensor& t) {
    return std::span<const int64_t>(t.shape).first(t.shape.size() - 2);
  };
  int64_t m = shape[rank - 2], n = shape[rank - 1],
          k = a.shape[a.shape.size() - (matmul.trans_a ? 2 : 1)];
  std::span<const int64_t> batch = std::span<const int64_t>(shape).first(rank - 2);
  Tensor y = Tensor::zeros(out.dtype, shape);
  return with_numbers(a.dtype, [&]<class In, class Acc>(In, Acc) {
    Values<In> as(a), bs(b);
    Problem<In, Acc> problem{m,
                             n,
                             k,
                             matmul.trans_a ? 1 : k,
                             matmul.trans_a ? m : 1,
                             matmul.trans_b ? 1 : n,
                             matmul.trans_b ? k : 1};
    std::vector<Acc> sums(static_cast<size_t>(n));
    walk<2>(batch, {broadcast_strides(batches(a), batch), broadcast_strides(batches(b), batch)},
            [&](int64_t flat, const std::array<int64_t, 2>& at) {
              for (int64_t i = 0; i < m; ++i) {
                std::fill(sums.begin(), sums.end(), Acc{});
                problem.row(as.data() + at[0] * m * k, bs.data() + at[1] * k * n, sums.data(), i);
                for (int64_t j = 0; j < n; ++j) {
                  int64_t to = (flat * m + i) * n + j;
                  if constexpr (std::is_same_v<Acc, double>)
                    y.set(to, sums[static_cast<size_t>(j)]);
                  else y.set_int(to, static_cast<int64_t>(sums[static_cast<size_t>(j)]));
                }
              }
            });
    return std::move(y);
  });
}

}  // namespace tw
