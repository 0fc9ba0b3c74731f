"""Operators by their definitions in the standard, in numpy and f64: of those that ONNX's reference evaluator does in part, or with faults."""
import math

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

FUNCTIONS = {
    "Relu": lambda x, a, b: np.maximum(x, 0), "Tanh": lambda x, a, b: np.tanh(x), "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)), "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x), "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0), "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1), "Elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log1p(np.exp(x))}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
WITH_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}


class Direction:
    """One direction of a recurrent layer: its functions, and its share of the operands in f64."""
    def __init__(self, op, attributes, operands, index):
        self.op, self.attributes, self.hidden = op, attributes, attributes["hidden_size"]
        self.w, self.r = (operands[i][index].astype(np.float64) for i in (1, 2))
        gates = len(self.w) // self.hidden
        bias = operands[3]
        bias = np.zeros(2 * gates * self.hidden) if bias is None else bias[index].astype(np.float64)
        self.wb, self.rb = np.split(bias, 2)
        peepholes = operands[7] if len(operands) > 7 else None
        self.p = np.zeros((3, self.hidden)) if peepholes is None else peepholes[index].astype(np.float64).reshape(3, -1)
        count = len(DEFAULTS[op])
        names = attributes.get("activations") or DEFAULTS[op] * 2
        alphas, betas = list(attributes.get("activation_alpha") or []), list(attributes.get("activation_beta") or [])
        values = [(alphas.pop(0) if n in WITH_ALPHA else None, betas.pop(0) if n in WITH_BETA else None) if "activations" in attributes else (None, None) for n in names]
        self.f = [self.function(n, *v) for n, v in zip(names, values)][index * count:(index + 1) * count]
        # The clip is one of the gates' sums: onnxruntime, as its makers read the standard, does not bound the cell by it
        self.h = lambda x: FUNCTIONS[names[index * count + 2]](x, *(np.float32(v or 0) for v in values[index * count + 2]))

    def function(self, name, alpha, beta):
        return lambda x: FUNCTIONS[name](self.clipped(x), np.float32(alpha or 0), np.float32(beta or 0))

    def clipped(self, x):
        clip = self.attributes.get("clip")
        return np.clip(x, -np.float32(clip), np.float32(clip)) if clip else x

    def step(self, x, h, c):
        n = self.hidden
        part = [slice(i * n, (i + 1) * n) for i in range(len(self.w) // n)]
        xs, hs = x @ self.w.T + self.wb, h @ self.r.T + self.rb
        if self.op == "RNN":
            return self.f[0](xs + hs), c
        if self.op == "GRU":
            z, r = (self.f[0](xs[:, p] + hs[:, p]) for p in part[:2])
            inner = r * hs[:, part[2]] if self.attributes.get("linear_before_reset") else (r * h) @ self.r[part[2]].T + self.rb[part[2]]
            return (1 - z) * self.f[1](xs[:, part[2]] + inner) + z * h, c
        gates = [xs[:, p] + hs[:, p] for p in part]   # input, output, forget, cell
        i = self.f[0](gates[0] + self.p[0] * c)
        f = 1 - i if self.attributes.get("input_forget") else self.f[0](gates[2] + self.p[2] * c)
        c = f * c + i * self.f[1](gates[3])
        o = self.f[0](gates[1] + self.p[1] * c)
        return o * self.h(c), c

    def run(self, x, h, c, lengths, backwards):
        rows = np.zeros((len(x), len(h[0:]), self.hidden))
        for row, length in enumerate(lengths):
            places = range(length)
            for t in reversed(places) if backwards else places:
                h[row:row + 1], c[row:row + 1] = self.step(x[t, row:row + 1], h[row:row + 1], c[row:row + 1])
                rows[t, row] = h[row]
        return rows, h, c


def recurrent(op, attributes, operands):
    """Y, Y_h and, of an LSTM, Y_c."""
    operands = list(operands) + [None] * (8 - len(operands))
    layout, name = attributes.get("layout"), operands[0].dtype
    x = operands[0].astype(np.float64)
    states = [None if s is None else s.astype(np.float64) for s in operands[5:7]]
    if layout:
        x, states = x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in states]
    batch, hidden, both = x.shape[1], attributes["hidden_size"], len(operands[1])
    lengths = operands[4] if operands[4] is not None else [len(x)] * batch
    made = []
    for i in range(both):
        h, c = (np.zeros((batch, hidden)) if s is None else s[i].copy() for s in states)
        backwards = i == 1 or attributes.get("direction") == "reverse"
        made.append(Direction(op, attributes, operands, i).run(x, h, c, lengths, backwards))
    rows, last, cell = (np.stack(v, axis) for v, axis in zip(zip(*made), (1, 0, 0)))
    if layout:
        rows, last, cell = rows.transpose(2, 0, 1, 3), last.swapaxes(0, 1), cell.swapaxes(0, 1)
    return [v.astype(name) for v in (rows, last, cell)][:3 if op == "LSTM" else 2]


def lrn(x, size, alpha=1e-4, beta=0.75, bias=1.0):
    wide, squares = x.astype(np.float64), np.zeros(x.shape)
    for c in range(x.shape[1]):
        squares[:, c] = (wide[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2).sum(1)
    return [(wide / (float(np.float32(bias)) + float(np.float32(alpha)) / size * squares) ** float(np.float32(beta))).astype(x.dtype)]


def global_lp_pool(x, p=2):
    return [((np.abs(x.astype(np.float64)) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)).astype(x.dtype)]


def shrink(x, bias=0.0, lambd=0.5):
    """Integers are shrunk in reals."""
    wide = x.astype(np.longdouble)
    bias, lambd = np.float32(bias), np.float32(lambd)
    result = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0))
    return [np.trunc(result).astype(x.dtype) if x.dtype.kind in "iu" else result.astype(x.dtype)]


def string_normalizer(x, case_change_action="NONE", is_case_sensitive=0, stopwords=(), locale=""):
    """Leaves words out, then changes case; where none is left there is an empty one."""
    def same(word):
        return word if is_case_sensitive else word.lower()
    stops = {same(word) for word in stopwords}
    kept = [word for word in x.ravel() if same(word) not in stops] or [""]
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[case_change_action]
    return [np.array([change(word) for word in kept], object).reshape((1,) * (x.ndim - 1) + (-1,))]


def grid_sample_of_integers(x, grid, **attributes):
    """Sums in f64, rounded to the nearest integer, an even one of two: what ONNX's reference makes of floats."""
    names = ["x", "grid"]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(t), None) for n, t in zip([*names, "y"], (np.dtype(np.float64), grid.dtype, np.dtype(np.float64)))]
    graph = helper.make_graph([helper.make_node("GridSample", names, ["y"], **attributes)], "g", infos[:2], infos[2:])
    opset = 16 if attributes["mode"].startswith("bi") else 20
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    y = np.rint(ReferenceEvaluator(model).run(None, {"x": x.astype(np.float64), "grid": grid})[0])
    return [y.astype(x.dtype) if x.dtype == bool else np.clip(y, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max).astype(x.dtype)]


def erf(x):
    return [np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)]


def hard_swish(x):
    with np.errstate(all="ignore"):
        return [(x.astype(np.float64) * np.clip(x.astype(np.float64) / 6 + 0.5, 0, 1)).astype(x.dtype)]


def center_crop_pad(x, shape, axes=None):
    """What is cut off or added is on both sides, and one more behind."""
    for axis, want in zip(range(x.ndim) if axes is None else axes, shape):
        have = x.shape[axis]
        x = np.take(x, range((have - want) // 2, (have - want) // 2 + want), axis) if have >= want else \
            np.pad(x, [((want - have) // 2, want - have - (want - have) // 2) if a == axis % x.ndim else (0, 0) for a in range(x.ndim)],
                   constant_values="" if x.dtype.kind == "O" else 0)
    return [x]


def label_encoder(x, **attributes):
    """A key that is NaN is that of each NaN."""
    keys, values = (next(v for k, v in attributes.items() if k.startswith(kind)) for kind in ("keys_", "values_"))
    kind = next(k[7:] for k in attributes if k.startswith("values_"))
    default, dtype = {"int64s": (attributes.get("default_int64", -1), np.int64), "floats": (attributes.get("default_float", -0.0), np.float32),
                      "strings": (attributes.get("default_string", "_Unused"), object)}[kind]
    found = [next((v for k, v in zip(keys, values) if k == one or (k != k and one != one)), default) for one in x.ravel().tolist()]
    return [np.array(found, dtype).reshape(x.shape)]


def transformed(scores, how):
    """Scores of rows; where SOFTMAX_ZERO leaves nothing, halves, as in ONNX's reference."""
    if how == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if how in ("SOFTMAX", "SOFTMAX_ZERO"):
        powers = np.exp(scores - scores.max(-1, keepdims=True)) * ((scores != 0) | (how == "SOFTMAX"))
        total = powers.sum(-1, keepdims=True)
        return np.where(total == 0, 0.5, powers / np.where(total == 0, 1, total))
    return scores


def linear_regressor(x, coefficients, targets=1, intercepts=None, post_transform="NONE"):
    scores = x.astype(np.float64) @ np.array(coefficients, np.float32).astype(np.float64).reshape(targets, -1).T
    return [transformed(scores + np.array(intercepts or [0] * targets, np.float32), post_transform).astype(np.float32)]
