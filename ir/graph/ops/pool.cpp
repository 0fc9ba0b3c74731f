// Pooling: maxima, averages and sums. Sums of integers narrower than 32 bits are i32. With
// count_include_pad the divisor of an average counts the padding. It never counts the part of a
// ceil_mode window beyond the padded extent, as in ONNX and PyTorch.
#include <cmath>
#include <limits>

#include "ir/graph/ops/window.h"
#include "ir/scalar_ops.h"

namespace tw {
namespace {

// Windows of one spatial plane: the flat input offsets that each one covers, and its divisor
struct Windows {
  std::vector<std::vector<int64_t>> covered;
  std::vector<int64_t> divisor;
};

Windows windows_of(const op::Pool& pool, std::span<const int64_t> in,
                   std::span<const int64_t> out) {
  size_t axes = in.size();
  std::vector<int64_t> none(axes, 0), in_strides = row_major_strides(in),
                                      out_strides = row_major_strides(out);
  std::vector<int64_t> tap_strides = row_major_strides(pool.kernel);
  Windows windows;
  walk<1>(out, {none}, [&](int64_t o, const std::array<int64_t, 1>&) {
    std::vector<int64_t> offsets;
    int64_t padded = 0;
    walk<1>(pool.kernel, {none}, [&](int64_t t, const std::array<int64_t, 1>&) {
      int64_t offset = 0;
      bool inside = true, counted = true;
      for (size_t i = 0; i < axes; ++i) {
        int64_t at = o / out_strides[i] % out[i] * pool.strides[i] +
                     t / tap_strides[i] % pool.kernel[i] * pool.dilations[i] - pool.pads[i];
        inside &= at >= 0 && at < in[i];
        counted &= at < in[i] + pool.pads[i + axes];
        offset += at * in_strides[i];
      }
      if (inside) offsets.push_back(offset);
      padded += counted;
    });
    windows.divisor.push_back(pool.count_include_pad ? padded
                                                     : static_cast<int64_t>(offsets.size()));
    windows.covered.push_back(std::move(offsets));
  });
  return windows;
}

double pool_floats(PoolKind kind, const Tensor& x, int64_t base,
                   const std::vector<int64_t>& offsets, int64_t divisor) {
  double result = kind == PoolKind::max ? -std::numeric_limits<double>::infinity() : 0;
  for (int64_t offset : offsets) {
    double value = x.at(base + offset);
    result = kind == PoolKind::max ? float_binary(BinaryOp::max, result, value) : result + value;
  }
  return kind != PoolKind::average ? result : result / static_cast<double>(divisor);
}

int64_t pool_ints(PoolKind kind, const Tensor& x, int64_t base, const std::vector<int64_t>& offsets,
                  int64_t divisor) {
  if (offsets.empty()) return 0;
  int64_t result = x.int_at(base + offsets[0]);
  for (size_t i = 1; i < offsets.size(); ++i)
    result = int_binary(kind == PoolKind::max ? BinaryOp::max : BinaryOp::add, DType::i64, result,
                        x.int_at(base + offsets[i]));
  return kind != PoolKind::average ? result : result / divisor;
}

}  // namespace

Expected<TensorType> infer_pool(const OpAttrs& attrs, const Types& in) {
  const op::Pool& pool = std::get<op::Pool>(attrs);
  const TensorType& x = *in[0];
  if (x.shape.size() < 3)
    return input_error(0, "x", "rank {0} of {1}, expected at least 3", x.shape.size(),
                       to_string(x));
  if (x.dtype == DType::boolean || x.dtype == DType::u64)
    return input_error(0, "x", "{0} cannot be pooled", dtype_name(x.dtype));
  size_t axes = x.shape.size() - 2;
  TW_TRY(check_ints("kernel", pool.kernel, axes, 1));
  TW_TRY(check_window(axes, pool.strides, pool.dilations, pool.pads));
  const bool wide = pool.kind == PoolKind::sum && is_int(x.dtype) && dtype_bytes(x.dtype) < 4;
  TensorType out{wide ? DType::i32 : x.dtype, {x.shape[0], x.shape[1]}, {}};
  for (size_t i = 0; i < axes; ++i) {
    TW_ASSIGN(Expr extent,
              window_count(i, x.shape[i + 2], pool.kernel[i], pool.strides[i], pool.dilations[i],
                           pool.pads[i], pool.pads[i + axes], pool.ceil_mode));
    out.shape.push_back(std::move(extent));
  }
  return out;
}

Expected<Tensor> evaluate_pool(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Pool& pool = std::get<op::Pool>(attrs);
  const Tensor& x = *in[0];
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  std::span<const int64_t> in_space = std::span<const int64_t>(x.shape).subspan(2),
                           out_space = std::span<const int64_t>(y.shape).subspan(2);
  Windows windows = windows_of(pool, in_space, out_space);
  int64_t in_plane = element_count(in_space), out_plane = element_count(out_space);
  for (int64_t i = 0; i < y.size(); ++i) {
    size_t o = static_cast<size_t>(i % out_plane);
    int64_t base = i / out_plane * in_plane;
    if (is_float(x.dtype))
      y.set(i, pool_floats(pool.kind, x, base, windows.covered[o], windows.divisor[o]));
    else y.set_int(i, pool_ints(pool.kind, x, base, windows.covered[o], windows.divisor[o]));
  }
  return y;
}

}  // namespace tw
