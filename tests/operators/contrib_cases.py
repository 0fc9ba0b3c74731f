"""Operators of com.microsoft. onnxruntime defines them; what its processor kernels lack has a definition in numpy here."""
import numpy as np
from draw import Const, limits, operators
from layers import Window

MS = "com.microsoft"
BYTES = ["int8", "uint8"]


def reals(d, *shape, scale=1.0, kind="float"):
    return (d.rng.standard_normal(shape) * scale).astype(np.float16 if kind == "float16" else np.float32)


def byte(d, name, *shape):
    return d.values(name, shape, *limits(name), special=False)


def point(d, name, *shape):
    return Const(d.values(name, shape, *((-20, 20) if name == "int8" else (100, 150)), special=False))


def scale(d, *shape, low=0.01, high=0.1):
    return Const(d.rng.uniform(low, high, shape).astype(np.float32))


def gelu(x):
    from math import erf
    return x * 0.5 * (1 + np.vectorize(erf)(x.astype(np.float64) / np.sqrt(2)))


@operators("BiasGelu FastGelu", MS)
def bias_gelu(d):
    shape = d.shape(1, 3)
    bias = reals(d, shape[-1])
    return d.case(reals(d, *shape, scale=2), bias if d.op == "BiasGelu" else d.maybe(bias))


@operators("Gelu QuickGelu", MS)
def gelu_alone(d):
    return d.case(reals(d, *d.shape(1, 3), scale=2), alpha=d.maybe(d.real(0.5, 2)) if d.op == "QuickGelu" else None)


@operators("BiasAdd BiasSplitGelu", MS)
def bias_add(d):
    batch, rows, width = d.between(1, 2), d.between(1, 4), 2 * d.between(1, 4)
    x, bias, skip = reals(d, batch, rows, width), reals(d, width), reals(d, batch, rows, width)
    if d.op == "BiasAdd":
        case = d.case(x, bias, skip)
        case.definition = lambda: [x + bias + skip]
    else:
        case = d.case(x, bias)
        whole = x + bias
        case.definition = lambda: [(whole[..., :width // 2] * gelu(whole[..., width // 2:])).astype(np.float32)]
    return case


@operators("BiasSoftmax", MS)
def bias_softmax(d):
    """The bias broadcasts over the axes between its own batch and the axis of the softmax."""
    batch, heads, rows, columns = (d.between(1, 4) for _ in range(4))
    inner = d.pick(2)
    bias = (batch, 1, 1, columns) if inner else (1, heads, rows, columns) if d.chance(0.5) else (1, 1, rows, columns)
    return d.case(reals(d, batch, heads, rows, columns), reals(d, *bias), axis=3, is_inner_broadcast=inner)


@operators("FusedConv", MS)
def fused_conv(d):
    w = Window(d)
    while w.rank != 2:
        w = Window(d)
    cin, cout = d.between(1, 3), d.between(1, 4)
    activation, parameters = d.among([("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])])
    return d.case(reals(d, d.between(1, 2), cin, *w.extents), reals(d, cout, cin, *w.kernel), d.maybe(reals(d, cout)), activation=activation, activation_params=parameters, **w.attributes())


@operators("FusedGemm", MS)
def fused_gemm(d):
    m, k, n, ta, tb = *(d.between(1, 6) for _ in range(3)), d.pick(2), d.pick(2)
    activation, alpha = d.among([("Relu", None), ("LeakyRelu", 0.2), ("Tanh", None), ("Sigmoid", None)])
    return d.case(reals(d, *((k, m) if ta else (m, k))), reals(d, *((n, k) if tb else (k, n))), d.maybe(reals(d, n)), transA=ta, transB=tb, alpha=d.maybe(d.real(0.2, 2)), beta=d.maybe(d.real(0.2, 2)),
                  activation=activation, activation_alpha=alpha)


@operators("FusedMatMul TransposeMatMul FusedMatMulActivation", MS)
def fused_matmul(d):
    batch, m, k, n = (d.between(1, 5) for _ in range(4))
    ta, tb, ba, bb = (d.pick(2) for _ in range(4))
    if d.op != "FusedMatMul":
        ba = bb = 0

    def shape(rows, columns, swapped, batched):
        rows, columns = (columns, rows) if swapped else (rows, columns)
        return (rows, batch, columns) if batched else (batch, rows, columns)
    attributes = dict(transA=ta, transB=tb, alpha=d.maybe(d.real(0.2, 2)))
    if d.op == "FusedMatMul":
        attributes |= dict(transBatchA=ba or None, transBatchB=bb or None)
    a, b = reals(d, *shape(m, k, ta, ba)), reals(d, *shape(k, n, tb, bb))
    if d.op != "FusedMatMulActivation":
        return d.case(a, b, **attributes)
    case = d.case(a, b, activation="Relu", **attributes)
    left, right = a.swapaxes(1, 2) if ta else a, b.swapaxes(1, 2) if tb else b
    case.definition = lambda: [np.maximum((left.astype(np.float64) @ right) * attributes["alpha"] if attributes["alpha"] else left.astype(np.float64) @ right, 0).astype(np.float32)]
    return case


@operators("SkipLayerNormalization SkipSimplifiedLayerNormalization", MS)
def skip_norm(d):
    batch, rows, width = d.between(1, 3), d.between(1, 4), d.between(2, 9)
    simple = d.op.startswith("SkipSimplified")
    more = [d.maybe(reals(d, width))] if simple else [d.maybe(reals(d, width)), d.maybe(reals(d, width))]
    skip = (batch, rows, width) if simple or d.chance(0.7) else (1, rows, width)
    return d.case(reals(d, batch, rows, width), reals(d, *skip), reals(d, width), *more, epsilon=d.maybe(d.real(1e-5, 1e-3)))


@operators("SimplifiedLayerNormalization", MS)
def simple_norm(d):
    shape = d.shape(2, 3)
    x, gamma, epsilon = reals(d, *shape), reals(d, shape[-1]), d.real(1e-5, 1e-3)
    case = d.case(x, gamma, axis=-1, epsilon=epsilon)
    case.definition = lambda: [(x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + np.float32(epsilon)) * gamma).astype(np.float32)]
    return case


@operators("EmbedLayerNormalization", MS)
def embed(d):
    batch, rows, width = d.between(1, 3), d.between(1, 4), d.between(2, 8)
    ids, segments = (d.rng.integers(0, n, (batch, rows)).astype(np.int32) for n in (9, 2))
    typed = d.chance(0.6)
    mask = d.maybe(d.rng.integers(0, 2, (batch, rows)).astype(np.int32))
    return d.case(ids, segments if typed else None, reals(d, 9, width), reals(d, 6, width), reals(d, 2, width) if typed else None, reals(d, width), reals(d, width), mask, outputs=2,
                  epsilon=d.maybe(d.real(1e-5, 1e-3)))


@operators("RotaryEmbedding", MS)
def rotary(d):
    batch, rows, heads, size = d.between(1, 2), d.between(1, 4), d.between(1, 3), d.among([4, 8])
    part = d.maybe(2, 0.3)
    half = (part or size) // 2
    flat = d.chance(0.6) or part
    places = d.rng.integers(0, 6, (batch, rows)).astype(np.int64) if d.chance(0.7) else np.array([d.between(0, 2)], np.int64)
    return d.case(reals(d, batch, rows, heads * size) if flat else reals(d, batch, heads, rows, size), places, Const(reals(d, 6, half)), Const(reals(d, 6, half)), interleaved=d.pick(2),
                  num_heads=heads if part else None, rotary_embedding_dim=part)


@operators("Attention QAttention", MS)
def attention(d):
    batch, rows, heads, size = d.between(1, 2), d.between(1, 5), d.between(1, 3), d.among([2, 4])
    width = heads * size
    mask = d.among([None, d.rng.integers(1, rows + 1, batch), np.tril(np.ones((batch, rows, rows))), np.where(np.arange(rows) < d.rng.integers(1, rows + 1, (batch, 1)), 1, 0)])
    mask = mask if mask is None else mask.astype(np.int32)
    causal = d.maybe(d.pick(2))
    if d.op == "QAttention":
        a, b = "uint8", d.among(BYTES)
        return d.case(byte(d, a, batch, rows, width), Const(byte(d, b, width, 3 * width)), Const(reals(d, 3 * width)), scale(d), scale(d, low=0.001, high=0.01), mask, point(d, a), point(d, b),
                      num_heads=heads, unidirectional=causal)
    past = reals(d, 2, batch, heads, d.between(1, 3), size) if mask is None and d.chance(0.3) else None
    total = rows + (0 if past is None else past.shape[3])
    added = reals(d, 1, heads, rows, total) if d.chance(0.2) else None
    return d.case(reals(d, batch, rows, width), Const(reals(d, width, 3 * width, scale=0.5)), Const(reals(d, 3 * width)), mask, past, added, outputs=1 if past is None else 2, num_heads=heads,
                  unidirectional=causal, scale=d.maybe(d.real(0.2, 1), 0.3))


@operators("MultiHeadAttention", MS)
def multi_head(d):
    batch, rows, others, heads, size = d.between(1, 2), d.between(1, 4), d.between(1, 5), d.between(1, 3), d.among([2, 4])
    width = heads * size
    causal = d.chance(0.3)
    others = rows if causal else others
    mask = d.among([None, d.rng.integers(1, others + 1, batch), np.where(np.arange(others) < d.rng.integers(1, others + 1, (batch, 1)), 1, 0)])
    return d.case(reals(d, batch, rows, width), reals(d, batch, others, width), reals(d, batch, others, width), d.maybe(Const(reals(d, 3 * width))), mask if mask is None else mask.astype(np.int32),
                  d.maybe(reals(d, 1, d.among([1, heads]), rows, others), 0.3), num_heads=heads, scale=d.maybe(d.real(0.2, 1), 0.3), unidirectional=int(causal) or None)


@operators("GroupQueryAttention", MS)
def group_query(d):
    batch, kv, group, size = d.between(1, 2), d.between(1, 2), d.between(1, 2), d.among([8, 16])
    heads = kv * group
    rows, past = (d.between(1, 5), 0) if d.chance(0.5) else (1, d.between(1, 5))
    total = rows + past
    turned = d.chance(0.6)
    caches = [Const(reals(d, 12, size // 2)) for _ in range(2)] if turned else []
    held = [reals(d, batch, kv, past, size) for _ in range(2)] if past else [None, None]
    return d.case(reals(d, batch, rows, heads * size), reals(d, batch, rows, kv * size), reals(d, batch, rows, kv * size), *held, Const(np.full(batch, total - 1, np.int32)), Const(np.array(total, np.int32)),
                  *caches, outputs=3, num_heads=heads, kv_num_heads=kv, do_rotary=int(turned), rotary_interleaved=d.maybe(d.pick(2)) if turned else None, scale=d.maybe(d.real(0.2, 1), 0.3),
                  local_window_size=d.maybe(d.between(1, 4), 0.3), softcap=d.maybe(d.real(1, 3), 0.2))


@operators("MatMulNBits", MS)
def matmul_nbits(d):
    bits, block = d.among([2, 4, 8]), d.among([16, 32])
    depth, columns, rows = d.among([block, 2 * block, block + 6]), d.between(1, 9), d.between(1, 4)
    blocks = -(-depth // block)
    packed = d.rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    return d.case(reals(d, d.between(1, 2), rows, depth), Const(byte(d, "uint8", columns, blocks, block * bits // 8)), Const(reals(d, columns, blocks, scale=0.1)), d.maybe(Const(packed)), None,
                  d.maybe(Const(reals(d, columns)), 0.3), K=depth, N=columns, bits=bits, block_size=block)


@operators("GatherBlockQuantized", MS)
def gather_nbits(d):
    rows, width = d.between(2, 8), 32
    return d.case(Const(byte(d, "uint8", rows, width // 2)), d.rng.integers(0, rows, d.shape(1, 2)).astype(np.int64), Const(reals(d, rows, width // 16)),
                  d.maybe(Const(byte(d, "uint8", rows, 1))), bits=4, block_size=16, gather_axis=0, quantize_axis=1)


@operators("MatMulIntegerToFloat DynamicQuantizeMatMul", MS)
def matmul_to_float(d):
    m, k, n, b = *(d.between(1, 8) for _ in range(3)), d.among(BYTES)
    per = d.among([(), (n,)])
    weights, bias = Const(byte(d, b, k, n)), d.maybe(Const(reals(d, n)))
    if d.op == "DynamicQuantizeMatMul":
        return d.case(reals(d, m, k), weights, scale(d, *per), d.maybe(point(d, b, *per)), bias)
    a = d.among(BYTES) if b == "int8" else "uint8"
    return d.case(byte(d, a, m, k), weights, scale(d), scale(d, *per), d.maybe(point(d, a)), d.maybe(point(d, b, *per)), bias)


@operators("QGemm", MS)
def qgemm(d):
    m, k, n, tb, a, b = *(d.between(1, 8) for _ in range(3)), d.pick(2), d.among(BYTES), d.among(BYTES)
    a = "uint8" if b == "uint8" else a
    c = d.maybe(Const(d.values("int32", (n,), -500, 500, special=False)))
    out = [scale(d, low=0.3, high=0.6), point(d, a)] if d.chance(0.7) else []
    return d.case(byte(d, a, m, k), scale(d), point(d, a), Const(byte(d, b, *((n, k) if tb else (k, n)))), scale(d), point(d, b), c, *out, transB=tb)


@operators("QLinearAdd QLinearMul", MS)
def qlinear_binary(d):
    name = d.among(BYTES)
    a, b = d.broadcast(2)
    return d.case(byte(d, name, *a), scale(d), d.maybe(point(d, name)), byte(d, name, *b), scale(d), d.maybe(point(d, name)), scale(d), d.maybe(point(d, name)))


@operators("QLinearSigmoid QLinearLeakyRelu", MS)
def qlinear_unary(d):
    name = d.among(BYTES)
    sigmoid = d.op == "QLinearSigmoid"
    return d.case(byte(d, name, *d.shape(1, 3)), scale(d), point(d, name), scale(d, low=0.004, high=0.01) if sigmoid else scale(d), point(d, name), alpha=None if sigmoid else d.maybe(d.real(0.01, 0.5)))


@operators("QLinearSoftmax", MS)
def qlinear_softmax(d):
    name = d.among(BYTES)
    shape = d.shape(2, 3)
    return d.case(byte(d, name, *shape), scale(d), point(d, name), Const(np.float32(1 / 256)), Const(np.array(-128 if name == "int8" else 0, np.int8 if name == "int8" else np.uint8)), axis=len(shape) - 1, opset=13)


@operators("QLinearAveragePool", MS)
def qlinear_average(d):
    w, name = Window(d, dilated=False, ceil=True), d.among(BYTES)
    while w.rank != 2:
        w = Window(d, dilated=False, ceil=True)
    attributes = {k: v for k, v in w.attributes().items() if k != "dilations"}
    return d.case(byte(d, name, d.between(1, 2), d.between(1, 3), *w.extents), scale(d), point(d, name), scale(d), point(d, name), kernel_shape=w.kernel, ceil_mode=w.ceil, count_include_pad=d.maybe(d.pick(2)), **attributes)


@operators("QLinearGlobalAveragePool", MS)
def qlinear_global(d):
    name, last = d.among(BYTES), d.pick(2)
    shape = (d.between(1, 2), d.between(1, 4), d.between(1, 4), d.between(1, 4))
    return d.case(byte(d, name, *shape), scale(d), point(d, name), scale(d), point(d, name), channels_last=last)


@operators("QLinearConcat", MS)
def qlinear_concat(d):
    name, shape = d.among(BYTES), list(d.shape(1, 3))
    axis, parts = d.axis(len(shape)), []
    for _ in range(d.between(1, 3)):
        shape[axis] = d.between(1, 3)
        parts += [byte(d, name, *shape), scale(d), point(d, name)]
    return d.case(scale(d), point(d, name), *parts, axis=axis)


@operators("QuantizeLinear DequantizeLinear", MS)
def quantize(d):
    shape, name = d.shape(1, 3), d.among(BYTES + ["int16", "uint16"])
    axis = d.axis(len(shape))
    own = (shape[axis],) if d.chance(0.4) else ()
    x = reals(d, *shape, scale=2) if d.op == "QuantizeLinear" else d.values(name, shape, -100, 100, special=False)
    return d.case(x, scale(d, *own), Const(d.values(name, own, 0, 20, special=False)), axis=axis if own else None)


@operators("DynamicQuantizeLSTM", MS)
def quantized_lstm(d):
    steps, batch, inputs, hidden, both, name = *(d.between(1, 4) for _ in range(4)), d.between(1, 2), d.among(BYTES)
    per = (both, 4 * hidden) if d.chance(0.5) else (both,)
    weights = [Const(byte(d, name, both, rows, 4 * hidden)) for rows in (inputs, hidden)]
    scales = [scale(d, *per, low=0.005, high=0.02) for _ in range(2)]
    zeros = [Const(np.zeros(per, np.int8)) if name == "int8" else point(d, name, *per) for _ in range(2)]
    return d.case(reals(d, steps, batch, inputs), *weights, d.maybe(Const(reals(d, both, 8 * hidden))), None, None, None, None, scales[0], zeros[0], scales[1], zeros[1], outputs=3, hidden_size=hidden,
                  direction="bidirectional" if both == 2 else d.among(["forward", "reverse"]))
