#!/usr/bin/env python3
"""One small network, with a layer of attention, in f32, f16 and bf16: models that have short floats already run through the same kernels.

Groups are the same in the three types, and results are as near as the type's rounding allows. Of constant weights in bf16 the code has the instruction.

    three_types.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

ROWS, DEPTH, HEADS = 24, 64, 4
TYPES = {"f32": (TensorProto.FLOAT, 1e-5), "f16": (TensorProto.FLOAT16, 4e-3), "bf16": (TensorProto.BFLOAT16, 3e-2)}
random = np.random.default_rng(3)


def network(path, dtype):
    """Queries, keys and values of one operand, attention by heads, a product with a residual, a perceptron of two layers."""
    weights = {name: random.standard_normal(shape) / np.sqrt(shape[0]) for name, shape in {"wq": (DEPTH, DEPTH), "wk": (DEPTH, DEPTH), "wv": (DEPTH, DEPTH),
                                                                                          "wo": (DEPTH, DEPTH), "w1": (DEPTH, 96), "w2": (96, DEPTH)}.items()}
    node = helper.make_node
    nodes = []
    for part in "qkv":
        nodes += [node("MatMul", ["x", f"w{part}"], [f"{part}0"]), node("Reshape", [f"{part}0", "split"], [f"{part}1"]),
                  node("Transpose", [f"{part}1"], [part], perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q", "k"], ["s0"]), node("Mul", ["s0", "scale"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["a0"]),
              node("Transpose", ["a0"], ["a1"], perm=[0, 2, 1, 3]), node("Reshape", ["a1", "join"], ["a"]), node("MatMul", ["a", "wo"], ["o"]), node("Add", ["o", "x"], ["r"]),
              node("MatMul", ["r", "w1"], ["h0"]), node("Relu", ["h0"], ["h"]), node("MatMul", ["h", "w2"], ["y0"]), node("Add", ["y0", "r"], ["y"])]
    constants = [helper.make_tensor(name, dtype, value.shape, value.ravel().tolist()) for name, value in weights.items()]
    constants += [helper.make_tensor("scale", dtype, [], [(DEPTH / HEADS) ** -.5]),
                  helper.make_tensor("split", TensorProto.INT64, [4], [1, ROWS, HEADS, DEPTH // HEADS]), helper.make_tensor("join", TensorProto.INT64, [3], [1, ROWS, DEPTH])]
    shape = [1, ROWS, DEPTH]
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info("x", dtype, shape)], [helper.make_tensor_value_info("y", dtype, shape)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    groups = {}
    with tempfile.TemporaryDirectory() as folder:
        model, library = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "m.so"

        def call(*args):
            done = subprocess.run([tilewright, *map(str, args)], capture_output=True, text=True)
            assert done.returncode == 0, (args, done.stdout[-500:], done.stderr[-500:])
            return done.stdout

        for name, (dtype, tolerance) in TYPES.items():
            network(model, dtype)
            groups[name] = json.loads(call("compile", model, "--strict", "-o", library, "--json"))["groups"]
            call("verify", library, model, "--tolerance", tolerance)
            code = call("compile", model, "-t", "znver4", "--emit", "asm")
            assert ("vdpbf16ps" in code) == (name == "bf16"), name
    assert len(set(groups.values())) == 1, groups
    print(f"three types: {', '.join(groups)}: {groups['f32']} groups each")


if __name__ == "__main__":
    sys.exit(main())
