// Importers of convolutions. They also read the window attributes, for pools too: strides,
// dilations, pads and auto_pad.
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/importers.h"

namespace tw::onnx_import {
namespace {

// A list attribute with one entry for each axis; if it is absent, each entry is `fallback`.
Ints window_list(NodeImport& n, const char* name, size_t count, int64_t fallback, int64_t minimum) {
  Ints out = n.integers(name).value_or(Ints(count, fallback));
  if (out.size() != count) {
    n.invalid(
        llvm::formatv("attribute {0} has {1} entries, {2} are needed", name, out.size(), count)
            .str());
    return Ints(count, fallback);
  }
  for (int64_t& value : out) {
    n.check_number(std::string("an entry of attribute ") + name, value, minimum, kMaxWindow);
    value = std::clamp(value, minimum, kMaxWindow);
  }
  return out;
}

}  // namespace

Window read_window(NodeImport& n, Val x, const Ints& kernel) {
  Window w;
  const size_t count = kernel.size();
  w.strides = window_list(n, "strides", count, 1, 1);
  w.dilations = window_list(n, "dilations", count, 1, 1);
  const std::string mode = n.text("auto_pad", "NOTSET");
  w.pads = mode == "NOTSET" || mode.empty() ? window_list(n, "pads", 2 * count, 0, 0)
                                            : Ints(2 * count, 0);
  if (mode == "NOTSET" || mode.empty() || mode == "VALID") return w;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    n.invalid("attribute auto_pad is '" + mode + "'");
    return w;
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, reach = (kernel[i] - 1) * w.dilations[i] + 1;
    int64_t total = reach - 1;  // for stride 1, whatever the extent is
    if (w.strides[i] != 1) {
      const int64_t extent = n.need_static_dim(x, axis, "auto_pad with a stride");
      total = (std::max<int64_t>(extent + w.strides[i] - 1, 0) / w.strides[i] - 1) * w.strides[i] +
              reach - extent;
    }
    total = std::max<int64_t>(total, 0);
    w.pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[count + i] = total - w.pads[i];
  }
  return w;
}

Ints kernel_of(NodeImport& n, Val x, Val w) {
  Ints kernel;
  if (!n.failed() && n.rank(w) < 3)
    n.invalid(llvm::formatv("weights of rank {0}, at least 3 is needed", n.rank(w)).str());
  if (!n.failed() && n.rank(x) != n.rank(w))
    n.invalid(
        llvm::formatv("input of rank {0} with weights of rank {1}", n.rank(x), n.rank(w)).str());
  for (int64_t axis = 2; axis < n.rank(w); ++axis)
    kernel.push_back(n.need_static_dim(w, axis, "a kernel"));
  for (int64_t extent : kernel) n.check_number("an extent of the kernel", extent, 1, kMaxWindow);
  const std::optional<Ints> given = n.integers("kernel_shape");
  if (given && *given != kernel)
    n.invalid("attribute kernel_shape differs from the weights' shape");
  return kernel;
}

namespace {

std::vector<Val> conv_inputs(NodeImport& n) {
  std::vector<Val> inputs = {n.in(0), n.in(1)};
  if (n.has(2)) inputs.push_back(n.in(2));
  return inputs;
}

}  // namespace

void import_conv(NodeImport& n) {
  const Val x = n.in(0), w = n.in(1);
  const Ints kernel = kernel_of(n, x, w);
  if (n.failed()) return;
  const Window window = read_window(n, x, kernel);
  n.set(n.emit(op::Conv{window.strides, window.dilations, window.pads, n.integer("group", 1)},
               conv_inputs(n)));
}

// output = (input - 1) stride + output_padding + reach - pads; output_shape and auto_pad choose the
// pads instead.
void import_conv_transpose(NodeImport& n) {
  const Val x = n.in(0), w = n.in(1);
  const Ints kernel = kernel_of(n, x, w);
  if (n.failed()) return;
  const size_t count = kernel.size();
  const std::string mode = n.text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID")
    return n.invalid("attribute auto_pad is '" + mode + "'");
  op::ConvTranspose a;
  a.strides = window_list(n, "strides", count, 1, 1);
  a.dilations = window_list(n, "dilations", count, 1, 1);
  a.output_padding = window_list(n, "output_padding", count, 0, 0);
  a.pads = mode == "NOTSET" ? window_list(n, "pads", 2 * count, 0, 0) : Ints(2 * count, 0);
  a.group = n.integer("group", 1);
  const bool shaped = n.has_attribute("output_shape");
  Ints wanted(count, 0);
  if (shaped) {
    Ints given = n.integers("output_shape").value_or(Ints());
    if (given.size() == count + 2) given.erase(given.begin(), given.begin() + 2);
    if (given.size() != count)
      return n.invalid("attribute output_shape has the wrong number of entries");
    wanted = given;
  }
  for (size_t i = 0; i < count && (shaped || same) && !n.failed(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, reach = (kernel[i] - 1) * a.dilations[i] + 1;
    int64_t total = 0;
    if (shaped) {
      total = a.strides[i] * (n.need_static_dim(x, axis, "output_shape") - 1) +
              a.output_padding[i] + reach - wanted[i];
    } else {
      total = reach - a.strides[i] + a.output_padding[i];  // output = input * stride
    }
    if (total < 0) {  // the output is larger than the convolution reaches: it is padded
      a.output_padding[i] -= total;
      total = 0;
    }
    const bool upper = mode == "SAME_UPPER";
    a.pads[i] = upper ? total / 2 : total - total / 2;
    a.pads[count + i] = total - a.pads[i];
  }
  n.set(n.emit(std::move(a), conv_inputs(n)));
}

}  // namespace tw::onnx_import
