"""Reductions, products, norms, losses, Fourier transforms, and recurrent layers."""
import functools

import definitions
import extremes
import numpy as np
from draw import Const, is_float, numpy_type, operators

I64 = np.int64


@operators("ReduceMax ReduceMin ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp")
def reduction(d):
    shape = d.shape(0, 4)
    axes = d.axes(len(shape)) if d.version >= 11 else [a % len(shape) for a in d.axes(len(shape))] if shape else []
    axes = axes if axes and d.chance(0.7) else None
    name = d.type()
    low, high = (0, 4) if d.op == "ReduceLogSum" else (-2, 2) if is_float(name) or d.op != "ReduceProd" else (-1, 2)
    x = d.tensor(0, shape, low=low, high=high, whole=d.chance(0.4), huge=d.op in ("ReduceMax", "ReduceMin"))
    if d.op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceL2") and not is_float(name):
        x = np.abs(d.values(name, shape, low=1, special=False))
    extreme = functools.partial(extremes.reduced, d.op) if d.op in ("ReduceMax", "ReduceMin") else None
    if d.has("axes"):
        case = d.case(x, axes=axes, keepdims=d.maybe(d.pick(2)))
        return case.defined(lambda x, axes=None, **rest: extreme(x, axes, **rest)) if extreme else case
    given = None if axes is None else Const(d.ints(axes))
    if given is None and d.chance(0.3):
        given = Const(d.ints([]))
    case = d.case(x, given, keepdims=d.maybe(d.pick(2)), noop_with_empty_axes=d.maybe(d.pick(2)))
    return case.defined(lambda x, axes=None, **rest: extreme(x, axes, **rest)) if extreme else case


@operators("Softmax LogSoftmax Hardmax")
def softmax(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)
    case = d.case(d.tensor(0, shape, whole=d.chance(0.3)), axis=d.maybe(axis) if len(shape) > 1 else axis)
    definition = {"Hardmax": extremes.hardmax, "LogSoftmax": extremes.log_softmax}.get(d.op)
    return case.defined(functools.partial(definition, d.version)) if definition else case


@operators("MatMul")
def matmul(d):
    m, k, n = (d.among([1, 2, 3, 5, 7, 9]) for _ in range(3))
    batches = d.broadcast(2, high=2) if d.chance(0.5) else [(), ()]
    a = [k] if d.chance(0.15) else [*batches[0], m, k]
    b = [k] if d.chance(0.15) else [*batches[1], k, n]
    return d.plain().case(d.tensor(0, a), d.tensor(1, b))


@operators("Gemm")
def gemm(d):
    m, k, n = (d.among([1, 2, 3, 5, 7, 9]) for _ in range(3))
    ta, tb = d.pick(2), d.pick(2)
    d.plain()
    c = d.tensor(2, d.among([(n,), (1, n), (m, 1), (m, n), (1,), ()]))
    whole = not is_float(d.type())
    scales = {name: d.maybe(float(d.between(1, 2)) if whole else d.real(0.2, 2)) for name in ("alpha", "beta")}
    present = d.version < 11 or d.chance(0.7)
    return d.case(d.tensor(0, (k, m) if ta else (m, k)), d.tensor(1, (n, k) if tb else (k, n)), c if present else None,
                  transA=ta or d.maybe(0), transB=tb or d.maybe(0), **scales)


EQUATIONS = ["ij,jk->ik", "ij,jk", "bij,bjk->bik", "...ij,...jk->...ik", "ii->i", "ii", "ij->ji", "ij->", "i,i->", "i,j->ij", "ij,ij->ij", "bhid,bhjd->bhij", "ijk,kl->ijl",
             "ij,jk,kl->il", "i...->...", "...i->...", "bij->bji", "ijj->i", "iij,jk->ik", "ij,kj->ki", "abc,bd,acd->ab", "b...i,b...j->b...ij", "ba", "i,ij,j->"]


@operators("Einsum")
def einsum(d):
    equation = d.among(EQUATIONS)
    sizes = {letter: d.between(1, 5) for letter in equation if letter.isalpha()}
    dots = tuple(d.between(1, 3) for _ in range(d.between(0, 2)))
    shapes = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            shape += list(dots) if part == "." else [sizes[part]]
        shapes.append(shape)
    if d.chance(0.3):
        equation = equation.replace(",", " , ").replace("->", " -> ")
    return d.plain().case(*[d.tensor(0, shape, low=-2, high=2) for shape in shapes], equation=equation)


@operators("Det")
def det(d):
    n = d.between(1, 5)
    return d.plain().case(d.tensor(0, [*d.shape(0, 2, most=3), n, n]))


@operators("BatchNormalization")
def batch_norm(d):
    shape = [d.between(1, 3), d.between(1, 5), *d.shape(0, 3)]
    c = (shape[1],)
    d.plain()
    training = d.maybe(d.pick(2), 0.3) if d.has("training_mode") else None
    scales = [d.tensor(i, c) for i in (1, 2)]
    means = [d.values(d.type(3), c), d.values(d.type(3), c, low=1, high=4)]
    return d.case(d.tensor(0, shape), *scales, *means, outputs=3 if training else 1, epsilon=d.maybe(d.real(1e-5, 1e-2)), momentum=d.maybe(d.real(0.5, 0.99)), training_mode=training)


@operators("InstanceNormalization")
def instance_norm(d):
    c = d.between(1, 4)
    d.plain()
    return d.case(d.tensor(0, [d.between(1, 3), c, *d.shape(1, 3)]), d.tensor(1, (c,)), d.tensor(2, (c,)), epsilon=d.maybe(d.real(1e-5, 1e-2)))


@operators("GroupNormalization")
def group_norm(d):
    groups, per = d.between(1, 3), d.between(1, 3)
    d.plain()
    return d.case(d.tensor(0, [d.between(1, 3), groups * per, *d.shape(1, 2)]), d.tensor(1, (groups * per,)), d.tensor(2, (groups * per,)), num_groups=groups, epsilon=d.maybe(d.real(1e-5, 1e-2)))


@operators("LayerNormalization RMSNormalization")
def layer_norm(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    d.plain()
    tail = shape[axis:]
    own = tail if d.chance(0.7) else [e if d.chance(0.6) else 1 for e in tail]
    more = [] if d.op == "RMSNormalization" else [d.maybe(d.tensor(2, own))]
    return d.case(d.tensor(0, shape), d.tensor(1, own), *more, outputs=1 if more == [] else d.between(1, 3), axis=axis, epsilon=d.maybe(d.real(1e-5, 1e-2)))


@operators("MeanVarianceNormalization")
def mean_variance_norm(d):
    shape = d.shape(4, 4)
    return d.plain().case(d.tensor(0, shape), axes=d.maybe(sorted(a % 4 for a in d.axes(4, least=1))))


@operators("LRN")
def lrn(d):
    case = d.plain().case(d.tensor(0, [d.between(1, 2), d.between(1, 7), *d.shape(1, 2)]), size=d.between(1, 6), alpha=d.maybe(d.real(0, 1)), beta=d.maybe(d.real(0.2, 1)), bias=d.maybe(d.real(0.5, 2)))
    case.definition = lambda: definitions.lrn(case.operands[0], **case.attributes)
    return case


@operators("LpNormalization")
def lp_normalization(d):
    shape = d.shape(1, 4)
    return d.plain().case(d.tensor(0, shape, low=1 if d.chance(0.7) else 0), axis=d.maybe(d.axis(len(shape))), p=d.maybe(d.between(1, 2)))


@operators("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def loss(d):
    n, c, rest = d.between(1, 4), d.between(1, 5), d.shape(0, 2, most=4)
    target = d.rng.integers(0, c, (n, *rest)).astype(numpy_type(d.type(1)))
    ignored = None
    if d.chance(0.5):
        ignored = d.among([-1, 0, c])
        target = np.where(d.rng.random(target.shape) < 0.3, ignored, target).astype(target.dtype)
        if d.chance(0.95):
            target.flat[0] = 1 if ignored == 0 and c > 1 else 0 if ignored else target.flat[0]
    d.plain()
    weights = d.maybe(d.values(d.type(0), (c,), low=1, high=3))
    return d.case(d.tensor(0, (n, c, *rest)), target, weights, outputs=1 if d.op[0] == "N" else d.between(1, 2), reduction=d.maybe(d.among(["none", "mean", "sum"])), ignore_index=ignored)


@operators("DFT")
def dft(d):
    shape = [d.between(1, 3), *d.shape(1, 2), 1]
    axis = d.between(0 if d.version < 20 else 1, len(shape) - 2) or 1
    inverse, onesided = d.pick(2), d.pick(2)
    if inverse and onesided and d.version < 20:
        inverse = 0
    shape[-1] = 2 if inverse or (not onesided and d.chance(0.5)) else 1
    length = d.maybe(Const(np.array(d.between(2, 9)).astype(numpy_type(d.type(1)))), 0.4)
    if inverse and onesided and shape[axis] == 1 and length is None:   # of no points
        onesided = 0
    x = d.plain().tensor(0, shape)
    flags = dict(inverse=inverse or d.maybe(0), onesided=onesided or d.maybe(0))
    if d.version < 20:
        return d.case(x, length, axis=axis, **flags)
    return d.case(x, length, Const(np.array(axis - len(shape) * d.pick(2), I64)), **flags)


@operators("STFT")
def stft(d):
    d.plain()
    length, step = d.among([4, 5, 8]), d.between(1, 4)
    signal = d.tensor(0, (d.between(1, 2), length + step * d.between(1, 5) + d.pick(3), 1))
    whole = numpy_type(d.type(1))
    window = d.maybe(Const(d.tensor(2, (length,))))
    given = Const(np.array(length).astype(whole)) if window is None or d.chance(0.7) else None
    return d.case(signal, Const(np.array(step).astype(whole)), window, given, onesided=d.maybe(d.pick(2)))


ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]
ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
BETA = {"Affine", "ScaledTanh", "HardSigmoid"}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


@operators("LSTM GRU RNN")
def recurrent(d):
    steps, batch, inputs, hidden = (d.between(1, n) for n in (5, 3, 4, 4))
    direction = d.among(["forward", "reverse", "bidirectional"])
    both, gates = (2 if direction == "bidirectional" else 1), GATES[d.op]
    d.plain()
    attributes = {"hidden_size": hidden, "direction": d.maybe(direction) if direction == "forward" else direction, "clip": d.maybe(d.real(0.3, 1), 0.3)}
    if d.chance(0.4):
        names = [d.among(ACTIVATIONS) for _ in range(FUNCTIONS[d.op] * both)]
        attributes |= {"activations": names, "activation_alpha": [0.3] * sum(n in ALPHA for n in names) or None, "activation_beta": [0.6] * sum(n in BETA for n in names) or None}
    attributes["linear_before_reset"] = d.maybe(d.pick(2)) if d.op == "GRU" else None
    attributes["input_forget"] = d.maybe(1, 0.2) if d.op == "LSTM" else None
    layout = d.pick(2) if d.version >= 14 else 0
    attributes["layout"] = layout or None
    state = (batch, both, hidden) if layout else (both, batch, hidden)
    lengths = d.maybe(d.rng.integers(1, steps + 1, batch).astype(np.int32), 0.4)
    operands = [d.tensor(0, (batch, steps, inputs) if layout else (steps, batch, inputs)), d.tensor(0, (both, gates * hidden, inputs), low=-1, high=1), d.tensor(0, (both, gates * hidden, hidden), low=-1, high=1),
                d.maybe(d.tensor(0, (both, 2 * gates * hidden), low=-1, high=1)), lengths, d.maybe(d.tensor(0, state, low=-1, high=1))]
    if d.op == "LSTM":
        operands += [d.maybe(d.tensor(0, state, low=-1, high=1)), d.maybe(d.tensor(0, (both, 3 * hidden), low=-1, high=1), 0.4)]
    case = d.case(*operands, outputs=3 if d.op == "LSTM" else 2, **attributes)
    case.definition = lambda: definitions.recurrent(d.op, case.attributes, case.operands)
    return case
