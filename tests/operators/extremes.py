"""Minima, maxima and what is made of them, by the rule of docs/reference/special-values.md, in numpy: a NaN comes through each of them, is the first of
its kind for a place, and the largest in an order."""
import functools
import itertools

import numpy as np


def wide(x):
    """Floats of each type as f64, which holds them all and in which numpy lets a NaN through; others as they are."""
    return x.astype(np.float64) if x.dtype.kind not in "biu" else x


def least_of(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def lost(x):
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def of_operands(op, operands):
    extreme = np.maximum if op == "Max" else np.minimum
    return [functools.reduce(extreme, map(wide, operands)).astype(operands[0].dtype)]


def reduced(op, x, axes, keepdims=1, noop_with_empty_axes=0):
    axes = [] if axes is None else list(axes)
    if not axes and noop_with_empty_axes:
        return [x]
    extreme = np.max if op == "ReduceMax" else np.min
    return [np.asarray(extreme(wide(x), axis=tuple(axes) or None, keepdims=bool(keepdims))).astype(x.dtype)]


def place(op, x, axis=0, keepdims=1, select_last_index=0):
    find, x = np.argmax if op == "ArgMax" else np.argmin, wide(x)
    at = x.shape[axis] - 1 - find(np.flip(x, axis), axis) if select_last_index else find(x, axis)
    return [np.asarray(np.expand_dims(at, axis) if keepdims else at).astype(np.int64)]


def hardmax(version, x, axis=None):
    """Before version 13 the axes from `axis` on are one."""
    axis = (-1 if version >= 13 else 1) if axis is None else axis
    axis %= x.ndim
    flat = wide(x) if version >= 13 else wide(x).reshape(int(np.prod(x.shape[:axis])), -1)
    along = axis if version >= 13 else 1
    chosen = np.zeros(flat.shape)
    np.put_along_axis(chosen, np.expand_dims(np.argmax(flat, along), along), 1, along)
    return [chosen.reshape(x.shape).astype(x.dtype)]


def top_k(x, k, axis=-1, largest=1):
    """Of equal ones the first comes first."""
    rows, sign = np.moveaxis(wide(x), axis, -1), -1 if largest else 1
    chosen = np.empty((*rows.shape[:-1], k), np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = [(sign, 0) if v != v else (0, sign * v) for v in rows[at].tolist()]
        chosen[at] = sorted(range(len(row)), key=row.__getitem__)[:k]
    chosen = np.moveaxis(chosen, -1, axis)
    return [np.take_along_axis(x, chosen, axis), chosen]


def log_softmax(version, x, axis=None):
    axis = (-1 if version >= 13 else 1) if axis is None else axis
    axis %= x.ndim
    rows = wide(x) if version >= 13 else wide(x).reshape(int(np.prod(x.shape[:axis])), -1)
    along = axis if version >= 13 else 1
    with np.errstate(all="ignore"):
        below = rows - rows.max(along, keepdims=True)
        return [(below - np.log(np.exp(below).sum(along, keepdims=True))).reshape(x.shape).astype(x.dtype)]


class Axis:
    """Where the windows of a pool lie along one axis."""
    def __init__(self, extent, kernel, stride, dilation, pads, auto, ceil):
        reach = (kernel - 1) * dilation + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-extent // stride)
            total = max((count - 1) * stride + reach - extent, 0)
            before = total // 2 if auto == "SAME_UPPER" else total - total // 2
        else:
            before, after = (0, 0) if auto == "VALID" else pads
            span = extent + before + after - reach
            count = (-(-span // stride) if ceil else span // stride) + 1
            count -= ceil and (count - 1) * stride >= extent + before   # such a window begins in the padding behind
        starts = [i * stride - before for i in range(count)]
        self.windows = [[p for p in range(s, s + reach, dilation) if 0 <= p < extent] for s in starts]


def max_pool(x, outputs, kernel_shape, strides=None, dilations=None, pads=None, auto_pad="NOTSET", ceil_mode=0, storage_order=0):
    """Values, and the places of the first largest ones in the whole tensor: along rows, or by columns with storage_order."""
    rank, values = len(kernel_shape), wide(x)
    ones, extents = [1] * rank, x.shape[2:]
    pads = pads or [0] * 2 * rank
    axes = [Axis(*each, auto_pad, ceil_mode) for each in zip(extents, kernel_shape, strides or ones, dilations or ones, zip(pads[:rank], pads[rank:]))]
    y = np.full((*x.shape[:2], *[len(a.windows) for a in axes]), least_of(x.dtype), values.dtype)
    indices = np.zeros(y.shape, np.int64)
    steps = [int(np.prod(extents[:i] if storage_order else extents[i + 1:])) for i in range(rank)]
    for plane, at in itertools.product(np.ndindex(x.shape[:2]), np.ndindex(y.shape[2:])):
        places = list(itertools.product(*(a.windows[i] for a, i in zip(axes, at))))
        if places:
            best = places[int(np.argmax([values[(*plane, *p)] for p in places]))]
            y[(*plane, *at)] = values[(*plane, *best)]
            indices[(*plane, *at)] = (plane[0] * x.shape[1] + plane[1]) * int(np.prod(extents)) + sum(p * s for p, s in zip(best, steps))
    return [y.astype(x.dtype), indices][:outputs]
