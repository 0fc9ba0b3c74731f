// Importers of STFT, windows, and the matrix of mel filters. The transform itself is in dft.cpp.
#include <cmath>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"
#include "frontend/onnx/ops/signal/dft.h"

namespace tw::onnx_import {
namespace {

// A scalar or one-element integer input as a dim expression in [least, most].
Expr extent_input(NodeImport& n, size_t input, int64_t least, const char* what,
                  const Expr& most = int64_t{1} << 31) {
  const std::vector<Expr> values = n.dims(n.within(n.in(input), least, most, what), what);
  if (n.failed()) return 1;
  if (values.size() != 1) n.invalid(std::string("the ") + what + " must be one number");
  return values.size() == 1 ? values[0] : Expr(1);
}

DType output_type(NodeImport& n) {
  const auto type = dtype_from_onnx(static_cast<int>(n.integer("output_datatype", 1)));
  if (!type)
    n.fail("attribute output_datatype=" + std::to_string(n.integer("output_datatype", 1)),
           "use a float or an integer type");
  return type.value_or(DType::f32);
}

Val number(NodeImport& n, double value) { return n.scalar(value, DType::f64); }

}  // namespace

namespace {

struct WindowTerms {
  double a0, a1, a2;
};
WindowTerms terms_of(CosineWindow which) {
  switch (which) {
    case CosineWindow::hann: return {0.5, -0.5, 0};
    case CosineWindow::hamming: return {25.0 / 46.0, -21.0 / 46.0, 0};
    case CosineWindow::blackman: return {0.42, -0.5, 0.08};
  }
  TW_UNREACHABLE("bad window");
}

}  // namespace

// a0 + a1 cos(2 pi i / N) + a2 cos(4 pi i / N); if not periodic, over N - 1
void import_window(NodeImport& n, CosineWindow which) {
  const Expr size = extent_input(n, 0, 0, "window size");
  const DType type = output_type(n);
  const bool periodic = n.integer("periodic", 1) != 0;
  if (n.failed()) return;
  const auto [a0, a1, a2] = terms_of(which);
  const Val period = n.cast(integer(n, periodic ? size : size - Expr(1)), DType::f64);
  const Val angle = n.div(n.mul(steps(n, size), number(n, 2 * M_PI)), period);
  Val y = n.add(n.mul(n.unary(UnaryOp::cos, angle), number(n, a1)), number(n, a0));
  if (a2 != 0)
    y = n.add(y, n.mul(n.unary(UnaryOp::cos, n.mul(angle, number(n, 2))), number(n, a2)));
  n.set(n.cast(y, type));
}

// Triangles over the bins of the spectrum, with corners at equal steps of mel.
void import_mel_weights(NodeImport& n) {
  const Expr bins = extent_input(n, 0, 0, "number of mel bins"),
             length = extent_input(n, 1, 0, "DFT length");
  const auto scalar_input = [&](size_t i) { return n.reshape(n.cast(n.in(i), DType::f64), {}); };
  const Val rate = n.cast(n.reshape(n.within(n.in(2), 1, INT32_MAX, "sample rate"), {}),
                          DType::f64),
            lower = scalar_input(3), upper = scalar_input(4);
  const DType type = output_type(n);
  if (n.failed()) return;
  const Val seven_hundred = number(n, 700), one = number(n, 1), scale = number(n, 2595),
            ten = number(n, std::log(10.0));
  const auto mel = [&](Val hertz) {
    return n.div(n.mul(scale, n.unary(UnaryOp::log, n.add(n.div(hertz, seven_hundred), one))), ten);
  };
  const Val low = mel(lower), count = n.cast(integer(n, bins + Expr(2)), DType::f64),
            step = n.div(n.sub(mel(upper), low), count);
  const Val spectrum = n.cast(integer(n, length + Expr(1)), DType::f64);
  const auto corner = [&](int64_t ahead) {  // the bin of corner i + ahead of filter i
    const Val at = n.add(n.mul(n.add(steps(n, bins), number(n, static_cast<double>(ahead))), step),
                         low);
    const Val hertz = n.mul(seven_hundred,
                            n.sub(n.unary(UnaryOp::exp, n.mul(n.div(at, scale), ten)), one));
    return n.unary(UnaryOp::floor, n.div(n.mul(spectrum, hertz), rate));
  };
  const Val left = corner(0), center = corner(1), right = corner(2), zero = number(n, 0);
  const Expr rows = n.simplified(floor_div(length, Expr(2)) + Expr(1));
  const Val at = n.reshape(steps(n, rows), {rows, 1});
  const auto both = [&](Val a, Val b) { return n.binary(BinaryOp::logical_and, a, b); };
  const auto at_most = [&](Val a, Val b) { return n.binary(BinaryOp::le, a, b); };
  const Val rise = n.sub(center, left), fall = n.sub(right, center),
            flat = n.binary(BinaryOp::eq, rise, zero);
  const Val peak = n.select(n.binary(BinaryOp::eq, at, center), one, zero);
  const Val rising = n.select(both(at_most(left, at), at_most(at, center)),
                              n.div(n.sub(at, left), n.select(flat, one, rise)), zero);
  const Val falling = n.div(n.sub(right, at), n.select(n.less(zero, fall), fall, one));
  const Val on_fall = both(n.less(zero, fall), both(at_most(center, at), n.less(at, right)));
  n.set(n.cast(n.select(on_fall, falling, n.select(flat, peak, rising)), type));
}

// Frames [B, F, W, 1 or 2] times the window, transformed along W. A signal [B, L] is real.
void import_stft(NodeImport& n) {
  Val x = n.in(0);
  const Expr given = extent_input(n, 1, 1, "frame step"),
             step = as_const(given) ? given : n.simplified(max(given, Expr(1)));
  if (!n.failed() && n.rank(x) != 2 && n.rank(x) != 3)
    return n.invalid(llvm::formatv("a signal of rank {0}, 2 or 3 is needed", n.rank(x)).str());
  if (!n.failed() && n.rank(x) == 2) x = n.reshape(x, {n.dim(x, 0), n.dim(x, 1), 1});
  const Val window = n.maybe(2);
  Expr length = n.dim(x, 1);
  if (n.has(3) && n.known(n.in(3))) length = extent_input(n, 3, 1, "frame length");
  else if (n.has(3)) length = extent_input(n, 3, 1, "frame length", length);
  else if (window.valid()) length = n.dim(window, 0);
  if (n.failed()) return;
  const bool onesided = n.integer("onesided", 1) != 0;
  const Expr frames = n.simplified(floor_div(n.dim(x, 1) - length, step) + Expr(1));
  if (as_const(frames) && *as_const(frames) < 1) return n.invalid("frames longer than the signal");
  const Val at = n.add(n.mul(positions(n, frames, 4, 1), integer(n, step)),
                       positions(n, length, 4, 2));
  Val framed = take(n, x, {0, -1, 3}, {at}, {n.dim(x, 0), frames, length, n.dim(x, 2)});
  if (window.valid()) framed = n.mul(framed, n.reshape(window, {length, 1}));
  n.set(dft(n, framed, {2, length, false, onesided}));
}

}  // namespace tw::onnx_import
