#!/usr/bin/env python3
"""One Winograd and one Strassen layer, forced, against onnxruntime: on this machine and, where qemu is, for AArch64.

    algorithms.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from run import Runner, compare

TOLERANCE = 2e-5   # of an output's range


def save(path, nodes, shapes, constants):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    weights = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, path.stem, [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def winograd_layer(path, random):
    """A pointwise convolution into blocked channels, then the 3x3 one with padding: 9 x 11 pixels, 24 channels to 40."""
    nodes = [helper.make_node("Conv", ["x", "u"], ["a"], kernel_shape=[1, 1]),
             helper.make_node("Conv", ["a", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["y"])]
    save(path, nodes, {"x": [1, 3, 9, 11], "y": [1, 40, 9, 11]},
         {"u": random.normal(size=(24, 3, 1, 1)), "w": random.normal(size=(40, 24, 3, 3)) / 15, "b": random.normal(size=40)})
    return [1, 3, 9, 11]


def strassen_layer(path, random):
    """An odd number of rows times a constant matrix."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["y"])]
    save(path, nodes, {"x": [1, 33, 64], "y": [1, 33, 64]}, {"w": random.normal(size=(64, 64)) / 8, "b": random.normal(size=64)})
    return [1, 33, 64]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        runner = Runner(args.tilewright.resolve(), work)
        targets = ["host"] + (["aarch64-generic"] if runner.qemu else [])
        for algorithm, make in (("winograd_f2", winograd_layer), ("winograd_f4", winograd_layer), ("winograd_f6", winograd_layer),
                                ("strassen", strassen_layer)):
            random = np.random.default_rng(3)
            model, artifact = work / f"{algorithm}.onnx", work / "layer.so"
            inputs = {"x": random.normal(size=make(model, random)).astype(np.float32)}
            session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
            expected = dict(zip(["y"], session.run(None, inputs)))
            for target in targets:
                groups = work / "groups.txt"
                subprocess.run([runner.tilewright, "compile", model, "-t", target, "--algorithm", algorithm, "--emit", "groups", "-o", groups],
                               check=True, stderr=subprocess.DEVNULL)
                runner.compile(model, target, artifact, "--algorithm", algorithm)
                got = runner.native(artifact, inputs, ["y"], 2) if target == "host" else runner.arm(artifact, inputs, expected)
                error = compare(expected, got)
                good = error <= TOLERANCE and algorithm in groups.read_text()
                failed += not good
                print(f"{'ok  ' if good else 'FAIL'} {algorithm:12} {target:16} error {error:.2e} of the range", flush=True)
        if not runner.qemu:
            print("skip aarch64: no qemu or no cross libc")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
