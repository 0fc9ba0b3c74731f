#!/usr/bin/env python3
"""Depthwise, grouped and transposed convolutions of bytes, by each set of instructions that this machine runs and for AArch64 under qemu: results equal
onnxruntime's to the bit, and the assembly multiplies words or bytes, not integers of 32 bits."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from integer_products import convolution, integers, save
from run import Runner, quiet

# channels in and out, pixels of a line, kernel, stride, zero point, groups
DEPTHWISE = [(32, 32, 14, 3, 1, 0, 32), (32, 32, 15, 3, 2, 0, 32), (16, 16, 9, 5, 1, 0, 16), (48, 48, 28, 3, 1, 77, 48), (32, 32, 15, 3, 2, 255, 32), (32, 32, 7, 7, 1, 128, 32),
             (20, 20, 12, 3, 1, 128, 20), (40, 40, 13, 3, 2, 0, 40), (16, 16, 20, 1, 1, 19, 16)]
GROUPED = [(64, 64, 14, 3, 1, 0, 2), (64, 128, 14, 3, 2, 77, 4), (64, 64, 7, 1, 1, 128, 2), (128, 64, 9, 3, 1, 255, 4), (32, 64, 12, 3, 1, 0, 2), (96, 96, 10, 5, 2, 128, 2)]
# blocks of channels lie in several groups, which count as one; no groups fill blocks
SMALL = [(24, 48, 9, 3, 1, 128, 3), (16, 16, 9, 3, 1, 77, 4), (64, 64, 9, 3, 1, 3, 16), (64, 64, 14, 3, 2, 128, 8), (32, 16, 9, 3, 1, 200, 4), (16, 32, 9, 3, 1, 0, 8)]
ODD = [(18, 24, 9, 3, 1, 77, 6), (15, 9, 10, 5, 2, 255, 3)]
# transposed: strides that divide the output, and one that does not
TRANSPOSED = [(32, 16, 9, 4, 2, 77, 1), (16, 32, 7, 2, 2, 200, 1), (32, 32, 8, 3, 1, 3, 2), (16, 16, 9, 3, 2, 255, 1)]
FREE = [DEPTHWISE[3], DEPTHWISE[4], DEPTHWISE[6], SMALL[1], ODD[0]]
KINDS = (DEPTHWISE, GROUPED, SMALL, ODD, TRANSPOSED)
LONG = r"\bsm(la|ul)l2?\b"
WORDS = r"\bv?pmaddwd\b|\bvpdpwssd\b"
BYTES = r"\bvpdpbusd\b|" + WORDS
HERE = {"x86-64-v2": "sse4_1", "x86-64-v3": "avx2", "skylake-server": "avx512bw", "host": "sse4_1"}
FAR = {"neon": (LONG, LONG), "neon, dotprod": (LONG, r"\b[su]dot\b"), "neon, dotprod, i8mm": (LONG, r"\b(us|u|s)(dot|mmla)\b")}


def transposed(path, channels, out, size, kernel, stride, zero, groups):
    """Scales are powers of two, so that onnxruntime's floats are exact."""
    random, pad = np.random.default_rng(size), (kernel - stride) // 2
    constants = {"xs": np.float32(0.5), "ws": np.float32(0.25), "as": np.float32(8), "ys": np.float32(64), "zero": np.uint8(zero), "none": np.int8(0),
                 "w0": integers(random, channels, 3, 1, 1), "w1": integers(random, channels, out // groups, kernel, kernel)}
    nodes = [helper.make_node("QLinearConv", ["x", "xs", "zero", "w0", "ws", "none", "as", "zero"], ["a"]),
             helper.make_node("DequantizeLinear", ["a", "as", "zero"], ["af"]), helper.make_node("DequantizeLinear", ["w1", "ws", "none"], ["wf"]),
             helper.make_node("ConvTranspose", ["af", "wf"], ["yf"], strides=[stride] * 2, pads=[pad] * 4, group=groups),
             helper.make_node("QuantizeLinear", ["yf", "ys", "zero"], ["y"])]
    wide = (size - 1) * stride + kernel - 2 * pad
    save(path, nodes, [1, 3, size, size], [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, out, wide, wide])], constants)
    return (1, 3, size, size), np.uint8


def code_of(tilewright, model, target, folder):
    """The assembly of the kernels that multiply."""
    file = folder / "m.s"
    subprocess.run([tilewright, "compile", model, "-t", target, "--emit", "asm", "-o", file], check=True, capture_output=True)
    kernels = re.split(r"^; ---- ", file.read_text(), flags=re.MULTILINE)
    return "\n".join(text for text in kernels if re.match(r"depthwise|conv", text))


class Suite:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder, self.failed = tilewright, folder, 0
        self.runner = Runner(tilewright, folder)
        self.model, self.library = folder / "m.onnx", folder / "m.so"

    def fail(self, text):
        print("FAIL " + text)
        self.failed += 1

    def compare(self, case, target, got, want):
        if unlike := int((got != want).sum()):
            self.fail(f"{case} for {target}: {unlike} of {want.size} elements differ")

    def check_code(self, case, target, instruction):
        code = code_of(self.tilewright, self.model, target, self.folder)
        wide = re.findall(r"\bv?pmulld\b|\bml[as]\s+v\d+\.4s", code)
        if not re.search(instruction, code) or wide:
            self.fail(f"{case}: {target} does not multiply by {instruction} alone: {wide[:1]}")

    def run(self, case, kind):
        shape, dtype = (transposed if kind is TRANSPOSED else convolution)(self.model, *case)
        x = np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8)
        want = onnxruntime.InferenceSession(str(self.model), quiet(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0].astype(dtype)
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        for target in (name for name, feature in HERE.items() if feature in flags):
            self.runner.compile(self.model, target, self.library)
            self.compare(case, target, self.runner.native(self.library, {"x": x}, ["y"], 1)["y"], want)
            guarded = kind is TRANSPOSED and (case[3] - case[4]) % 2   # its output is no multiple of the stride
            if not guarded:
                self.check_code(case, target, WORDS if kind is DEPTHWISE else BYTES)
        for features, instructions in FAR.items() if self.runner.qemu else ():
            target = self.folder / "target.yaml"
            target.write_text(f"triple: aarch64-linux-gnu\nfeatures: [{features}]\n")
            self.runner.compile(self.model, target, self.library)
            self.compare(case, features, self.runner.arm(self.library, {"x": x}, {"y": want})["y"], want)
            if kind in (DEPTHWISE, GROUPED) or (kind is SMALL and "dotprod" in features):
                self.check_code(case, target, instructions[kind is not DEPTHWISE])


    def run_free(self, case, free):
        """With free heights, widths or both: nobody knows where the ends of an axis are."""
        shape, _ = convolution(self.model, *case)
        model = onnx.load(self.model)
        for axis in free:
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
            model.graph.output[0].type.tensor_type.shape.dim[axis].dim_param = f"e{axis}"
        onnx.save(model, self.model)
        x = np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8)
        np.save(self.folder / "x.npy", x)
        want = onnxruntime.InferenceSession(str(self.model), quiet(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        self.runner.compile(self.model, "host", self.library)
        subprocess.run([self.tilewright, "run", self.library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder / "out"], check=True, capture_output=True)
        self.compare(case, f"host with free axes {free}", np.load(self.folder / "out/y.npy"), want)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(args.tilewright.resolve(), pathlib.Path(folder))
        if not suite.runner.qemu:
            print("no qemu-aarch64 or cross compiler: only this machine is tested")
        for kind in KINDS:
            for case in kind:
                suite.run(case, kind)
        for case in FREE:
            for free in ((2,), (3,), (2, 3)):
                suite.run_free(case, free)
    print(f"grouped products: {sum(map(len, KINDS)) + 3 * len(FREE)} cases, {suite.failed} failures")
    return suite.failed > 0


if __name__ == "__main__":
    sys.exit(main())
