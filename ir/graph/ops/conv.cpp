// Convolution and transposed convolution over any number of spatial axes, as sums of shifted rows
// over kernel taps.
#include "ir/graph/ops/window.h"

namespace tw {
namespace {

Error check_group(int64_t group) {
  if (group >= 1 && group <= 1 << 20) return Error::success();
  return make_error(DiagCode::invalid_model, "group is {0}, expected 1 to 2^20", group);
}

// Checks ranks and dtypes of x, w and the bias. Returns the number of spatial axes.
Expected<size_t> check_operands(const Types& in) {
  if (in[0]->shape.size() < 3)
    return input_error(0, "x", "rank {0} of {1}, expected at least 3", in[0]->shape.size(),
                       to_string(*in[0]));
  if (in[0]->dtype == DType::boolean) return input_error(0, "x", "bool, expected a number type");
  TW_TRY(check_rank(1, "weights", *in[1], in[0]->shape.size()));
  TW_TRY(check_product_types(1, "weights", *in[1], in[0]->dtype));
  if (present(in, 2)) {
    TW_TRY(check_rank(2, "bias", *in[2], 1));
    TW_TRY(check_dtype(2, "bias", *in[2], product_type(in[0]->dtype)));
  }
  for (size_t i = 2; i < in[1]->shape.size(); ++i)
    if (as_const(in[1]->shape[i]).value_or(1) < 1)
      return input_error(1, "weights", "an empty kernel in {0}", to_string(*in[1]));
  return in[0]->shape.size() - 2;
}

struct Channels {
  int64_t batch, group, in, out;
};  // in, out: channels of one group

std::span<const int64_t> spatial(const Tensor& t) {
  return std::span<const int64_t>(t.shape).subspan(2);
}

template <class In, class Acc>
void add_rows(const WindowGeometry& g, const In* x, const In* w, Acc* sums) {
  int64_t width = static_cast<int64_t>(g.inner.size());
  for (int64_t r = 0; r < g.rows; ++r)
    for (int64_t t = 0; t < g.taps; ++t) {
      int64_t from = g.start[static_cast<size_t>(r * g.taps + t)];
      if (from < 0) continue;
      for (int64_t k = 0; k < width; ++k) {
        const WindowGeometry::Tap& tap = g.inner[static_cast<size_t>(k)];
        Acc weight = static_cast<Acc>(w[t * width + k]), *row = sums + r * g.row;
        const In* source = x + (from + tap.shift);
        for (int64_t i = tap.begin; i < tap.end; ++i)
          row[i] += weight * static_cast<Acc>(source[i * g.stride]);
      }
    }
}

template <class In, class Acc>
void scatter_rows(const WindowGeometry& g, const In* x, const In* w, Acc* sums) {
  int64_t width = static_cast<int64_t>(g.inner.size());
  for (int64_t r = 0; r < g.rows; ++r)
    for (int64_t t = 0; t < g.taps; ++t) {
      int64_t to = g.start[static_cast<size_t>(r * g.taps + t)];
      if (to < 0) continue;
      for (int64_t k = 0; k < width; ++k) {
        const WindowGeometry::Tap& tap = g.inner[static_cast<size_t>(k)];
        Acc weight = static_cast<Acc>(w[t * width + k]), *row = sums + (to + tap.shift);
        for (int64_t i = tap.begin; i < tap.end; ++i)
          row[i * g.stride] += weight * static_cast<Acc>(x[r * g.row + i]);
      }
    }
}

// Computes one output plane after the other: the bias, then every input channel of its group.
template <class In, class Acc, class PlaneFn>
Tensor by_planes(const Tensors& in, const TensorType& out, const Channels& c, int64_t plane,
                 PlaneFn add_plane) {
  Tensor y = Tensor::zeros(out.dtype, extents(out.shape));
  std::vector<Acc> sums(static_cast<size_t>(plane));
  std::optional<Values<In>> bias;
  if (present(in, 2)) bias.emplace(*in[2]);
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t m = 0; m < c.group * c.out; ++m) {
      std::fill(sums.begin(), sums.end(), bias ? static_cast<Acc>((*bias)[m]) : Acc{});
      for (int64_t i = 0; i < c.in; ++i) add_plane(n, m, m / c.out * c.in + i, i, sums.data());
      int64_t base = (n * c.group * c.out + m) * plane;
      for (int64_t i = 0; i < plane; ++i) {
        if constexpr (std::is_same_v<Acc, double>) y.set(base + i, sums[static_cast<size_t>(i)]);
        else y.set_int(base + i, static_cast<int64_t>(sums[static_cast<size_t>(i)]));
      }
    }
  return y;
}

}  // namespace

Expected<TensorType> infer_conv(const OpAttrs& attrs, const Types& in) {
  const op::Conv& conv = std::get<op::Conv>(attrs);
  TW_ASSIGN(size_t axes, check_operands(in));
  TW_TRY(check_group(conv.group));
  TW_TRY(check_window(axes, conv.strides, conv.dilations, conv.pads));
  const Shape &x = in[0]->shape, &w = in[1]->shape;
  TW_TRY(check_dim(1, "weights", "channels", simplify_dim(w[1] * conv.group), x[1]));
  if (int64_t m = as_const(w[0]).value_or(0); m % conv.group)
    return input_error(1, "weights",
                       "{0} output channels, expected a multiple of the group count {1}", m,
                       conv.group);
  if (present(in, 2)) TW_TRY(check_dim(2, "bias", "elements", in[2]->shape[0], w[0]));
  TW_TRY(check_zero("x_zero", conv.x_zero, in[0]->dtype));
  TensorType out{product_type(in[0]->dtype), {x[0], w[0]}, {}};
  for (size_t i = 0; i < axes; ++i) {
    TW_ASSIGN(Expr extent, window_count(i, x[i + 2], w[i + 2], conv.strides[i], conv.dilations[i],
                                        conv.pads[i], conv.pads[i + axes], false));
    out.shape.push_back(std::move(extent));
  }
  return out;
}

Expected<Tensor> evaluate_conv(const OpAttrs& attrs, const TensorType& out, const Tensors& in) {
  const op::Conv& conv = std::get<op::Conv>(attrs);
  const Tensor x = less_zero(*in[0], conv.x_zero);
  const Tensor& w = *in[1];
  std::vector<int64_t> size = extents(out.shape);
  WindowGeometry g(spatial(x), std::span<const int64_t>(size).subspan(2), spatial(w), conv.strides,
                   conv.dilations, conv.pads);
  Channels c{x.shape[0], conv.group, w.shape[1], w.shape[0] / conv.group};
  int64_t taps = element_count(spatial(w));
  return with_numbers(x.dtype, [&]<class In, class Acc>(In, Acc) {
    Values<In> xs(x), ws(w);
    return by_planes<In, Acc>(in, out, c, g.small_plane,
                              [&](int64_t n, int64_t m, int64_t channel, int64_t i, Acc* sums) {
                                add_rows(g, xs.data() + (n * x.shape[1] + channel) * g.large_plane,
                                         ws.data() + (m * c.in + i) * taps, sums);
                              });
  });
}

Expected<TensorType> infer_conv_transpose(const OpAttrs& attrs, const Types& in) {
  const op::ConvTranspose& conv = std::get<op::ConvTranspose>(attrs);
  TW_ASSIGN(size_t axes, check_operands(in));
  TW_TRY(check_group(conv.group));
  TW_TRY(check_window(axes, conv.strides, conv.dilations, conv.pads));
  TW_TRY(check_ints("output_padding", conv.output_padding, axes, 0));
  const Shape &x = in[0]->shape, &w = in[1]->shape;
  TW_TRY(check_dim(1, "weights", "input channels", w[0], x[1]));
  if (int64_t channels = as_const(w[0]).value_or(0); channels % conv.group)
    return input_error(1, "weights",
                       "{0} input channels, expected a multiple of the group count {1}", channels,
                       conv.group);
  TW_TRY(check_zero("x_zero", conv.x_zero, in[0]->dtype));
  Expr out_channels = simplify_dim(w[1] * conv.group);
  if (present(in, 2)) TW_TRY(check_dim(2, "bias", "elements", in[2]->shape[0], out_channels));
  TensorType out{product_type(in[0]->dtype), {x[0], out_channels}, {}};
  for (size_t i = 0; i < axes; ++i) {
    int64_t rest = conv.output_padding[i] + 1 - conv.pads[i] - conv.pads[i + axes];
    Expr extent = simplify_dim((x[i + 2] - 1) * conv.strides[i] +
                               (w[i + 2] - 1) * conv.dilations[i] + rest);
    if (as_const(extent).value_or(0) < 0)
      return make_error(DiagCode::invalid_model,
                        "spatial axis {0}: pads {1} and {2} are larger than the result", i,
                        conv.pads[i], conv.pads[i + axes]);
    out.shape.push_back(std::move(extent));
  }
  return out;
}

Expected<Tensor> evaluate_conv_transpose(const OpAttrs& attrs, const TensorType& out,
                                         const Tensors& in) {
  const op::ConvTranspose& conv = std::get<op::ConvTranspose>(attrs);
  const Tensor x = less_zero(*in[0], conv.x_zero);
  const Tensor& w = *in[1];
  std::vector<int64_t> size = extents(out.shape);
  WindowGeometry g(std::span<const int64_t>(size).subspan(2), spatial(x), spatial(w), conv.strides,
                   conv.dilations, conv.pads);
  Channels c{x.shape[0], conv.group, w.shape[0] / conv.group, w.shape[1]};
  int64_t taps = element_count(spatial(w));
  return with_numbers(x.dtype, [&]<class In, class Acc>(In, Acc) {
    Values<In> xs(x), ws(w);
    return by_planes<In, Acc>(
        in, out, c, g.large_plane, [&](int64_t n, int64_t m, int64_t channel, int64_t, Acc* sums) {
          scatter_rows(g, xs.data() + (n * x.shape[1] + channel) * g.small_plane,
                       ws.data() + (channel * c.out + m % c.out) * taps, sums);
        });
  });
}

}  // namespace tw
