#!/usr/bin/env python3
"""Products of 32 and 64 bits with extents of one, constants on either side of an operator in front, batches: compiled for this machine and verified against
the reference evaluator. Index arithmetic is of 64 bits too, so these products are simplified as indices are."""
import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {TensorProto.INT64: np.int64, TensorProto.INT32: np.int32, TensorProto.UINT64: np.uint64, TensorProto.DOUBLE: np.float64}
EXTENTS = [(1, 1, 1), (5, 1, 4), (1, 7, 1), (7, 5, 9), (3, 4, 1), (0, 3, 2), (2, 0, 3)]   # rows, depth, columns


def save(path, kind, extents, constant, added, batched):
    rows, depth, columns = extents
    batch = [2] if batched else []
    inputs = [helper.make_tensor_value_info("x", kind, [*batch, rows, depth])]
    constants = [numpy_helper.from_array(np.array(3, TYPES[kind]), "three")]
    if constant:
        constants.append(numpy_helper.from_array(np.random.default_rng(depth).integers(0, 9, (depth, columns)).astype(TYPES[kind]), "w"))
    else:
        inputs.append(helper.make_tensor_value_info("w", kind, [*batch, depth, columns]))
    nodes = [helper.make_node("Add", [name, "three"], [name + "3"]) for name in added]
    operands = [name + "3" if name in added else name for name in "xw"]
    graph = helper.make_graph([*nodes, helper.make_node("MatMul", operands, ["y"])], "g", inputs,
                              [helper.make_tensor_value_info("y", kind, [*batch, rows, columns])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    cases = list(itertools.product(TYPES, EXTENTS, (True, False), ("", "x", "xw"), (True, False)))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        model, library = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "m.so"
        for case in cases:
            save(model, *case)
            done = subprocess.run([args.tilewright, "compile", model, "--verify", "-o", library], capture_output=True, text=True)
            if done.returncode:
                failed += 1
                print(f"FAIL {TensorProto.DataType.Name(case[0])} {case[1:]}: compile ends with {done.returncode}: {done.stderr[-400:]}")
    print(f"wide products: {len(cases)} cases, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
