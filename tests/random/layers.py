"""Operators that sum over elements: products, convolutions, pools, reductions, layers of networks."""
import math

import numpy as np

from graph import BF16, F16, F32, F64, FLOATS, I8, I32, I64, U8, Unfit, broadcast, is_free, onnx_type

REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"]


def reduce(g):
    x = g.one((F32, F64, I32, I64), 1)
    if not x:
        return
    axes = sorted({g.pick(len(x.shape)) for _ in range(1 + g.pick(2))})
    keep = g.pick(2)
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
    op = g.among(REDUCTIONS if x.dtype in FLOATS else ["ReduceSum", "ReduceMax", "ReduceMin"])
    if op == "ReduceLogSumExp" and any(n.op_type == "LogSoftmax" and x.name in n.output for n in g.nodes):
        return   # 0 but for rounding
    given = [a - len(x.shape) if g.pick(2) else a for a in axes]
    g.add(op, [x.name, g.ints(given)], [(x.dtype, shape)], exact=x.dtype not in FLOATS, keepdims=keep)


def matmul(g):
    x = g.one(FLOATS, 2)
    if not x:
        return
    columns = g.width(20)
    others = [v for v in g.values if v.dtype == x.dtype and len(v.shape) >= 2 and v.shape[-2] == x.shape[-1]
              and broadcast(v.shape[:-2], x.shape[:-2]) is not None]
    if others and g.pick(2):
        v = g.among(others)
        g.add("MatMul", [x.name, v.name], [(x.dtype, broadcast(v.shape[:-2], x.shape[:-2]) + (x.shape[-2], v.shape[-1]))])
    elif len(x.shape) == 2 and g.pick(2):
        flip = g.pick(2)
        w = g.numbers(*((columns, x.shape[1]) if flip else (x.shape[1], columns)), dtype=x.dtype)
        g.add("Gemm", [x.name, w, g.numbers(columns, dtype=x.dtype)], [(x.dtype, (x.shape[0], columns))], transB=flip, alpha=0.5)
    else:
        g.add("MatMul", [x.name, g.numbers(x.shape[-1], columns, dtype=x.dtype)], [(x.dtype, x.shape[:-1] + (columns,))])


def einsum(g):
    x = g.one((F32, F64), 2, 2)
    if x:
        columns = 1 + g.pick(8)
        equation, shape = g.among([("ij,jk->ik", (x.shape[0], columns)), ("ij,jk->ki", (columns, x.shape[0])), ("ij,jk->i", (x.shape[0],))])
        g.add("Einsum", [x.name, g.numbers(x.shape[1], columns, dtype=x.dtype)], [(x.dtype, shape)], equation=equation)


def conv(g):
    x = g.one((F32, F16), 3, 5)
    if not x:
        return
    spatial = len(x.shape) - 2
    group = x.shape[1] if g.pick(3) == 0 else 1
    out = group * (g.width(5) if group == 1 else 1 + g.pick(3))
    kernel = [1 + g.pick(min(3, int(d))) for d in x.shape[2:]]
    strides = [1 + g.pick(2) for _ in kernel]
    dilations = [1 + g.pick(2) if (k - 1) * 2 < d else 1 for k, d in zip(kernel, x.shape[2:])]
    pads = [g.pick(k) for k in kernel] * 2
    size = [(d + 2 * p - (k - 1) * e - 1) // s + 1 for d, k, s, p, e in zip(x.shape[2:], kernel, strides, pads[:spatial], dilations)]
    weight = g.numbers(out, x.shape[1] // group, *kernel, dtype=x.dtype)
    g.add("Conv", [x.name, weight, g.numbers(out, dtype=x.dtype)], [(x.dtype, (x.shape[0], out, *size))],
          strides=strides, pads=pads, group=group, dilations=dilations)


def conv_transpose(g):
    x = g.one((F32,), 3, 4)
    if not x:
        return
    out, kernel, strides = g.width(4), [1 + g.pick(3) for _ in x.shape[2:]], [1 + g.pick(2) for _ in x.shape[2:]]
    pads = [g.pick(k) if d > 1 else 0 for k, d in zip(kernel, x.shape[2:])]
    size = [s * (d - 1) + k - 2 * p for d, k, s, p in zip(x.shape[2:], kernel, strides, pads)]
    if min(int(d) for d in size) < 1:
        return
    g.add("ConvTranspose", [x.name, g.numbers(x.shape[1], out, *kernel), g.numbers(out)], [(F32, (x.shape[0], out, *size))],
          strides=strides, pads=pads * 2)


def pool(g):
    x = g.one((F32,), 3, 5)
    if not x:
        return
    kernel = [1 + g.pick(min(3, int(d))) for d in x.shape[2:]]
    strides = [1 + g.pick(2) for _ in kernel]
    pads = [g.pick(k) if k > 1 else 0 for k in kernel]
    size = [(d + 2 * p - k) // s + 1 for d, k, s, p in zip(x.shape[2:], kernel, strides, pads)]
    op = g.among(["MaxPool", "AveragePool", "LpPool"])
    more = {"count_include_pad": g.pick(2)} if op == "AveragePool" else {}
    g.add(op, [x.name], [(F32, (*x.shape[:2], *size))], kernel_shape=kernel, strides=strides, pads=pads * 2, **more)


def global_pool(g):
    x = g.one((F32,), 3, 5)
    if x:
        g.add(g.among(["GlobalAveragePool", "GlobalMaxPool"]), [x.name], [(F32, (*x.shape[:2], *(1 for _ in x.shape[2:])))])


def channel_norm(g):
    """Batch, instance and group norms, and the one over neighbouring channels."""
    x = g.one((F32,), 3, 4)
    if not x:
        return
    channels = x.shape[1]
    op = g.among(["BatchNormalization", "InstanceNormalization", "LRN"])
    if op == "LRN":
        g.add(op, [x.name], [(F32, x.shape)], size=1 + 2 * g.pick(2), alpha=0.1)
    elif op == "InstanceNormalization":
        if math.prod(int(d) for d in x.shape[2:]) > 1:   # of one element nothing is left but rounding
            g.add(op, [x.name, g.numbers(channels), g.numbers(channels)], [(F32, x.shape)], epsilon=1e-2)
    else:
        if is_free(channels):
            raise Unfit
        variance = g.weight((0.5 + g.rng.random(channels)).astype(np.float32))
        g.add(op, [x.name, g.numbers(channels), g.numbers(channels), g.numbers(channels), variance], [(F32, x.shape)])


def cumsum(g):
    x = g.one((F32, F64, I64), 1)
    if x:
        g.add("CumSum", [x.name, g.ints(g.pick(len(x.shape)))], [(x.dtype, x.shape)], exact=x.dtype == I64, exclusive=g.pick(2), reverse=g.pick(2))


def resize(g):
    x = g.one((F32,), 4, 4)
    if not x:
        return
    mode, coordinates = g.among(["nearest", "linear", "cubic"]), g.among(["half_pixel", "asymmetric"])
    if is_free(x.shape[2]) or is_free(x.shape[3]):
        scales = g.weight(np.array([1, 1, 2, 2], np.float32))
        g.add("Resize", [x.name, "", scales], [(F32, [*x.shape[:2], x.shape[2] * 2, x.shape[3] * 2])], mode=mode, coordinate_transformation_mode=coordinates)
    elif not any(is_free(d) for d in x.shape):
        wanted = [*x.shape[:2], 1 + g.pick(6), 1 + g.pick(6)]
        g.add("Resize", [x.name, "", "", g.ints(wanted)], [(F32, wanted)], mode=mode, coordinate_transformation_mode=coordinates)


def attention(g):
    """As exporters write it: reshaped into heads."""
    x = g.one((F32, F16, BF16), 3, 3)
    if not x or x.shape[2] < 2:
        return
    batch, rows, width = x.shape
    heads, size = 1 + g.pick(2), 1 + g.pick(8)

    def part(perm):
        y = g.add("MatMul", [x.name, g.numbers(width, heads * size, dtype=x.dtype)], [(x.dtype, (batch, rows, heads * size))])
        y = g.add("Reshape", [y.name, g.ints([0, 0, heads, size])], [(x.dtype, (batch, rows, heads, size))])
        shape = tuple(y.shape[i] for i in perm)
        return g.add("Transpose", [y.name], [(x.dtype, shape)], perm=perm)
    q, k, v = part([0, 2, 1, 3]), part([0, 2, 3, 1]), part([0, 2, 1, 3])
    y = g.add("MatMul", [q.name, k.name], [(x.dtype, (batch, heads, rows, rows))])
    if g.pick(2):
        y = g.add("Mul", [y.name, g.numbers(dtype=x.dtype)], [(x.dtype, y.shape)])
    if g.pick(2) and not is_free(rows):   # what lies ahead is not seen
        ahead = np.triu(np.full((rows, rows), -1e4 if x.dtype == F16 else -1e9, F32), 1)
        y = g.add("Add", [y.name, g.weight(ahead if x.dtype == BF16 else ahead.astype(x.dtype), x.dtype)], [(x.dtype, y.shape)])
    y = g.add("Softmax", [y.name], [(x.dtype, y.shape)], axis=-1)
    g.add("MatMul", [y.name, v.name], [(x.dtype, (batch, heads, rows, size))])


def recurrent(g):
    x = g.one((F32,), 3, 3)
    if not x:
        return
    op, gates = g.among([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    steps, batch, width = x.shape
    hidden, direction = 1 + g.pick(5), g.among(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    weights = [g.numbers(ways, gates * hidden, n) for n in (width, hidden)]
    more = {"linear_before_reset": g.pick(2)} if op == "GRU" else {}
    more |= {"clip": 0.5} if g.pick(6) == 0 else {}
    lengths, states = "", []
    if not is_free(batch) and not is_free(steps):
        lengths = g.weight(g.rng.integers(1, steps + 1, batch).astype(np.int32)) if g.pick(4) == 0 else ""
        states = [g.numbers(ways, batch, hidden) for _ in range(2 if op == "LSTM" else 1)] if g.pick(3) == 0 else []
    g.add(op, [x.name, *weights, g.numbers(ways, 2 * gates * hidden), *([lengths, *states] if lengths or states else [])], [(F32, (steps, ways, batch, hidden)), (F32, (ways, batch, hidden))],
          hidden_size=hidden, direction=direction, **more)


def quantized(g):
    """From an input's bytes to bytes: quantized, added, multiplied, and back. Only exact values: a step of rounding is a whole step."""
    x = g.one((F32,), 1, exact=True)
    if not x:
        return
    kind = g.among([U8, I8])
    scale, zero = g.weight(np.asarray(2.0 ** -g.pick(5), np.float32)), g.weight(np.asarray(g.pick(5), kind))
    q = g.add("QuantizeLinear", [x.name, scale, zero], [(kind, x.shape)], exact=True)
    if len(x.shape) >= 2 and g.pick(2):
        columns = 1 + g.pick(12)
        if is_free(x.shape[-1]):
            raise Unfit
        w = g.weight(g.rng.integers(-128, 128, (x.shape[-1], columns)).astype(np.int8))
        g.add("MatMulInteger", [q.name, w, zero], [(I32, x.shape[:-1] + (columns,))], exact=True)
    elif len(x.shape) == 4 and g.pick(2):
        out, kernel = 1 + g.pick(4), [1 + g.pick(min(3, int(d))) for d in x.shape[2:]]
        if is_free(x.shape[1]):
            raise Unfit
        w = g.weight(g.rng.integers(-128, 128, (out, x.shape[1], *kernel)).astype(np.int8 if kind == I8 else np.uint8))
        g.add("ConvInteger", [q.name, w, zero], [(I32, (x.shape[0], out, *(d - k + 1 for d, k in zip(x.shape[2:], kernel))))], exact=True)
    else:
        g.add("DequantizeLinear", [q.name, scale, zero], [(F32, x.shape)], exact=True)


FAMILIES = [reduce, reduce, matmul, matmul, matmul, einsum, conv, conv, conv_transpose, pool, global_pool, channel_norm, cumsum, resize,
            attention, recurrent, quantized, quantized]


def dynamic_product(g):
    """What quantizing weights alone makes of a MatMul."""
    x = g.one((F32,), 2)
    if not x or x.shape[-1] == 1:
        return
    columns = g.width(12)
    if is_free(x.shape[-1]):
        raise Unfit
    g.add("DynamicQuantizeLinear", [x.name], [(U8, x.shape), (F32, ()), (U8, ())])
    q, scale, zero = (v.name for v in g.values[-3:])
    kind = g.among([np.int8, np.uint8])
    w = g.weight(g.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (x.shape[-1], columns)).astype(kind))
    w_zero = g.weight(np.asarray(g.pick(9), kind))
    y = g.add("MatMulInteger", [q, w, zero, w_zero], [(I32, x.shape[:-1] + (columns,))])
    y = g.add("Cast", [y.name], [(F32, y.shape)], to=onnx_type(F32))
    by = g.add("Mul", [scale, g.weight(np.asarray(1 / 256, F32) if g.pick(2) else g.rng.random(columns).astype(F32) / 256)], [(F32, ())])
    g.values.pop()   # of one element or of one a column: for the product alone
    g.add("Mul", [y.name, by.name], [(F32, y.shape)])


FAMILIES += [dynamic_product]
NETWORK = [matmul, reduce]
PICTURES = [conv, conv, conv, conv_transpose, pool, pool, global_pool, resize]
SEQUENCES = [matmul, matmul, attention, recurrent, dynamic_product]
