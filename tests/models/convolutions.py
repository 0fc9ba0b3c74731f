#!/usr/bin/env python3
"""Random convolutions: channels that fill no blocks, groups, strides, dilations and paddings of any kind, rows of free extent, windows of pools
behind them, in floats and in bytes with any zero points. Each target's default schedule applies, and the library is verified against the evaluator,
in an emulator where the processor is another.

    convolutions.py --tilewright BUILD/tilewright [--target NAME ...] [--count N] [--seed S]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

TARGETS = ["host", "x86-64-v2", "x86-64-v3", "aarch64-generic", "opencl-generic"]
SCHEDULED = ["x86-64-v4", "sapphirerapids", "cortex-a72", "neoverse-v1", "armv7-generic", "rv64gcv", "cortex-m4", "cortex-m55", "opencl-mali-midgard", "nvidia-sm75", "nvidia-sm80"]
TOGETHER = 24   # convolutions of a model
KINDS = ["f32", "u8", "i8", "f16"]


class Maker:
    """A model of independent convolutions, each with an input and an output of its own."""

    def __init__(self, rng):
        self.rng, self.nodes, self.inputs, self.outputs, self.constants = rng, [], [], [], []

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def shape(self):
        rank = int(self.pick(1, 2, 2, 2, 3))
        groups = int(self.pick(1, 1, 1, 1, 2, 3, 4, 8, 16))
        inside, outside = int(self.pick(1, 1, 2, 3, 4, 6, 8, 9, 16, 18, 20, 33)), int(self.pick(1, 1, 2, 3, 5, 8, 12, 16, 24, 40))
        if groups > 1 and self.rng.integers(2):
            inside = outside = int(self.pick(1, 1, 4))
        kernel = [int(self.pick(1, 1, 2, 3, 3, 5)) for _ in range(rank)]
        strides = [int(self.pick(1, 1, 2, 3)) for _ in range(rank)]
        dilations = [int(self.pick(1, 1, 1, 2)) for _ in range(rank)]
        pads = [int(self.rng.integers(0, k * d + 1)) if self.rng.integers(2) else 0 for _ in range(2) for k, d in zip(kernel, dilations)]
        spatial = [(k - 1) * d + 1 + int(self.rng.integers(0, 18 if rank < 3 else 5)) for k, d in zip(kernel, dilations)]
        if rank == 2 and self.rng.integers(8) == 0:
            kernel[-1], pads[1], pads[3] = 41, 40, 40   # wider than the edges of a row may be
        return groups, inside, outside, kernel, strides, dilations, pads, spatial

    def add(self, i, kind, free):
        groups, inside, outside, kernel, strides, dilations, pads, spatial = self.shape()
        quantized = kind in ("u8", "i8")
        batch = int(self.pick(1, 1, 2))
        weights = self.rng.integers(-9, 10, [groups * outside, inside, *kernel])
        out = [(s + pads[d] + pads[d + len(kernel)] - (kernel[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d, s in enumerate(spatial)]
        if min(out) < 1:
            return self.add(i, kind, free)
        x, y = f"x{i}", f"y{i}"
        dims = [batch, groups * inside, *[f"n{i}" if free and d + 1 == len(spatial) else s for d, s in enumerate(spatial)]]
        attributes = dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups)
        if quantized:
            type_, numpy_type = (T.UINT8, np.uint8) if kind == "u8" else (T.INT8, np.int8)
            least = np.iinfo(numpy_type).min
            zero = int(self.pick(least, least, least + 128, least + 255, least + 77))
            scale = 2. ** np.ceil(np.log2(weights[0].size ** .5 * 4))   # of two: sums are scaled exactly
            names = [x, self.constant(f"xs{i}", np.float32(.5)), self.constant(f"xz{i}", numpy_type(zero)),
                     self.constant(f"w{i}", weights.astype(np.int8)), self.constant(f"ws{i}", np.float32(.25)), self.constant(f"wz{i}", np.int8(0)),
                     self.constant(f"ys{i}", np.float32(scale)), self.constant(f"yz{i}", numpy_type(least + 128))]
            if self.rng.integers(2):
                names.append(self.constant(f"b{i}", self.rng.integers(-500, 500, [groups * outside]).astype(np.int32)))
            self.nodes.append(helper.make_node("QLinearConv", names, [y], **attributes))
        else:
            type_, numpy_type = (T.FLOAT, np.float32) if kind == "f32" else (T.FLOAT16, np.float16)
            first = x
            if free and self.rng.integers(2):   # an extent that is half of a free one
                halved = [1] * (len(kernel) - 1) + [2]
                first = f"p{i}"
                self.nodes.append(helper.make_node("MaxPool", [x], [first], kernel_shape=halved, strides=halved))
            names = [first, self.constant(f"w{i}", (weights / 8).astype(numpy_type))]
            if self.rng.integers(2):
                names.append(self.constant(f"b{i}", self.rng.standard_normal(groups * outside).astype(numpy_type)))
            behind = self.pick("", "Relu", "MaxPool") if len(kernel) == 2 and not free and min(out) > 1 else self.pick("", "Relu")
            made = f"c{i}" if behind else y
            self.nodes.append(helper.make_node("Conv", names, [made], **attributes))
            if behind:
                pool = dict(kernel_shape=[2, 2], strides=[2, 2]) if behind == "MaxPool" else {}
                self.nodes.append(helper.make_node(behind, [made], [y], **pool))
        self.inputs.append(helper.make_tensor_value_info(x, type_, dims))
        self.outputs.append(helper.make_tensor_value_info(y, type_, None))

    def model(self):
        graph = helper.make_graph(self.nodes, "convolutions", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def compiled(tilewright, path, target, *more):
    return subprocess.run([tilewright, "compile", path, "-t", target, "--strict", *more], capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--target", nargs="+", default=TARGETS)
    parser.add_argument("--scheduled", nargs="*", default=SCHEDULED, help="targets for which schedules are made, and nothing is run")
    parser.add_argument("--count", type=int, default=96)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TW_SEED", 1)))
    args = parser.parse_args()
    tilewright, wrong = args.tilewright.resolve(), 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "convolutions.onnx"
        for first in range(0, args.count, TOGETHER):
            maker = Maker(np.random.default_rng([args.seed, first]))
            for i in range(TOGETHER):
                maker.add(i, KINDS[i % len(KINDS)], free=i % 6 == 5)
            onnx.save(maker.model(), path)
            for target in args.target:
                library = path.with_suffix(".so")
                done = compiled(tilewright, path, target, "--verify", "-o", library)
                if done.returncode:
                    wrong += 1
                    print(f"{target}, convolutions from {first} on: status {done.returncode}: {done.stderr.strip()[-900:]}", flush=True)
            for target in args.scheduled:
                done = compiled(tilewright, path, target, "--emit", "scheduled", "-o", path.with_suffix(".txt"))
                if done.returncode:
                    wrong += 1
                    print(f"{target}, convolutions from {first} on: status {done.returncode}: {done.stderr.strip()[-900:]}", flush=True)
    print(f"{args.count} convolutions from seed {args.seed}, {len(args.target)} targets, schedules of {len(args.scheduled)} more: {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
