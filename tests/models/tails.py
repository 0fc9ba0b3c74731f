#!/usr/bin/env python3
"""Activations and hyperbolic functions where they go to 0, to their limits and to infinity: the error in units of the last place, in f32 and f64, of compiled
code and of the compiler's evaluator (the same model with its input as a constant).

    tails.py --tilewright BUILD/tilewright [--print]
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

L = np.longdouble
HALF = L(1) / 2


def normal_cdf(x):
    """In double, by math.erfc: good to 1e-13 over f32's range."""
    return np.array([0.5 * math.erfc(-v * math.sqrt(0.5)) for v in x.astype(np.float64)]).astype(L)


def sigmoid(x):
    return np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))


def tanh_gelu(x):
    return x * sigmoid(2 * np.sqrt(2 / L(math.pi)) * (x + L(0.044715) * x**3))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def elu(x, alpha=L(1)):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def log_of_twice(x):
    return np.log(x) + np.log(L(2))


SELU = L(np.float32(1.67326319217681884765625)), L(np.float32(1.05070102214813232421875))
WIDE, ONE, ABOVE = (-110, 95), (-1, 1), (1, 1e30)
# Ranges end where a factor, as the sigmoid of Swish, is no normal number any more, though the product is.
# name: (operator, attributes, domain, reference, range, limit in ulp, more of them for each unit of the exponential's argument, types)
BOTH, SINGLE = (np.float32, np.float64), (np.float32,)
FUNCTIONS = {
    "softplus": ("Softplus", {}, "", softplus, WIDE, 4, 0, BOTH),
    "mish": ("Mish", {}, "", lambda x: x * np.tanh(softplus(x)), (-83, 90), 8, 0, BOTH),
    "gelu": ("Gelu", {}, "", lambda x: x * normal_cdf(x), (-12.9, 14), 6, 0, SINGLE),
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}, "", tanh_gelu, (-10, 12), 6, lambda x: abs(1.6 * (x + 0.044715 * x**3)) * 3, SINGLE),
    "ms_gelu": ("Gelu", {}, "com.microsoft", lambda x: x * normal_cdf(x), (-12.9, 14), 6, 0, SINGLE),
    "quick_gelu": ("QuickGelu", {"alpha": 1.5}, "com.microsoft", lambda x: x * sigmoid(L(1.5) * x), (-57, 60), 6, lambda x: 1.5 * abs(x), SINGLE),
    "swish": ("Swish", {}, "", lambda x: x * sigmoid(x), (-87, 90), 6, 0, BOTH),
    "sigmoid": ("Sigmoid", {}, "", sigmoid, (-87, 90), 4, 0, BOTH),
    "elu": ("Elu", {}, "", elu, WIDE, 4, 0, BOTH),
    "selu": ("Selu", {}, "", lambda x: SELU[1] * elu(x, SELU[0]), WIDE, 6, 0, BOTH),
    "celu": ("Celu", {"alpha": 2.0}, "", lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0) / 2), x), WIDE, 4, 0, SINGLE),
    "tanh": ("Tanh", {}, "", np.tanh, WIDE, 5, 0, BOTH),
    "erf": ("Erf", {}, "", lambda x: np.array([math.erf(v) for v in x.astype(np.float64)]).astype(L), (-6, 6), 7, 0, SINGLE),
    "sinh": ("Sinh", {}, "", np.sinh, (-95, 95), 10, 0, BOTH),
    "cosh": ("Cosh", {}, "", np.cosh, (-95, 95), 8, 0, BOTH),
    "asinh": ("Asinh", {}, "", np.arcsinh, (-1e3, 1e3), 5, 0, BOTH),
    "acosh": ("Acosh", {}, "", np.arccosh, ABOVE, 5, 0, BOTH),
    "atanh": ("Atanh", {}, "", np.arctanh, ONE, 5, 0, BOTH),
}


def samples(low, high, dtype):
    """Even ones, and all magnitudes down to 1e-30 beside 0 and beside the range's ends; where the range is wide, up to the largest too."""
    random = np.random.default_rng(3)
    even = random.uniform(low, high, 4000)
    small = 10.0 ** random.uniform(-30, 0, 1000) * random.choice([-1, 1], 1000)
    ends = np.concatenate([e + d * 10.0 ** random.uniform(-7, -1, 400) for e, d in ((low, 1), (high, -1))])
    large = 10.0 ** random.uniform(2, 37, 500) * random.choice([-1, 1], 500)
    x = np.concatenate([even, small, ends, large]).astype(dtype)
    return x if high - low > 185 else x[(x >= low) & (x <= high)]


def units(got, want, dtype):
    """Distance to the reference in units of the correctly rounded result's last place; what is below the normal numbers may be 0."""
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        size = np.maximum(abs(rounded), np.finfo(dtype).tiny)
        off = abs(got.astype(L) - want) / np.spacing(size).astype(L)
    off[(got == rounded) | (np.isnan(got) & np.isnan(rounded))] = 0
    off[(abs(rounded) < np.finfo(dtype).tiny) & (got == 0)] = 0
    off[np.isnan(off)] = np.inf
    return off.astype(np.float64)


def model(inputs, constant):
    nodes, outputs, values, weights = [], [], [], []
    for (name, dtype), x in inputs.items():
        op, attributes, domain = FUNCTIONS[name][:3]
        own = f"{name}_{np.dtype(dtype).name}"
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        nodes.append(helper.make_node(op, [f"{own}_x"], [own], own, domain=domain, **attributes))
        outputs.append(helper.make_tensor_value_info(own, kind, x.shape))
        values.append(helper.make_tensor_value_info(f"{own}_x", kind, x.shape))
        weights.append(numpy_helper.from_array(x, f"{own}_x"))
    graph = helper.make_graph(nodes, "tails", [] if constant else values, outputs, weights if constant else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def run(tilewright, inputs, constant):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        onnx.save(model(inputs, constant), work / "m.onnx")
        np.savez(work / "in.npz", **{f"{name}_{np.dtype(dtype).name}_x": x for (name, dtype), x in inputs.items()})
        feed = [] if constant else ["--input", work / "in.npz"]
        for command in ([tilewright, "compile", work / "m.onnx", "-t", "host", "-o", work / "m.so"], [tilewright, "run", work / "m.so", *feed, "--output-dir", work / "out"]):
            told = subprocess.run(command, capture_output=True, text=True)
            if told.returncode:
                sys.exit(f"{' '.join(map(str, command))}: {told.stderr}")
        return {key: np.load(work / "out" / f"{key[0]}_{np.dtype(key[1]).name}.npy") for key in inputs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--print", action="store_true", help="every function's largest error")
    args = parser.parse_args()
    inputs = {(name, dtype): samples(*row[4], dtype) for name, row in FUNCTIONS.items() for dtype in row[7]}
    failed = 0
    for way, constant in (("compiled", False), ("evaluator", True)):
        for (name, dtype), got in run(args.tilewright.resolve(), inputs, constant).items():
            reference, limit, more = FUNCTIONS[name][3], FUNCTIONS[name][5], FUNCTIONS[name][6]
            x = inputs[name, dtype]
            with np.errstate(all="ignore"):
                off = units(got, reference(x.astype(L)), dtype)
                allowed = limit + (more(x.astype(np.float64)) if more else np.zeros(x.shape))
            worst = np.argmax(off - allowed)
            bad = off[worst] > allowed[worst]
            failed += bad
            if bad or args.print:
                print(f"{name} {np.dtype(dtype).name} {way}: {off[worst]:.2f} ulp at {x[worst]!r} ({got[worst]!r}), {allowed[worst]:.1f} allowed; {off.max():.2f} at most{' WRONG' if bad else ''}")
    print(f"{len(inputs)} functions in 2 ways, {failed} lose accuracy")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
