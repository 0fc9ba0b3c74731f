#!/usr/bin/env python3
"""Measures the rounding errors of every algorithm against f64 and prints the constants of the error model (docs/internals/algorithms.md).

    calibrate_error.py --tilewright build/release/tilewright

Single layers with He-initialised weights on ReLU-like inputs are compiled with each algorithm forced, run, and compared with
numpy in f64. kRoundings is what fits `error = kRoundings * 2^-24 * kappa * sqrt(length)` to the largest errors over the outputs' range.
"""
import argparse
import math
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KAPPA = {"direct": 1.0, "winograd_f2": 1.667, "winograd_f4": 10.77, "winograd_f6": 20.63, "strassen": 1.4}
CONVOLUTIONS = [(64, 56), (128, 28), (256, 14), (512, 7)]          # channels, size
PRODUCTS = [(128, 256, 256), (128, 768, 768), (128, 2048, 512)]    # rows, depth, columns


def save(path, nodes, inputs, output, weights):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    graph = helper.make_graph(nodes, "layer", values, [helper.make_tensor_value_info(*output)],
                              [numpy_helper.from_array(w, name) for name, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def convolution(path, channels, size, random):
    """The layer under test behind an identity 1x1 convolution, which brings the input into blocked channels without an error."""
    w = (random.standard_normal((channels, channels, 3, 3)) * math.sqrt(2 / (9 * channels))).astype(np.float32)
    x = np.maximum(random.standard_normal((1, channels, size, size)), 0).astype(np.float32)
    one = np.eye(channels, dtype=np.float32).reshape(channels, channels, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "one"], ["a"], kernel_shape=[1, 1]),
             helper.make_node("Conv", ["a", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])]
    save(path, nodes, {"x": x.shape}, ("y", TensorProto.FLOAT, x.shape), {"one": one, "w": w})
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    want = np.zeros(x.shape[1:])
    for i in range(3):
        for j in range(3):
            want += np.tensordot(w[:, :, i, j].astype(np.float64), padded[:, i:i + size, j:j + size], 1)
    return x, want[None]


def product(path, rows, depth, columns, random):
    w = (random.standard_normal((depth, columns)) * math.sqrt(2 / depth)).astype(np.float32)
    x = np.maximum(random.standard_normal((rows, depth)), 0).astype(np.float32)
    save(path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, ("y", TensorProto.FLOAT, (rows, columns)), {"w": w})
    return x, x.astype(np.float64) @ w.astype(np.float64)


def measured(tilewright, folder, algorithm, x, want):
    subprocess.run([tilewright, "compile", folder / "layer.onnx", "-o", folder / "layer.so", f"--algorithm={algorithm}"], check=True, capture_output=True)
    np.save(folder / "x.npy", x)
    subprocess.run([tilewright, "run", folder / "layer.so", "--input", folder / "x.npy", "--output-dir", folder / "out"], check=True, capture_output=True)
    got = np.load(next((folder / "out").glob("*.npy"))).astype(np.float64)
    span = max(want.max(), 0) - min(want.min(), 0)
    return np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2)), np.abs(got - want).max() / span


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    ratios = []
    print("| layer | algorithm | error, RMS | error, max of range | kRoundings |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        layers = [(f"{c}x{s}x{s} 3x3", lambda c=c, s=s: convolution(folder / "layer.onnx", c, s, random), c, ["direct", "winograd_f2", "winograd_f4", "winograd_f6"])
                  for c, s in CONVOLUTIONS]
        layers += [(f"{m}x{k}x{n}", lambda m=m, k=k, n=n: product(folder / "layer.onnx", m, k, n, random), k, ["direct", "strassen"])
                   for m, k, n in PRODUCTS]
        for label, make, length, algorithms in layers:
            x, want = make()
            for algorithm in algorithms:
                terms = 9 * length if algorithm == "direct" and "3x3" in label else length
                rms, worst = measured(args.tilewright, folder, algorithm, x, want)
                ratio = worst / (2.0**-24 * KAPPA[algorithm] * math.sqrt(terms))
                ratios.append(ratio)
                print(f"| {label} | {algorithm} | {rms:.2e} | {worst:.2e} | {ratio:.3f} |", flush=True)
    print(f"\nkRoundings: median {np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
