#!/usr/bin/env python3
"""What a model says and its graph does not give: outputs declared of other types and sizes, branches that do not fit the bound sizes. `compile` and `inspect` exit alike.

    declarations.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        wrong = {name: check(tilewright, work, name, *case) for name, case in CASES.items()} | {"branches": check_branches(tilewright, work)}
    for name, lines in wrong.items():
        for line in lines:
            print(f"{name}: {line}")
    print(f"{len(wrong)} models, {sum(map(bool, wrong.values()))} wrong")
    sys.exit(1 if any(wrong.values()) else 0)


if __name__ == "__main__":
    main()
