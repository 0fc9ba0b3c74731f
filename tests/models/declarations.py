#!/usr/bin/env python3
"""What a model says and its graph does not give: outputs declared of other types and sizes, without a shape or a type, or twice; sparse tensors; branches that do not fit
the bound sizes. `compile` and `inspect` exit alike.

    declarations.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADER = '<ir_version: 9, opset_import: ["": 17]> '
BRANCHES = """g (float[n] x, bool c) => (float[m] y) <int64[2] two = {2, 2}> {
  [choice] y = If (c) <then_branch = a () => (float[p] t) { [square] s = Reshape(x, two) r = ReduceSum<keepdims = 0>(s) t = Add(x, r) }, else_branch = b () => (float[q] e) { e = Neg(x) }> }"""
# name: (graph, flags of compile and inspect, exit status, what compile says)
CASES = {
    "as_declared": ("g (float[2, n] x) => (float[2, n] y) { y = Relu(x) }", [], 0, ""),
    "wrong_type": ("g (float[2] x) => (float16[2] y) { y = Relu(x) }", [], 1, "declared as f16, its nodes give f32"),
    "wrong_integer": ("g (float[2] x) => (int32[k] y) { y = Shape(x) }", [], 1, "declared as i32, its nodes give i64"),
    "wrong_size": ("g (float[2] x) => (float[3] y) { y = Relu(x) }", [], 0, "output 'y' is declared as [3], its nodes give [2]"),
    "wrong_rank": ("g (float[2] x) => (float[2, 1] y) { y = Relu(x) }", [], 0, "output 'y' is declared as [2, 1], its nodes give [2]"),
    "wrong_bound": ("g (float[n] x) => (float[1] y) { y = Relu(x) }", ["--dim", "n=4"], 0, "output 'y' is declared as [1], its nodes give [4]"),
    "no_shape": ("g (float[2] x) => (float[] y) { y = Relu(x) }", [], 0, ""),
    "no_shape_of_an_input": ("g (float[] x) => (float[2] y) { y = Relu(x) }", [], 3, "no shape, not even a rank"),
    "no_type": ("g (float[2] x) => (y) { y = Relu(x) }", [], 0, ""),
    "twice": ("g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }", [], 1, "'y'"),
    "unknown_operator": ("g (float[2] x) => (float[2] y) { y = Frobnicate(x) }", [], 3, "no such operator"),
    "both_branches": (BRANCHES, ["--dim", "n=4"], 0, ""),
    "one_branch": (BRANCHES, ["--dim", "n=3"], 0, "If 'choice': then_branch does not fit these sizes: Reshape 'square'"),
}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def check(tilewright, work, name, graph, flags, status, text):
    path, library = work / f"{name}.onnx", work / f"{name}.so"
    onnx.save(onnx.parser.parse_model(HEADER + graph), path)
    made, seen = run(tilewright, "compile", path, "-t", "host", "-o", library, *flags), run(tilewright, "inspect", path, *flags)
    said = made.stdout + made.stderr
    wrong = []
    if made.returncode != status or seen.returncode != status:
        wrong.append(f"compile exits with {made.returncode}, inspect with {seen.returncode}, expected {status}: {said}")
    if text not in said or text not in seen.stdout + seen.stderr or (not text and "warning" in said):
        wrong.append(f"compile says {said!r}, inspect {seen.stdout + seen.stderr!r}, expected {text!r}")
    return wrong


def check_branches(tilewright, work):
    """The branch that fits runs, the other one ends the run with the reason."""
    def ran(condition):
        np.savez(work / "in.npz", x=np.array([1, 2, 3], np.float32), c=np.array(condition))
        return run(tilewright, "run", work / "one_branch.so", "--input", work / "in.npz", "--output-dir", work / "out")
    good, bad = ran(False), ran(True)
    wrong = [] if good.returncode == 0 and np.load(work / "out" / "y.npy").tolist() == [-1, -2, -3] else [f"the branch that fits: {good.stdout}{good.stderr}"]
    if bad.returncode == 0 or "then_branch does not fit these sizes" not in bad.stderr:
        wrong.append(f"the branch that does not fit: status {bad.returncode}, {bad.stdout}{bad.stderr}")
    return wrong


def sparse(values, indices, dims, name):
    values = numpy_helper.from_array(np.array(values, np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices, np.int64), name + "_places"), dims)


def check_sparse(tilewright, work):
    """An initializer and a Constant, by flat indices and by coordinates; what is wrong with one is said."""
    def model(weight, constant):
        nodes = [helper.make_node("Constant", [], ["c"], sparse_value=constant), helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "c"], ["y"])]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
        graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 400])])
        graph.sparse_initializer.append(weight)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), work / "sparse.onnx")
        return run(tilewright, "compile", work / "sparse.onnx", "-t", "host", "-o", work / "sparse.so")
    places = sorted([i % 3, i] for i in range(0, 400, 2))   # more than stay in the model's message
    weight, constant = sparse(np.arange(1, 201), places, [3, 400], "w"), sparse([5, 7], [1, 401], [2, 400], "c")
    made = model(weight, constant)
    if made.returncode:
        return [f"sparse tensors: compile exits with {made.returncode}: {made.stderr}"]
    dense, added = np.zeros((3, 400), np.float32), np.zeros(800, np.float32)
    dense[tuple(np.array(places).T)] = np.arange(1, 201)
    added[[1, 401]] = 5, 7
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(work / "in.npz", x=x)
    ran = run(tilewright, "run", work / "sparse.so", "--input", work / "in.npz", "--output-dir", work / "out")
    wrong = [] if ran.returncode == 0 and (np.load(work / "out" / "y.npy") == x @ dense + added.reshape(2, 400)).all() else [f"sparse tensors: {ran.stdout}{ran.stderr}"]
    large = model(sparse([1], [5], [1 << 20, 1 << 20], "w"), constant)
    if large.returncode != 1 or "too large to be made dense" not in large.stderr:
        wrong.append(f"a large sparse tensor: status {large.returncode}: {large.stderr}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        wrong = {name: check(tilewright, work, name, *case) for name, case in CASES.items()} | {"branches": check_branches(tilewright, work)}
        wrong["sparse"] = check_sparse(tilewright, work)
    for name, lines in wrong.items():
        for line in lines:
            print(f"{name}: {line}")
    print(f"{len(wrong)} models, {sum(map(bool, wrong.values()))} wrong")
    sys.exit(1 if any(wrong.values()) else 0)


if __name__ == "__main__":
    main()
