#include "ir/graph/ops/window.h"

#include <algorithm>

namespace tw {

Error check_window(size_t spatial, const Ints& strides, const Ints& dilations, const Ints& pads) {
  TW_TRY(check_ints("strides", strides, spatial, 1));
  TW_TRY(check_ints("dilations", dilations, spatial, 1));
  return check_ints("pads", pads, 2 * spatial, 0);
}

Expected<Expr> window_count(size_t axis, const Expr& in, const Expr& kernel, int64_t stride,
                            int64_t dilation, int64_t pad_begin, int64_t pad_end, bool ceil_mode) {
  Expr window = (kernel - 1) * dilation + 1;
  Expr slack = simplify_dim(in + (pad_begin + pad_end) - window);
  // In ceil mode a window may end beyond the extent.
  if (as_const(slack).value_or(0) < (ceil_mode ? 1 - stride : 0))
    return make_error(DiagCode::invalid_model,
                      "spatial axis {0}: a window of {1} on an extent of {2} with pads {3} and {4}",
                      axis, to_string(simplify_dim(window)), to_string(in), pad_begin, pad_end);
  if (!ceil_mode) return simplify_dim(floor_div(slack, stride) + 1);
  return simplify_dim(min(ceil_div(slack, stride), floor_div(in + (pad_begin - 1), stride)) + 1);
}

WindowGeometry::WindowGeometry(std::span<const int64_t> large, std::span<const int64_t> small,
                               std::span<const int64_t> kernel, const Ints& strides,
                               const Ints& dilations, const Ints& pads) {
  size_t last = large.size() - 1;
  row = small[last];
  rows = element_count(small.first(last));
  taps = element_count(kernel.first(last));
  stride = strides[last];
  large_plane = element_count(large);
  small_plane = element_count(small);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t t = 0; t < taps; ++t) {
      int64_t offset = 0, scale = large[last], r_left = r, t_left = t;
      bool inside = true;
      for (size_t axis = last; axis-- > 0;) {
        int64_t at = r_left % small[axis] * strides[axis] +
                     t_left % kernel[axis] * dilations[axis] - pads[axis];
        inside &= at >= 0 && at < large[axis];
        offset += at * scale;
        scale *= large[axis];
        r_left /= small[axis];
        t_left /= kernel[axis];
      }
      start.push_back(inside ? offset : -1);
    }
  for (int64_t t = 0; t < kernel[last]; ++t) {
    int64_t shift = t * dilations[last] - pads[last];
    int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t end = shift >= large[last] ? 0 : (large[last] - 1 - shift) / stride + 1;
    end = std::clamp<int64_t>(end, 0, row);
    inner.push_back({std::min(begin, end), end, shift});
  }
}

}  // namespace tw
