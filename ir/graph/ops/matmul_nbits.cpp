// Products with a matrix of small integers that have one scale for each block of a row.
#include <cmath>

#include "ir/graph/ops/common.h"

namespace tw {

Expected<TensorType> infer_matmul_nbits(const OpAttrs& attrs, const Types& in) {
  const op::MatMulNBits& a = std::get<op::MatMulNBits>(attrs);
  if (a.bits != 2 && a.bits != 4 && a.bits != 8)
    return make_error(DiagCode::unsupported, "numbers of {0} bits, expected 2, 4 or 8", a.bits);
  if (a.block < 16 || a.block > (1 << 20) || (a.block & (a.block - 1)) != 0)
    return make_error(DiagCode::invalid_model, "blocks of {0}, expected a power of two from 16 on",
                      a.block);
  if (!is_float(in[0]->dtype))
    return input_error(0, "a", "{0}, expected a float type", dtype_name(in[0]->dtype));
  if (in[0]->shape.size() < 2)
    return input_error(0, "a", "rank {0} of {1}, expected at least 2", in[0]->shape.size(),
                       to_string(*in[0]));
  TW_TRY(check_dtype(1, "b", *in[1], DType::u8));
  TW_TRY(check_rank(1, "b", *in[1], 3));
  TW_TRY(check_dim(1, "b", "blocks", in[1]->shape[1], ceil_div(in[0]->shape.back(), a.block)));
  TW_TRY(check_dim(1, "b", "bytes of a block", in[1]->shape[2], Expr(a.block * a.bits / 8)));
  constexpr const char* kRoles[] = {"a", "b", "scales", "zeros"};
  for (size_t i = 2; i < 4; ++i) {
    TW_TRY(check_dtype(i, kRoles[i], *in[i], in[0]->dtype));
    if (i == 3 && in[i]->shape.empty()) continue;
    TW_TRY(check_rank(i, kRoles[i], *in[i], 2));
    TW_TRY(check_dim(i, kRoles[i], "rows", in[i]->shape[0], in[1]->shape[0]));
    TW_TRY(check_dim(i, kRoles[i], "blocks", in[i]->shape[1], in[1]->shape[1]));
  }
  Shape shape = in[0]->shape;
  shape.back() = in[1]->shape[0];
  return TensorType{in[0]->dtype, std::move(shape), {}};
}

namespace {

// Rounds the row to 8 bits, with one scale for each block.
void round_row(std::vector<double>& row, int64_t block) {
  constexpr float kMost = 127;
  for (auto from = row.begin(); from != row.end();) {
    const auto to = from + std::min<int64_t>(block, row.end() - from);
    float most = 0;
    for (auto at = from; at != to; ++at) most = std::max(most, std::fabs(static_cast<float>(*at)));
    const float inverse = most > 0 ? kMost / most : 0, scale = most / kMost;
    for (; from != to; ++from)
      *from = static_cast<double>(std::nearbyint(static_cast<float>(*from) * inverse)) * scale;
  }
}

}  // namespace

Expected<Tensor> evaluate_matmul_nbits(const OpAttrs& attrs, const TensorType& out,
                                       const Tensors& in) {
  const op::MatMulNBits& a = std::get<op::MatMulNBits>(attrs);
  const Tensor &x = *in[0], &b = *in[1], &scales = *in[2], &zeros = *in[3];
  const int64_t columns = b.shape[0], blocks = b.shape[1], depth = x.shape.back(),
                in_byte = 8 / a.bits, mask = (1 << a.bits) - 1;
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  const int64_t rows = columns == 0 ? 0 : y.size() / columns;
  std::vector<std::vector<double>> left(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    auto& numbers = left[static_cast<size_t>(row)];
    for (int64_t k = 0; k < depth; ++k) numbers.push_back(x.at(row * depth + k));
    if (a.byte_rows) round_row(numbers, a.block);
  }
  std::vector<double> w(static_cast<size_t>(depth));
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t block = n * blocks + k / a.block, inside = k % a.block;
      const int64_t byte = b.int_at(block * b.shape[2] + inside / in_byte);
      w[static_cast<size_t>(k)] = (static_cast<double>(byte >> (inside % in_byte * a.bits) & mask) -
                                   zeros.at(zeros.shape.empty() ? 0 : block)) *
                                  scales.at(block);
    }
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += left[static_cast<size_t>(row)][static_cast<size_t>(k)] * w[static_cast<size_t>(k)];
      y.set(row * columns + n, sum);
    }
  }
  return y;
}

}  // namespace tw
