#!/usr/bin/env python3
"""Large models: what is compiled in parts computes what it should, and compile time stays in line with the model's size.

    large.py --tilewright BINARY

The models are those of bench/compile_scaling.py. Programs of more than a few hundred calls are several functions; those here have free sizes, sizes
that are read from data and regions on both sides of such a cut.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper as h

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import compile_scaling  # noqa: E402

# Seconds of the processor for models of so many nodes: several times what it takes, and a fraction of what it would take if any step looked at
# all nodes for each of them.
SECONDS = 40
LONG = {"conv_chain": 10000, "identity_chain": 100000, "elementwise_chain": 100000, "residuals": 10000, "concat_inputs": 10000, "initializers": 10000, "sequences": 10000}
VERIFIED = {"conv_chain": 600, "free_matmul_chain": 600, "data_sizes": 1200, "loops": 1200, "if_chain": 1800, "concat": 200, "split": 600}


def long_body(calls):
    """A loop whose body has so many calls."""
    nodes = [h.make_node("Identity", ["c"], ["d"])]
    for i in range(calls): nodes += [h.make_node("CumSum", [f"v{i}", "axis"], [f"m{i}"], reverse=i % 2), h.make_node("Tanh", [f"m{i}"], [f"v{i + 1}"])]
    def info(name, dtype, dims): return h.make_tensor_value_info(name, dtype, dims)
    body = h.make_graph(nodes, "body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v0", TensorProto.FLOAT, [4])],
                        [info("d", TensorProto.BOOL, []), info(f"v{calls}", TensorProto.FLOAT, [4])])
    made = compile_scaling.model([h.make_node("Loop", ["t", "", "x"], ["y"], body=body)],
                                 [info("x", TensorProto.FLOAT, [4]), info("t", TensorProto.INT64, [])], [info("y", TensorProto.FLOAT, [4])])
    made.graph.initializer.append(h.make_tensor("axis", TensorProto.INT64, [], [0]))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    binary = str(pathlib.Path(parser.parse_args().tilewright).resolve())
    failed = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        path = str(folder / "m.onnx")
        for name, size in LONG.items():
            onnx.save(compile_scaling.SHAPES[name](size), path)
            status, seconds, memory, text = compile_scaling.compile_once(binary, path, made, SECONDS)
            print(f"{name} of {size}: {seconds:.1f} s, {memory:.0f} MB, exit status {status}", flush=True)
            if status: failed.append(f"{name}: {text[:300] or f'more than {SECONDS} s'}")
        models = {name: compile_scaling.SHAPES[name](size) for name, size in VERIFIED.items()} | {"long_body": long_body(600)}
        for name, model in models.items():
            onnx.save(model, path)
            library = str(folder / "m.so")
            done = subprocess.run([binary, "compile", path, "-o", library], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                rows = ["--dim", "rows=3"] if name == "free_matmul_chain" else []
                done = subprocess.run([binary, "verify", library, path, "--random", "1", "--reference", "operators"] + rows, capture_output=True, text=True, check=False)
            print(f"{name}: verify says {(done.stdout.splitlines() or ['nothing'])[-1][:100]}", flush=True)
            if done.returncode: failed.append(f"{name}: verify, exit status {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    for line in failed: print("FAILED", line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
