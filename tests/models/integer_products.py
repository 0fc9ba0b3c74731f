#!/usr/bin/env python3
"""Integer products and convolutions whose rows, pixels, depths and strides fill no instruction, on this machine and for AArch64 under qemu by each set of
instructions: results equal onnxruntime's to the bit, and the assembly holds the instruction."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from run import Runner, quiet

# rows, depth, columns
PRODUCTS = [(2, 16, 8), (3, 16, 8), (9, 33, 10), (17, 40, 20), (50, 64, 32), (64, 64, 64), (197, 96, 48), (577, 64, 16)]
# channels in and out, pixels of a line, kernel, stride, zero point
CONVOLUTIONS = [(16, 32, 14, 3, 1, 128), (64, 32, 14, 1, 1, 128), (16, 16, 15, 3, 2, 0), (16, 32, 28, 3, 2, 77), (64, 64, 7, 1, 1, 128), (64, 64, 7, 3, 1, 128),
                (8, 8, 9, 5, 1, 128), (16, 8, 33, 1, 2, 128), (24, 12, 12, 3, 1, 128), (12, 12, 12, 3, 1, 128), (32, 16, 20, 3, 2, 255), (16, 16, 16, 3, 3, 128)]
FEATURES = {"neon, dotprod": r"\b[su]dot\b", "neon, dotprod, i8mm": r"\b(us|u|s)mmla\b"}


def integers(random, *shape):
    return random.integers(-50, 50, shape).astype(np.int8)


def save(path, nodes, x, outputs, constants):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, x)], outputs, [numpy_helper.from_array(v, n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def product(path, rows, depth, columns):
    random = np.random.default_rng(rows)
    save(path, [helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])], [rows, depth], [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, columns])],
         {"w": integers(random, depth, columns), "zero": np.array(128, np.uint8)})
    return (rows, depth), np.int32


def convolution(path, channels, out, size, kernel, stride, zero, groups=1):
    """Between two of one pixel, so that it has the layout of blocks in front and behind."""
    random, pad = np.random.default_rng(size), kernel // 2
    scales = {"xs": 0.02, "ws": 0.01, "as": 0.5, "bs": 0.7}
    constants = {name: np.array(value, np.float32) for name, value in scales.items()} | {
        "zero": np.array(zero, np.uint8), "none": np.array(0, np.int8), "w0": integers(random, channels, 3, 1, 1), "w1": integers(random, out, channels // groups, kernel, kernel),
        "w2": integers(random, 8, out, 1, 1)}
    def node(x, scale, weights, y, to, **attributes):
        return helper.make_node("QLinearConv", [x, scale, "zero", weights, "ws", "none", to, "zero"], [y], **attributes)
    nodes = [node("x", "xs", "w0", "a", "as"), node("a", "as", "w1", "b", "bs", strides=[stride] * 2, pads=[pad] * 4, group=groups), node("b", "bs", "w2", "y", "bs")]
    wide = (size + 2 * pad - kernel) // stride + 1
    save(path, nodes, [1, 3, size, size], [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 8, wide, wide])], constants)
    return (1, 3, size, size), np.uint8


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        runner = Runner(args.tilewright.resolve(), work)
        if not runner.qemu:
            print("no qemu-aarch64 or cross compiler: only this machine is tested")
        model, artifact, assembly = work / "m.onnx", work / "m.so", work / "m.s"
        for make, cases in ((product, PRODUCTS), (convolution, CONVOLUTIONS)):
            for case in cases:
                shape, dtype = make(model, *case)
                x = np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8)
                want = onnxruntime.InferenceSession(str(model), quiet(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0].astype(dtype)
                results = {}
                runner.compile(model, "host", artifact)
                results["host"] = runner.native(artifact, {"x": x}, ["y"], 1)["y"]
                for features, instruction in FEATURES.items() if runner.qemu else ():
                    target = work / "target.yaml"
                    target.write_text(f"triple: aarch64-linux-gnu\nfeatures: [{features}]\n")
                    runner.compile(model, target, artifact)
                    results[features] = runner.arm(artifact, {"x": x}, {"y": want})["y"]
                    subprocess.run([args.tilewright, "compile", model, "-t", target, "--emit", "asm", "-o", assembly], check=True, capture_output=True)
                    # 12 channels are no whole number of an instruction's steps
                    if not re.search(instruction, assembly.read_text()) and not (make is convolution and case[0] == 12) and not case[0] == 3:
                        print(f"FAIL {make.__name__} {case}: no {instruction} in the code for {features}")
                        failed += 1
                for target, got in results.items():
                    unlike = int((got != want).sum())
                    if unlike:
                        print(f"FAIL {make.__name__} {case} for {target}: {unlike} of {want.size} elements differ")
                        failed += 1
    print(f"integer products: {len(PRODUCTS) + len(CONVOLUTIONS)} cases, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
