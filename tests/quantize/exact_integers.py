"""Quantized operators in exact integers and doubles: what each element of a result may be.

A quantized tensor is two arrays of integers, the least and the largest that each element may be. They are equal but where a
number lies on a rounding tie, or so close to one that the order of float operations decides: there both neighbours may come.
What is computed of such elements is bounded from both sides."""
import dataclasses

import numpy as np

ULP = 2.0 ** -24   # a rounded f32 is off by so much of itself
TINY = np.finfo(np.float64).tiny
EXACT = 2 ** 24    # sums below it are exact in f32


@dataclasses.dataclass
class Quantization:
    scale: np.float32
    zero: int
    type: type   # np.uint8 or np.int8

    @property
    def limits(self):
        info = np.iinfo(self.type)
        return info.min, info.max


@dataclasses.dataclass
class Ints:
    """Bounds of the integers, and what they stand for."""
    low: np.ndarray
    high: np.ndarray
    by: Quantization

    def centered(self):
        return self.low.astype(np.float64) - self.by.zero, self.high.astype(np.float64) - self.by.zero

    def reals(self):
        """Exact: 8 bits by a float's 24."""
        low, high = self.centered()
        return Reals(low * np.float64(self.by.scale), high * np.float64(self.by.scale))


@dataclasses.dataclass
class Reals:
    """Bounds of numbers, and how far floats may be off them: 0 where floats are exact."""
    low: np.ndarray
    high: np.ndarray
    error: object = 0.0

    def size(self):
        """The largest magnitude of each."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def quantized(x, by):
    """saturate(round_half_even(x / scale) + zero). Where floats are not exact a tie may go either way."""
    scale = np.float64(by.scale)
    error = np.broadcast_to(np.asarray(x.error, np.float64) / scale, x.low.shape)
    low, high = x.low / scale, x.high / scale
    low = np.where(error > 0, np.ceil(low - error - 0.5), np.rint(low))
    high = np.where(error > 0, np.floor(high + error + 0.5), np.rint(high))
    return Ints(*(np.clip(v + by.zero, *by.limits).astype(np.int64) for v in (low, np.maximum(low, high))), by)


def windows(x, kernel, strides, dilations):
    """[n, c, h, w] -> [n, c, oh, ow, kh, kw]"""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return view[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def padded(x, pads, value=0.0):
    return np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=value)


def conv(x, w, strides, dilations, pads, group):
    n, outputs = x.shape[0], w.shape[0]
    parts = windows(padded(x, pads), w.shape[2:], strides, dilations)
    parts = parts.reshape(n, group, -1, *parts.shape[2:])
    w = w.reshape(group, outputs // group, *w.shape[1:])
    y = np.einsum("ngchwij,gocij->ngohw", parts, w, optimize=True)
    return y.reshape(n, outputs, *y.shape[3:])


def conv_transpose(x, w, strides, dilations, pads, group, output_padding):
    """w: [c, o / group, kh, kw]"""
    n, channels, height, width = x.shape
    outputs, kernel = w.shape[1] * group, w.shape[2:]
    x = x.reshape(n, group, channels // group, height, width)
    w = w.reshape(group, channels // group, *w.shape[1:])
    full = [(e - 1) * s + (k - 1) * d + 1 + o for e, s, k, d, o in zip((height, width), strides, kernel, dilations, output_padding)]
    y = np.zeros((n, group, outputs // group, *full))
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = np.einsum("ngchw,gco->ngohw", x, w[..., i, j], optimize=True)
            y[..., i * dilations[0]:i * dilations[0] + (height - 1) * strides[0] + 1:strides[0],
              j * dilations[1]:j * dilations[1] + (width - 1) * strides[1] + 1:strides[1]] += part
    y = y.reshape(n, outputs, *full)
    return y[:, :, pads[0]:full[0] - pads[2], pads[1]:full[1] - pads[3]]


def product(x, w, f, bias, scale, terms, dyadic):
    """f is linear in both operands. x: Ints; w: integers less their zero point; bias: i32 in units of `scale`, which broadcasts to
    the result. Every integer is exact in doubles. Ours rounds the sum, the scale twice and the product; floats round each of `terms`."""
    low, high = x.centered()
    if np.array_equal(low, high):
        least = most = f(low, w)
    else:
        least = f(low, np.maximum(w, 0)) + f(high, np.minimum(w, 0))
        most = f(high, np.maximum(w, 0)) + f(low, np.minimum(w, 0))
    size = f(np.maximum(np.abs(low), np.abs(high)), np.abs(w)) + np.abs(bias)
    least, most = (least + bias) * scale, (most + bias) * scale
    if dyadic and size.max(initial=0) < EXACT:
        return Reals(least, most)
    if terms:
        return Reals(least, most, (terms + 16) * ULP * size * scale)
    return Reals(least, most, 8 * ULP * np.maximum(np.abs(least), np.abs(most)))


def pooled_average(x, kernel, strides, pads, count_pads, ceil):
    """The averages of [n, c, h, w], and of how many points each is. ceil: the last windows may reach beyond, without padding."""
    reach = [-(extent - k) % s for extent, k, s in zip(x.shape[2:], kernel, strides)] if ceil else [0, 0]
    behind = (0, 0, *(r if r < k else 0 for r, k in zip(reach, kernel)))   # each window begins within
    ones = padded(np.ones((1, 1, *x.shape[2:])), pads, 1.0 if count_pads else 0.0)
    sums, points = (windows(padded(a, behind), kernel, strides, (1, 1)).sum((-2, -1)) for a in (padded(x, pads), ones))
    return sums / points, points


def pooled_maximum(x, kernel, strides, pads):
    return windows(padded(x, pads, -np.inf), kernel, strides, (1, 1)).max((-2, -1))


def linear_rows(count, scale):
    """The matrix that resizes an axis to count * scale elements, linear, half_pixel."""
    out = np.zeros((int(count * scale), count))
    for i in range(out.shape[0]):
        at = min(max((i + 0.5) / scale - 0.5, 0.0), count - 1)
        first = min(int(np.floor(at)), count - 1)
        second = min(first + 1, count - 1)
        out[i, first] += 1 - (at - first)
        out[i, second] += at - first
    return out


def softmax(x, axis):
    """Each element falls with the others and rises with itself."""
    top = x.high.max(axis, keepdims=True)
    low, high = np.exp(x.low - top), np.exp(x.high - top)
    others_high, others_low = (np.maximum(e.sum(axis, keepdims=True) - e, 0) for e in (high, low))
    return low / np.maximum(low + others_high, TINY), high / np.maximum(high + others_low, TINY)


def of_each(x, function, loose_error):
    """A function of one number, which need not be monotone: of all integers between the bounds. loose_error: of the result's size."""
    steps = int((x.high - x.low).max(initial=0))
    scale = np.float64(x.by.scale)
    values = [function((np.minimum(x.low + d, x.high) - x.by.zero) * scale) for d in range(steps + 1)]
    result = Reals(np.minimum.reduce(values), np.maximum.reduce(values))
    result.error = loose_error * result.size()
    return result


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def hard_swish(x):
    return x * np.clip(x / 6 + 0.5, 0, 1)
