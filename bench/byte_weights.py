#!/usr/bin/env python3
"""Products of floats whose weights the model has in bytes: kernels that widen bytes against kernels that read floats, by rows.

    byte_weights.py --tilewright BUILD/tilewright [--target T,T] [--sizes K,K] [--rows R,R] [--rounds N]

A product is a model of K x K weights of its own, so that runs are short enough for a moment without other work. Times are the least of all runs, in rounds
that take turns.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMS = {"bytes": ["--algorithm", "direct", "--max-weight-growth", "1"], "floats": []}


def model(rows, size, form):
    rng = np.random.default_rng(0)
    weights, scale = rng.integers(-127, 128, (size, size)).astype(np.int8), (rng.random(size) * 1e-3).astype(np.float32)
    constants, nodes = {"w": weights, "s": scale}, [helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=1)]
    if form == "floats":
        constants, nodes = {"f": weights.astype(np.float32) * scale}, []
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size]) for name in "xy")
    graph = helper.make_graph([*nodes, helper.make_node("MatMul", ["x", "f"], ["y"])], "g", [given], [made], [numpy_helper.from_array(array, name) for name, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def milliseconds(tilewright, library):
    done = subprocess.run([tilewright, "bench", library, "--threads", "1", "--seconds", "0.4", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["min"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--target", default="host")
    parser.add_argument("--sizes", default="512,1024,2048")
    parser.add_argument("--rows", default="1,2,4,8,16,32")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for target in args.target.split(","):
            for size in map(int, args.sizes.split(",")):
                for rows in map(int, args.rows.split(",")):
                    libraries = {form: pathlib.Path(folder, f"{form}.so") for form in FORMS}
                    for form, flags in FORMS.items():
                        file = pathlib.Path(folder, "m.onnx")
                        onnx.save(model(rows, size, form), file)
                        subprocess.run([args.tilewright, "compile", file, "-t", target, "-o", libraries[form], *flags], capture_output=True, check=True)
                    best = dict.fromkeys(FORMS, float("inf"))
                    for _ in range(args.rounds):
                        for form in FORMS:
                            best[form] = min(best[form], milliseconds(args.tilewright, libraries[form]))
                    print(f"{target:10} {size:5} x {size:<5} {rows:3} rows  floats {best['floats']:8.4f} ms  bytes {best['bytes']:8.4f} ms  {best['bytes'] / best['floats']:.2f}", flush=True)


if __name__ == "__main__":
    main()
