#!/usr/bin/env python3
"""Casts and comparisons of one to nine numbers in each pair of types: vectors that are narrowed with a number of lanes that no register has.
A library is verified against the evaluator, in an emulator where the processor is another.

    few_lanes.py --tilewright BUILD/tilewright [--target NAME ...]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto as T
from onnx import helper

TARGETS = ["host", "x86-64-v2", "aarch64-generic", "armv7-generic", "rv64gc"]
FROM = {"i64": T.INT64, "u64": T.UINT64, "i32": T.INT32, "i16": T.INT16, "f32": T.FLOAT, "f64": T.DOUBLE}
TO = [T.INT8, T.UINT8, T.INT16, T.INT32, T.FLOAT]
FROM_FLOATS = [T.INT32, T.INT64]   # a float beyond a type's range is undefined


def model():
    inputs, outputs, nodes, constants = [], [], [], []
    for name, kind in FROM.items():
        constants.append(helper.make_tensor(f"least_{name}", kind, [], [1 if name == "u64" else 0]))
        for count in range(1, 10):
            x = f"{name}_{count}"
            inputs.append(helper.make_tensor_value_info(x, kind, [count]))
            nodes.append(helper.make_node("Less", [x, f"least_{name}"], [f"{x}_less"]))
            outputs.append(helper.make_tensor_value_info(f"{x}_less", T.BOOL, [count]))
            for to in FROM_FLOATS if name.startswith("f") else TO:
                if to != kind:
                    nodes.append(helper.make_node("Cast", [x], [f"{x}_{to}"], to=to))
                    outputs.append(helper.make_tensor_value_info(f"{x}_{to}", to, [count]))
    graph = helper.make_graph(nodes, "few", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--target", nargs="+", default=TARGETS)
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "few.onnx"
        onnx.save(model(), path)
        for target in args.target:
            library = path.with_suffix(".a" if target.startswith("cortex-m") else ".so")
            done = subprocess.run([args.tilewright.resolve(), "compile", path, "-t", target, "--verify", "-o", library],
                                  capture_output=True, text=True)
            wrong += done.returncode != 0
            print(f"{target}: {'ok' if done.returncode == 0 else done.stderr.strip()[-600:]}")
    print(f"{len(args.target)} targets, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
